"""Figures 1, 2 and 3 at the smallest scale: every curve is there, and fewer runs are the first ones."""

import numpy as np
import pytest

from cdqn.experiments.request import Request
from cdqn.experiments.section3.cliff_walking import fig1, fig2, fig3
from cdqn.experiments.section3.runs import DISTANCE, MIN_Q, MSBE, RETURN
from cdqn.runs.workers.local import LocalPool


@pytest.mark.parametrize(
    ("figure", "name", "series"),
    [
        (
            fig1,
            "fig1",
            {(a, f"width {w}", q) for a in ("q_table", "rg", "cdqn") for w in (10, 20) for q in (MSBE, DISTANCE)},
        ),
        (fig2, "fig2", {(a, f"gamma {g}", MSBE) for a in ("q_table", "rg") for g in ("0.9", "0.95", "1")}),
        (
            fig3,
            "fig3",
            {
                (a, f"epsilon {e}", q)
                for a, e in (("q_table", "0"), ("rg", "0"), ("rg", "0.01"), ("rg", "0.1"))
                for q in (RETURN, MIN_Q)
            },
        ),
    ],
)
def test_a_smoke_run_has_every_curve_of_its_figure(figure, name, series):
    told: list[tuple[int, int]] = []
    result = figure(Request("smoke", seed=3, pool=LocalPool(2), on_progress=lambda *progress: told.append(progress)))
    assert result.name == name
    assert {(row.algorithm, row.setting, row.quantity) for row in result.rows} == series
    assert "seed 3, scale smoke" in result.about
    assert told[-1][0] == told[-1][1]
    assert not any(np.isnan(row.value) or np.isnan(row.stderr) for row in result.rows)


def test_fewer_runs_are_the_first_ones_of_the_scale():
    whole, first = fig1(Request("smoke", runs=2)), fig1(Request("smoke", runs=1))
    assert "mean of 1 run, seed 0" in first.about
    assert np.isnan(first.rows[0].stderr)
    assert fig1(Request("smoke")).rows == whole.rows
    assert whole.rows != first.rows
