"""The figures of Section 3 from made-up data: what is drawn, and the authors' curves that are packed with it."""

import numpy as np
import pytest

from cdqn.report import section3
from cdqn.report.authors import authors_curves
from cdqn.report.reproduction import (
    Claim,
    Reproduction,
    Row,
    render_claims,
    select,
    write_claims,
    write_rows,
)

STEPS = [10, 100, 1_000, 10_000]


def curves(name: str, keys) -> Reproduction:
    rows = [
        Row(algorithm, setting, step, quantity, 1e4 / step, 1.0)
        for algorithm, setting, quantity in keys
        for step in STEPS
    ]
    return Reproduction(name, "made up", rows, [])


FIG1 = curves("fig1", [(a, f"width {w}", q) for a in ("Q-table", "RG") for w in (10, 20) for q in ("msbe", "distance")])
FIG2 = curves("fig2", [(a, f"gamma {g}", "msbe") for a in ("Q-table", "RG") for g in ("0.9", "0.99", "1")])
FIG3 = curves(
    "fig3",
    [
        (a, f"epsilon {e}", q)
        for a, e in (("Q-table", "0"), ("RG", "0"), ("RG", "0.1"))
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
    monkeypatch.setattr(section3, "save", lambda figure, path: figures.append(figure))
    return figures


def lines(axes) -> list[list[float]]:
    return [np.asarray(line.get_xdata(), dtype=float).tolist() for line in axes.get_lines()]


@pytest.mark.parametrize(
    ("draw", "data"),
    [
        (section3.draw_fig1, FIG1),
        (section3.draw_fig2, FIG2),
        (section3.draw_fig3, FIG3),
        (section3.draw_conditioning, CONDITIONING),
    ],
)
@pytest.mark.parametrize("suffix", [".png", ".pdf"])
def test_each_figure_is_written_as_png_and_pdf(draw, data, suffix, tmp_path):
    draw(data, tmp_path / f"figure{suffix}")
    assert (tmp_path / f"figure{suffix}").read_bytes()[:4] in (b"\x89PNG", b"%PDF")


def test_fig1_has_the_curves_of_both_widths_and_the_authors_of_width_10(drawn):
    section3.draw_fig1(FIG1, "any.png")
    _, curves_10, scatter_10, curves_20, scatter_20 = drawn[0].axes
    # Two quantities of two algorithms; C-DQN's empty line; the line at 1; and rings at width 10 alone.
    assert lines(curves_20).count([float(step) for step in STEPS]) == 4
    assert len(curves_10.get_lines()) == len(curves_20.get_lines()) + 4
    assert len(scatter_10.get_lines()) == len(scatter_20.get_lines()) + 2


def test_fig2_leaves_out_the_authors_where_we_have_no_curve(drawn):
    section3.draw_fig2(FIG2, "any.png")
    without = FIG2._replace(rows=[row for row in FIG2.rows if row.setting != "gamma 0.99"])
    section3.draw_fig2(without, "any.png")
    assert len(drawn[0].axes[0].get_lines()) == len(drawn[1].axes[0].get_lines()) + 4


def test_fig2_reads_the_learning_time_off_the_curve(drawn):
    rows = [Row("RG", "gamma 0.9", step, "msbe", 2.0 if step < 1000 else 0.5, 0.0) for step in STEPS]
    section3.draw_fig2(Reproduction("fig2", "", rows, []), "any.png")
    line = next(line for line in drawn[0].axes[1].get_lines() if line.get_label() == "RG")
    assert line.get_xydata().round(6).tolist() == [[10.0, 1000.0]]


def test_the_rings_are_points_of_the_authors(drawn):
    section3.draw_fig3(FIG3, "any.png")
    x, y = authors_curves("fig3_one_way_cliff")["total_reward", "RG_eps0"]
    rings = [line.get_xydata() for line in drawn[0].axes[1].get_lines() if line.get_marker() == "o"]
    assert any(set(map(tuple, ring)) <= set(zip(x, y, strict=True)) for ring in rings)
    assert all(15 <= len(ring) <= 22 for ring in rings)


@pytest.mark.parametrize("name", ["fig1_cliff_walking", "fig2_gamma_dependence", "fig3_one_way_cliff"])
def test_the_authors_curves_are_packed_with_the_library(name):
    for x, y in authors_curves(name).values():
        assert len(x) == len(y) > 100
        assert np.isfinite(x).all()


def test_data_and_claims_are_written_with_named_columns(tmp_path):
    reproduction = Reproduction(
        "fig1",
        "two runs",
        [Row("RG", "width 10", 10_000_000, "msbe", 1.25, float("nan"))],
        [Claim("a", "1", "2 ± 1", False), Claim("b", "1", "1", None)],
    )
    write_rows(tmp_path / "data.csv", reproduction.rows)
    write_claims(tmp_path / "claims.csv", reproduction)
    assert (tmp_path / "data.csv").read_text() == (
        "algorithm,setting,step,quantity,value,stderr\nRG,width 10,10000000,msbe,1.25,nan\n"
    )
    assert (tmp_path / "claims.csv").read_text() == "text,expected,found,holds\na,1,2 ± 1,False\nb,1,1,\n"
    assert [list(column.cells) for column in render_claims(reproduction).columns][-1] == [
        "[red]does not hold[/]",
        "reported",
    ]


def test_selecting_a_curve_that_is_not_there_gives_an_empty_one():
    step_T, value_T, stderr_T = select(FIG1, "RG", "width 30", "msbe")
    assert step_T.size == value_T.size == stderr_T.size == 0
    assert select(FIG1, "RG", "width 20", "distance")[0].tolist() == STEPS
