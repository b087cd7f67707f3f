"""What the figures show, read from their axes; that they are beautiful was looked at."""

import math
import sys

import numpy as np
import pytest

from cdqn.algorithms import OF_THE_PAPER
from cdqn.errors import ConfigError
from cdqn.report import figures
from cdqn.report.comparison import comparison_table
from cdqn.report.groups import group_runs
from cdqn.report.runs import find_runs, read_run
from helpers import lines_of

pytestmark = pytest.mark.filterwarnings("error")  # an axis that complains is an axis that shows nothing


def mean_line(axes, algorithm):
    return max(lines_of(axes, algorithm), key=lambda line: line.get_linewidth())


def histories(**curves):
    """Every algorithm calm, except for what is overridden as algorithm_quantity."""
    x_T = np.arange(4)
    result = {a: {q: (x_T, np.full((3, 4), 34.0)) for q in figures.QUANTITIES} for a in OF_THE_PAPER}
    for name, value_ST in curves.items():
        algorithm, quantity = name.split("_")
        result[algorithm][quantity] = (x_T, value_ST)
    return result


def divergence(histories, bound=100.0):
    return figures.draw_divergence(histories, bound=bound, title="DQN diverges")


def comparison(runs, varied=()):
    return figures.draw_comparison(group_runs(runs, varied))


def test_comparison_draws_each_seed_and_the_mean_of_each_algorithm(comparison_folder):
    figure = comparison(find_runs(comparison_folder))
    assert len(figure.axes) == 3
    for axes in figure.axes:
        for algorithm in OF_THE_PAPER:
            dots = axes is figure.axes[0]
            assert len(lines_of(axes, algorithm)) == 3 + 1 + dots
        assert not axes.collections, "three seeds claim no interval"
        assert axes.get_legend() is None
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["C-DQN (3 seeds)", "DQN (3 seeds)", "RG (3 seeds)"]
    assert "95 %" not in figure.legends[0].get_title().get_text()
    np.testing.assert_allclose(mean_line(figure.axes[0], "cdqn").get_xydata()[-1], [1000, 110])
    assert figure.axes[0].get_title(loc="left") == "training return"
    assert figure.get_suptitle() == "CartPole-v1"


@pytest.fixture
def evaluated(tmp_path, make):
    """Two periods of C-DQN with five seeds each, evaluated twice."""
    finals = {5: (500.0, 480.0, 490.0, 470.0, 500.0), 20: (9.0, 10.0, 12.0, 9.0, 11.0)}
    settings = {"evaluation_period_steps": 500}
    return [
        read_run(
            make.write(
                tmp_path / f"{period}-{seed}",
                [make.progress(1000), make.evaluation(500, [final / 2]), make.evaluation(1000, [final - 1, final + 1])],
                seed=seed,
                target_period_updates=period,
                **settings,
            )
        )
        for period, own in finals.items()
        for seed, final in enumerate(own)
    ]


def test_picture_ends_with_the_numbers_of_the_table(evaluated):
    groups = group_runs(evaluated, ["target_period_updates"])
    figure = figures.draw_comparison(groups)
    axes = figure.axes[0]
    assert axes.get_title(loc="left") == "greedy return (mean of 2 episodes)"
    means = [line for line in axes.lines if line.get_linewidth() == 2.0]
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    bars = [line for line in axes.lines if line.get_linewidth() == 1.4]
    bands = [collection.get_paths()[0].vertices for collection in axes.collections]
    for row, mean, dot, bar, band in zip(comparison_table(groups), means, dots, bars, bands, strict=True):
        assert mean.get_xydata()[-1] == pytest.approx([1000, row.final.value])
        assert dot.get_ydata() == pytest.approx([row.final.value])
        assert bar.get_ydata() == pytest.approx([row.final.low, row.final.high])
        ends = band[band[:, 0] == 1000][:, 1]
        assert (min(ends), max(ends)) == pytest.approx((row.final.low, row.final.high))
    assert "95 % interval (Student's t)" in figure.legends[0].get_title().get_text()


def test_variants_have_labels_and_looks_of_their_own(evaluated):
    figure = comparison(evaluated, ["target_period_updates"])
    legend = figure.legends[0]
    labels = ["C-DQN, target period 5 (5 seeds)", "C-DQN, target period 20 (5 seeds)"]
    assert [text.get_text() for text in legend.get_texts()] == labels
    one, other = (line.get_color() for line in legend.get_lines())
    assert one != other
    assert [line.get_color() for line in figure.axes[0].lines if line.get_linewidth() == 2.0] == [one, other]


def test_dollar_in_a_value_is_no_formula(tmp_path, make):
    run = read_run(make.write(tmp_path / "a", [make.progress(10)], env_kwargs='{"a": "$\\\\frac$"}'))
    figures.comparison(group_runs([run], ["env_kwargs"]), tmp_path / "a.png")
    assert (tmp_path / "a.png").exists()


def test_mean_on_a_logarithmic_axis_is_geometric(comparison_folder):
    """Losses 0.1, 0.2 and 0.3 of three seeds."""
    figure = comparison(find_runs(comparison_folder))
    loss = mean_line(figure.axes[1], "cdqn").get_ydata()
    np.testing.assert_allclose(loss, (0.1 * 0.2 * 0.3) ** (1 / 3))


def test_one_seed_is_one_line_without_band(comparison_folder):
    figure = comparison(find_runs(comparison_folder)[:1])
    for axes in figure.axes[1:]:
        assert len(lines_of(axes, "cdqn")) == 1
        assert not axes.collections
    assert len(figure.legends) == 1


def test_comparison_is_the_same_picture_each_time(tmp_path, comparison_folder):
    groups = group_runs(find_runs(comparison_folder)[:2])
    for suffix in (".png", ".pdf"):
        for name in ("a", "b"):
            figures.comparison(groups, tmp_path / "pictures" / (name + suffix))
        first, second = ((tmp_path / "pictures" / (name + suffix)).read_bytes() for name in ("a", "b"))
        assert first == second
        assert first.startswith({".png": b"\x89PNG", ".pdf": b"%PDF"}[suffix])


def test_comparison_without_bounds_shows_q_itself(tmp_path, make):
    rows = [make.progress(step, q_bound=None, q_mean=7.0) for step in (10, 20)]
    figure = comparison([read_run(make.write(tmp_path / "a", rows))])
    assert mean_line(figure.axes[2], "cdqn").get_ydata().tolist() == [7, 7]
    assert "bound" not in figure.axes[2].get_title(loc="left")


def test_run_that_has_only_begun_does_not_erase_the_mean(tmp_path, make):
    rows = [make.progress(step) for step in (10, 20)]
    runs = [read_run(make.write(tmp_path / "a", rows)), read_run(make.write(tmp_path / "b", [], seed=1))]
    figure = comparison(runs)
    assert mean_line(figure.axes[1], "cdqn").get_ydata().tolist() == [0.5, 0.5]


def test_evaluations_that_were_asked_for_and_not_come_to_leave_the_panel_empty(tmp_path, make):
    run = read_run(make.write(tmp_path / "a", [make.progress(10)], evaluation_period_steps=500))
    axes = comparison([run]).axes[0]
    assert axes.get_title(loc="left") == "greedy return"
    assert axes.texts[0].get_text() == "nothing recorded"


def test_nothing_to_compare_is_an_error():
    with pytest.raises(ConfigError, match="no runs"):
        figures.draw_comparison([])


def test_divergence_shows_34_and_half_a_million_and_the_bound():
    grown_ST = np.tile([34.0, 1e3, 1e5, 5e5], (3, 1))
    figure = divergence(histories(dqn_q=grown_ST))
    q = figure.axes[2]
    assert q.get_yscale() == "symlog"
    pixels = q.transData.transform([(0, y) for y in (0, 34, 100, 5e5)])
    heights = q.transAxes.inverted().transform(pixels)[:, 1]
    assert (np.diff(heights) > 0.05).all()
    assert "bound = 100" in [text.get_text() for text in q.texts]
    np.testing.assert_allclose(mean_line(q, "dqn").get_ydata(), grown_ST[0])
    assert figure.get_suptitle() == "DQN diverges"
    assert q.get_xlabel() == "updates"


def test_q_within_its_bound_stays_on_a_linear_axis():
    assert divergence(histories()).axes[2].get_yscale() == "linear"


@pytest.mark.parametrize("worst", [1e30, -1e30, math.inf, math.nan, 0.0])
def test_log_axes_survive_what_divergence_writes(tmp_path, worst):
    value_ST = np.array([[1.0, 2.0, 3.0, worst]] * 3 + [[1.0, 2.0, 3.0, 4.0]] * 3)
    figures.divergence(histories(dqn_loss=value_ST, dqn_q=value_ST), tmp_path / "a.png", bound=100, title="a title")
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_panel_of_nothing_but_nan_says_so():
    nan_ST = np.full((3, 4), math.nan)
    figure = divergence(histories(cdqn_loss=nan_ST, dqn_loss=nan_ST, rg_loss=nan_ST))
    assert figure.axes[1].texts[0].get_text() == "nothing recorded"


def test_divergence_leaves_out_what_is_not_given_and_keeps_house_order():
    x_T = np.arange(3)
    figure = divergence({"dqn": {"q": (x_T, [[1, 2, 3]])}, "cdqn": {"q": (x_T, [[1, 2, 3]])}})
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["C-DQN (1 seed)", "DQN (1 seed)"]
    assert len(lines_of(figure.axes[2], "dqn")) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sac": {}}, "'sac' is none of cdqn"),
        ({"dqn": {"reward": ([0], [[0]])}}, "'reward' is none of return"),
        ({"dqn": {"q": ([0, 1], [0, 1])}}, r"\(seeds, T\)"),
        ({"dqn": {"q": ([0, 1], [[0, 1, 2]])}}, r"\(seeds, T\)"),
    ],
)
def test_wrong_histories_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        divergence(wrong)


def test_no_pyplot_state_is_touched(comparison_folder):
    comparison(find_runs(comparison_folder))
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
