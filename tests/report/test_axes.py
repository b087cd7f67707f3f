"""The house's axes: texts of ticks, types of files, and what a logarithm cannot show."""

import numpy as np
import pytest

from cdqn.errors import ConfigError
from cdqn.report import axes as module
from cdqn.report import figures
from cdqn.report.groups import group_runs
from cdqn.report.runs import find_runs

pytestmark = pytest.mark.filterwarnings("error")  # an axis that complains is an axis that shows nothing


def test_unknown_file_type_is_refused_before_anything_is_written(tmp_path, comparison_folder):
    with pytest.raises(ConfigError, match=r"\.png or \.pdf, not '\.jpg'"):
        figures.comparison(group_runs(find_runs(comparison_folder)), tmp_path / "new" / "a.jpg")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (50, "50"),
        (-0.5, "−0.5"),
        (1e4, "$10^{4}$"),
        (-1e7, "$-10^{7}$"),
        (2e-5, r"$2\cdot 10^{-5}$"),
    ],
)
def test_tick_texts(value, text):
    assert module._tick_text(value) == text


def test_axis_shows_what_is_finite_and_a_logarithmic_one_what_is_positive():
    curve = np.arange(6), np.array([1.0, np.nan, -2.0, np.inf, 0.0, 3.0])
    assert [column.tolist() for column in module.finite(curve)] == [[0, 2, 4, 5], [1, -2, 0, 3]]
    assert [column.tolist() for column in module.finite(curve, positive=True)] == [[0, 5], [1, 3]]


@pytest.mark.parametrize(("largest", "scale"), [(300.0, "linear"), (301.0, "symlog"), (-1e9, "symlog")])
def test_axis_of_q_is_logarithmic_beyond_three_bounds(largest, scale):
    axes = module.figure_of(4, 3).add_subplot()
    module.scale_q(axes, np.array([1.0, largest, np.nan, np.inf]), bound=100.0)
    assert axes.get_yscale() == scale


@pytest.mark.parametrize(("highest", "ticks"), [(50.0, [1, 2, 5, 10, 20, 50]), (1e5, [1, 10, 100, 1e3, 1e4, 1e5])])
def test_logarithmic_axis_has_more_than_powers_of_ten_where_few_of_them_show(highest, ticks):
    axes = module.figure_of(4, 4).add_subplot()
    axes.set_yscale("log")
    axes.set_ylim(0.9, highest * 1.1)
    module.tick_log_axis(axes)
    low, high = axes.get_ylim()
    assert [tick for tick in axes.get_yticks() if low < tick < high] == pytest.approx(ticks)
