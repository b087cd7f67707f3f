"""What the figures show, read from their axes; that they are beautiful was looked at."""

import math
import sys

import numpy as np
import pytest

from cdqn.errors import ConfigError
from cdqn.report import figures
from cdqn.report.palette import ALGORITHMS
from cdqn.report.runs import find_runs, read_run
from helpers import lines_of

pytestmark = pytest.mark.filterwarnings("error")  # an axis that complains is an axis that shows nothing


def mean_line(axes, algorithm):
    return max(lines_of(axes, algorithm), key=lambda line: line.get_linewidth())


def histories(**curves):
    """Every algorithm calm, except for what is overridden as algorithm_quantity."""
    x_T = np.arange(4)
    result = {a: {q: (x_T, np.full((3, 4), 34.0)) for q in figures.QUANTITIES} for a in ALGORITHMS}
    for name, value_ST in curves.items():
        algorithm, quantity = name.split("_")
        result[algorithm][quantity] = (x_T, value_ST)
    return result


def divergence(histories, bound=100.0):
    return figures.draw_divergence(histories, bound=bound, title="DQN diverges")


def test_comparison_draws_each_seed_and_the_mean_of_each_algorithm(comparison_folder):
    figure = figures.draw_comparison(find_runs(comparison_folder))
    assert len(figure.axes) == 3
    for axes in figure.axes:
        for algorithm in ALGORITHMS:
            assert len(lines_of(axes, algorithm)) == 3 + 1
        assert len(axes.collections) == 3  # bands
        assert axes.get_legend() is None
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["C-DQN (3 seeds)", "DQN (3 seeds)", "RG (3 seeds)"]
    np.testing.assert_allclose(mean_line(figure.axes[0], "cdqn").get_xydata()[-1], [1000, 110])
    assert figure.get_suptitle() == "CartPole-v1"


def test_mean_on_a_logarithmic_axis_is_geometric(comparison_folder):
    """Losses 0.1, 0.2 and 0.3 of three seeds."""
    figure = figures.draw_comparison(find_runs(comparison_folder))
    loss = mean_line(figure.axes[1], "cdqn").get_ydata()
    np.testing.assert_allclose(loss, (0.1 * 0.2 * 0.3) ** (1 / 3))


def test_one_seed_is_one_line_without_band(comparison_folder):
    figure = figures.draw_comparison(find_runs(comparison_folder)[:1])
    for axes in figure.axes:
        assert len(lines_of(axes, "cdqn")) == 1
        assert not axes.collections
    assert len(figure.legends) == 1


def test_comparison_is_the_same_picture_each_time(tmp_path, comparison_folder):
    runs = find_runs(comparison_folder)[:2]
    for suffix in (".png", ".pdf"):
        for name in ("a", "b"):
            figures.comparison(runs, tmp_path / "pictures" / (name + suffix))
        first, second = ((tmp_path / "pictures" / (name + suffix)).read_bytes() for name in ("a", "b"))
        assert first == second
        assert first.startswith({".png": b"\x89PNG", ".pdf": b"%PDF"}[suffix])


def test_comparison_without_bounds_shows_q_itself(tmp_path, make):
    rows = [make.progress(step, q_bound=None, q_mean=7.0) for step in (10, 20)]
    figure = figures.draw_comparison([read_run(make.write(tmp_path / "a", rows))])
    assert mean_line(figure.axes[2], "cdqn").get_ydata().tolist() == [7, 7]
    assert "bound" not in figure.axes[2].get_title(loc="left")


def test_run_that_has_only_begun_does_not_erase_the_mean(tmp_path, make):
    rows = [make.progress(step) for step in (10, 20)]
    runs = [read_run(make.write(tmp_path / "a", rows)), read_run(make.write(tmp_path / "b", [], seed=1))]
    figure = figures.draw_comparison(runs)
    assert mean_line(figure.axes[1], "cdqn").get_ydata().tolist() == [0.5, 0.5]


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
    value_ST = np.array([[1.0, 2.0, 3.0, worst]] * 3)
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
    figures.draw_comparison(find_runs(comparison_folder))
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
