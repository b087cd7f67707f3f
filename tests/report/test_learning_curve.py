"""The picture of one run, read from its axes."""

import math

import numpy as np
import pytest

from cdqn.report import figures, learning_curve
from cdqn.report.groups import group_runs
from cdqn.report.runs import read_run
from helpers import lines_of

pytestmark = pytest.mark.filterwarnings("error")  # an axis that complains is an axis that shows nothing


def test_learning_curve_shows_episodes_mean_evaluations_loss_q_and_bound(tmp_path, make):
    rows = [make.progress(100), make.episode(110, 20.0), make.episode(150, 40.0), make.progress(200)]
    rows.append(make.evaluation(200, [90.0]))
    run = read_run(make.write(tmp_path / "run", rows, algorithm="rg", seed=4))
    figure = learning_curve.draw_learning_curve(run)
    returns, loss, q = figure.axes
    shown = [line.get_ydata() for line in returns.lines]
    assert any(np.array_equal(y, [20, 40]) for y in shown)
    assert any(np.array_equal(y, [101, 102]) for y in shown)
    assert any(np.array_equal(y, [90]) for y in shown)
    assert loss.get_yscale() == "log"
    assert len(lines_of(loss, "rg")) == len(lines_of(q, "rg")) == 1
    (bound,) = (line for line in q.lines if line.get_linestyle() == "--")
    assert bound.get_ydata().tolist() == [100, 100]
    assert "= 100" in bound.get_label()
    assert returns.get_xlim() == q.get_xlim()
    assert figure.get_suptitle() == "CartPole-v1 · RG · seed 4"


@pytest.mark.parametrize(("bound", "drawn"), [(120.0, True), (10_000.0, False)])
def test_learning_curve_shows_what_was_earned_and_a_far_bound_only_by_name(tmp_path, make, bound, drawn):
    """LunarLander's bound is 10 000: drawn, it would press a Q of 40 and returns of ±200 to one line."""
    earned = {"earned_low": -200.0, "earned_high": 90.0, "q_mean": 40.0, "q_bound": bound}
    run = read_run(make.write(tmp_path / "run", [make.progress(100, **earned), make.progress(200, **earned)]))
    q = learning_curve.draw_learning_curve(run).axes[2]
    (area,) = q.collections
    assert area.get_datalim(q.transData).y0 == -200
    assert area.get_datalim(q.transData).y1 == 90
    assert any(len(line.get_ydata()) and max(line.get_ydata()) == bound for line in q.lines) == drawn
    (label,) = (text.get_text() for text in q.get_legend().get_texts() if "bound" in text.get_text())
    assert label.endswith("beyond this axis") != drawn
    assert (q.get_ylim()[1] > 119) == drawn


def test_learning_curve_of_a_run_without_evaluation_has_no_markers(tmp_path, make):
    figure = learning_curve.draw_learning_curve(read_run(make.write(tmp_path / "run", [make.progress(100)])))
    assert "evaluation" not in [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


@pytest.mark.parametrize("suffix", [".png", ".pdf"])
def test_empty_run_is_a_picture_that_says_so(tmp_path, make, suffix):
    run = read_run(make.write(tmp_path / "run", []))
    texts = [axes.texts[0].get_text() for axes in learning_curve.draw_learning_curve(run).axes]
    assert texts[0] == "no episode has ended yet"
    learning_curve.learning_curve(run, tmp_path / f"a{suffix}")
    figures.comparison(group_runs([run]), tmp_path / f"b{suffix}")


def test_diverged_run_is_drawn_up_to_where_it_has_numbers(tmp_path, make):
    ends = [0.5, 0.0, 1e30, math.inf, math.nan]
    rows = [make.progress(10 * i + 10, loss=end, q_mean=-end) for i, end in enumerate(ends)]
    run = read_run(make.write(tmp_path / "run", rows))
    _, loss, q = learning_curve.draw_learning_curve(run).axes
    assert loss.lines[0].get_ydata().tolist() == [0.5, 1e30]
    assert q.lines[0].get_ydata().tolist() == [-0.5, 0, -1e30]
    assert q.get_yscale() == "symlog"
    learning_curve.learning_curve(run, tmp_path / "a.png")
    figures.comparison(group_runs([run]), tmp_path / "b.png")
