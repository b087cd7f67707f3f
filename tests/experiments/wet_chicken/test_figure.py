"""Figure 8: what is drawn is the data, with the authors' curves on it."""

import numpy as np
import pytest
from matplotlib.axes import Axes

from cdqn.experiments.wet_chicken.figure import _DISTANCES, _REWARDS, draw
from cdqn.report.authors import authors_curves
from cdqn.report.reproduction import Point, Reproduction


@pytest.fixture
def reproduction():
    rows = [
        Point(name, "4 repeats", epoch, quantity, level + epoch / 100, 0.5)
        for quantity, series in (("average_reward", _REWARDS), ("q_distance", _DISTANCES))
        for level, (name, *_) in enumerate(series, start=10)
        for epoch in (0, 5, 10)
    ]
    return Reproduction("fig8", "4 repeats of 10 epochs", rows, [])


@pytest.mark.parametrize("suffix", [".png", ".pdf"])
def test_written_by_suffix(reproduction, tmp_path, suffix):
    draw(reproduction, tmp_path / f"fig8{suffix}")
    assert (tmp_path / f"fig8{suffix}").stat().st_size > 10_000


def test_curves_bands_and_authors_curves_are_drawn(reproduction, tmp_path, monkeypatch):
    lines, bands = [], []
    plot, fill = Axes.plot, Axes.fill_between
    monkeypatch.setattr(Axes, "plot", lambda self, *a, **k: (lines.append(a), plot(self, *a, **k))[1])
    monkeypatch.setattr(Axes, "fill_between", lambda self, *a, **k: (bands.append(a), fill(self, *a, **k))[1])
    draw(reproduction, tmp_path / "fig8.png")
    drawn = {tuple(np.asarray(y)[:3]) for _, y in lines if len(y)}
    assert (10.0, 10.05, 10.1) in drawn
    for _, their_y in authors_curves("fig8_wet_chicken").values():
        assert tuple(their_y[:3]) in drawn
    _, low, high = bands[0]
    assert high - low == pytest.approx(1.0)  # ± one standard error of 0.5
    _, low, high = bands[-1]
    assert high - low == pytest.approx(2.0)  # ± one standard deviation: 0.5 · √4


def test_single_repeat_has_no_band(reproduction, tmp_path):
    rows = [row._replace(setting="1 repeats", stderr=float("nan")) for row in reproduction.rows]
    draw(reproduction._replace(rows=rows), tmp_path / "fig8.png")


def test_authors_data_has_all_seven_series():
    curves = authors_curves("fig8_wet_chicken")
    wanted = {("average_reward", s[1]) for s in _REWARDS if s[1]} | {("q_distance", s[1]) for s in _DISTANCES}
    assert set(curves) == wanted
    epoch, reward = curves["average_reward", "DQN"]
    assert reward[epoch == 2000] == pytest.approx(14.643)
