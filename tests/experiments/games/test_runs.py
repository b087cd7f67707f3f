"""Figures of games from the request to the verdict, in a few hundred steps."""

import json
from pathlib import Path

import numpy as np
import pytest

from cdqn.errors import CdqnError, ConfigError
from cdqn.experiments.games import runs
from cdqn.experiments.games.plans import FIGURES
from cdqn.experiments.request import Request
from cdqn.runs.workers.local import LocalPool


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("out")


def test_table_trains_the_runs_of_figure_7_and_tests_each(out):
    told = []
    request = Request("smoke", pool=LocalPool(1), out=out, on_progress=lambda done, total: told.append((done, total)))
    result = runs.table1(request)
    assert {(row.algorithm, row.setting) for row in result.rows} == {
        (algorithm, game) for algorithm in ("cdqn", "dqn") for game in ("MountainCar-v0", "Acrobot-v1")
    }
    assert "stand in" in result.about
    assert max(done / total for done, total in told) == 1
    tested = sorted(out.glob("games/smoke/fig7/*/*/protocol.json"))
    assert len(tested) == 4
    assert json.loads(tested[0].read_text())["episodes"] == 2


def test_finished_runs_are_not_repeated_and_shared_by_figures(out):
    before = {path: path.stat().st_mtime_ns for path in out.rglob("metrics.jsonl")}
    assert before, "the test before this one leaves runs"
    result = runs.fig7(Request("smoke", pool=LocalPool(1), out=out))
    assert {path: path.stat().st_mtime_ns for path in out.rglob("metrics.jsonl")} == before
    assert {row.quantity for row in result.rows} == {"return", "loss", "q_over_bound"}
    assert [claim.holds for claim in result.claims] == [None] * 4
    assert "horizon_multiplier 15.0" in result.settings["C-DQN on Acrobot"]


def test_runs_of_a_folder_keep_their_settings(out, monkeypatch):
    figure = FIGURES["fig7"]
    changed = tuple(line._replace(settings={**line.settings, "alpha": 0.5}) for line in figure.laptop)
    monkeypatch.setitem(FIGURES, "fig7", figure._replace(laptop=changed))
    with pytest.raises(ConfigError, match=r"holds fig7/\w+/c?dqn-seed0 with alpha 0.9, and 0.5 is asked for"):
        runs.fig7(Request("smoke", pool=LocalPool(1), out=out))


def test_runs_that_are_not_complete_are_named(tmp_path, monkeypatch):
    from cdqn.runs.run_pool import RunOutcome

    def fail(folder, plan, *rest):
        return [RunOutcome(name, False, "its process died") for name in plan]

    monkeypatch.setattr(runs, "run_all", fail)
    with pytest.raises(CdqnError, match=r"2 of 2 runs are not complete \(fig5/SpaceInvaders/cdqn-seed0: its process"):
        runs.fig5(Request("smoke", pool=LocalPool(1), out=tmp_path))


def test_seeds_are_the_requested_ones():
    plan = runs.planned_runs("fig5", "laptop", range(1000, 1002))
    assert list(plan) == [f"fig5/SpaceInvaders/{name}-seed{seed}" for seed in (1000, 1001) for name in ("cdqn", "dqn")]
    config = plan["fig5/SpaceInvaders/dqn-seed1001"].config
    assert (config.seed, config.discard_fraction, config.loss) == (1001, 0.5, "mse")
    assert config.gradient_clip_norm == np.inf


def test_progress_counts_the_steps_of_all_runs():
    plan = runs.planned_runs("fig5", "smoke", range(1))
    told = []
    note = runs._progress(plan, lambda done, total: told.append((done, total)))
    first, second = plan
    note(first, {"kind": "progress", "step": 100})
    note(second, {"kind": "progress", "step": 50})
    note(first, {"kind": "warning", "step": 20})  # of an earlier attempt
    assert told == [(100, 800), (150, 800), (150, 800)]
    assert Path(first).parts[0] == "fig5"
