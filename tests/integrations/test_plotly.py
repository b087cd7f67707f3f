"""Charts for a browser."""

import json
import re
import sys

import pytest

from cdqn.errors import MissingPackageError
from cdqn.integrations import plotly
from cdqn.report.page.content import charts_of
from cdqn.report.reproduction import Point


def figure_of(points):
    """Data and layout of the one chart of these points, as Plotly is given them."""
    (chart,) = charts_of(points, [])
    html = plotly.chart("name", chart)
    data, layout = re.search(r'Plotly\.newPlot\(\s*"name",\s*(\[.*?\]),\s*(\{.*?\}),\s*\{', html, re.DOTALL).groups()
    return json.loads(data), json.loads(layout)


def test_lines_have_their_band_in_the_same_group():
    points = [Point("cdqn", "A", step, "return", float(step), 0.5) for step in (1, 2, 3)]
    (band, line), layout = figure_of(points)
    assert band["legendgroup"] == line["legendgroup"] == "C-DQN"
    assert band["showlegend"] is False
    assert band["y"] == [1.5, 2.5, 3.5, 2.5, 1.5, 0.5]
    assert line["y"] == [1, 2, 3]
    assert line["line"]["color"] == "#0072B2"
    assert layout["title"]["text"] == "A"


def test_single_runs_have_no_band():
    data, _ = figure_of([Point("dqn", "A", step, "return", 1.0, float("nan")) for step in (1, 2)])
    assert len(data) == 1


def test_logarithmic_axis_shows_the_upper_decades():
    points = [Point("rg", "w", 10.0**k, "msbe", 10.0 ** (5 - 3 * k), 0.0) for k in range(9)]
    _, layout = figure_of(points)
    low, high = layout["yaxis"]["range"]
    assert layout["yaxis"]["type"] == layout["xaxis"]["type"] == "log"
    assert low == pytest.approx(5 - plotly.MOST_DECADES - 0.1)
    assert high > 5


def test_bars_have_error_bars():
    data, _ = figure_of([Point(name, "G", 0, "test_score", 2.0, 0.3) for name in ("cdqn", "dqn")])
    assert [trace["type"] for trace in data] == ["bar", "bar"]
    assert data[0]["error_y"]["array"] == [0.3]


@pytest.mark.parametrize(("count", "named"), [(4, True), (5, False)])
def test_names_below_bars_do_not_run_into_each_other(count, named):
    points = [Point("cdqn", f"seed {seed}", 0, "final_energy", 1.0, 0.1) for seed in range(count)]
    _, layout = figure_of(points)
    assert layout["xaxis"]["showticklabels"] is named


def test_missing_package_is_told_with_the_line_that_installs_it(monkeypatch):
    for name in [module for module in sys.modules if module.partition(".")[0] == "plotly"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'cdqn\[report\]'"):
        plotly.script()
