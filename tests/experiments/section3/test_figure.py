"""The figures of Section 3 from made-up data: what is drawn."""

import numpy as np
import pytest

from cdqn.experiments.section3 import figure as module
from cdqn.report.authors import authors_curves
from cdqn.report.reproduction import Point, Reproduction

STEPS = [10, 100, 1_000, 10_000]


def curves(name: str, keys) -> Reproduction:
    rows = [
        Point(algorithm, setting, step, quantity, 1e4 / step, 1.0)
        for algorithm, setting, quantity in keys
        for step in STEPS
    ]
    return Reproduction(name, "made up", rows, [])


FIG1 = curves("fig1", [(a, f"width {w}", q) for a in ("q_table", "rg") for w in (10, 20) for q in ("msbe", "distance")])

FIG2 = curves("fig2", [(a, f"gamma {g}", "msbe") for a in ("q_table", "rg") for g in ("0.9", "0.99", "1")])

FIG3 = curves(
    "fig3",
    [
        (a, f"epsilon {e}", q)
        for a, e in (("q_table", "0"), ("rg", "0"), ("rg", "0.1"))
        for q in ("greedy_return", "min_q")
    ],
)

CONDITIONING = curves(
    "conditioning", [("MSBE", s, "kappa") for s in ("trajectory with the added term", "trajectory", "cycle of 2")]
)


@pytest.fixture
def drawn(monkeypatch):
    """The figures that would have been written."""
    figures = []
    monkeypatch.setattr(module, "save", lambda figure, path: figures.append(figure))
    return figures


def lines(axes) -> list[list[float]]:
    return [np.asarray(line.get_xdata(), dtype=float).tolist() for line in axes.get_lines()]


@pytest.mark.parametrize(
    ("draw", "data"),
    [
        (module.draw_fig1, FIG1),
        (module.draw_fig2, FIG2),
        (module.draw_fig3, FIG3),
        (module.draw_conditioning, CONDITIONING),
    ],
)
@pytest.mark.parametrize("suffix", [".png", ".pdf"])
def test_each_figure_is_written_as_png_and_pdf(draw, data, suffix, tmp_path):
    draw(data, tmp_path / f"figure{suffix}")
    assert (tmp_path / f"figure{suffix}").read_bytes()[:4] in (b"\x89PNG", b"%PDF")


def test_fig1_has_the_curves_of_both_widths_and_the_authors_of_width_10(drawn):
    module.draw_fig1(FIG1, "any.png")
    _, curves_10, scatter_10, curves_20, scatter_20 = drawn[0].axes
    # Two quantities of two algorithms; C-DQN's empty line; the line at 1; and rings at width 10 alone.
    assert lines(curves_20).count([float(step) for step in STEPS]) == 4
    assert len(curves_10.get_lines()) == len(curves_20.get_lines()) + 4
    assert len(scatter_10.get_lines()) == len(scatter_20.get_lines()) + 2


def test_fig2_leaves_out_the_authors_where_we_have_no_curve(drawn):
    module.draw_fig2(FIG2, "any.png")
    without = FIG2._replace(rows=[row for row in FIG2.rows if row.setting != "gamma 0.99"])
    module.draw_fig2(without, "any.png")
    assert len(drawn[0].axes[0].get_lines()) == len(drawn[1].axes[0].get_lines()) + 4


def test_fig2_reads_the_learning_time_off_the_curve(drawn):
    rows = [Point("rg", "gamma 0.9", step, "msbe", 2.0 if step < 1000 else 0.5, 0.0) for step in STEPS]
    module.draw_fig2(Reproduction("fig2", "", rows, []), "any.png")
    line = next(line for line in drawn[0].axes[1].get_lines() if line.get_label() == "RG")
    assert line.get_xydata().round(6).tolist() == [[10.0, 1000.0]]


def test_the_rings_are_points_of_the_authors(drawn):
    module.draw_fig3(FIG3, "any.png")
    x, y = authors_curves("fig3_one_way_cliff")["total_reward", "RG_eps0"]
    rings = [line.get_xydata() for line in drawn[0].axes[1].get_lines() if line.get_marker() == "o"]
    assert any(set(map(tuple, ring)) <= set(zip(x, y, strict=True)) for ring in rings)
    assert all(15 <= len(ring) <= 22 for ring in rings)
