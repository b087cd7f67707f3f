"""Figure 8 in the paper's layout, the authors' curves as dashes on ours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cdqn.report.authors import authors_curves
from cdqn.report.axes import GREY, INK, save
from cdqn.report.palette import ALGORITHMS
from cdqn.report.reproduction import Point, Reproduction, select

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Series = tuple[str, str, str, str]
# Series of the figure: our name, the authors' name, label, colour.
_REWARDS = (
    ("cdqn", "CDQN", "C-DQN", ALGORITHMS["cdqn"].colour),
    ("dqn", "DQN", "DQN (NFQ)", ALGORITHMS["dqn"].colour),
    ("rg", "RG", "RG", ALGORITHMS["rg"].colour),
    ("dcdqn", "", "DC-DQN (not in the paper)", ALGORITHMS["dcdqn"].colour),
)
# Other colours than those of the algorithms, from the same palette.
_C, _D, _R = (rf"Q_\mathrm{{{name}}}" for name in ("CDQN", "DQN", "RG"))
_DISTANCES = (
    ("cdqn-dqn", "CDQN-DQN", f"$|{_C}-{_D}|$", "#CC79A7"),
    ("cdqn-rg", "CDQN-RG", f"$|{_C}-{_R}|$", "#56B4E9"),
    ("dqn-rg", "DQN-RG", f"$|{_D}-{_R}|$", "#E69F00"),
    (
        "cdqn-dqn+cdqn-rg-dqn-rg",
        "CDQN-DQN+CDQN-RG-DQN-RG",
        f"$|{_C}-{_D}|+|{_C}-{_R}|$\n$-\\,|{_D}-{_R}|$",
        "#222222",
    ),
)
_DASHES: dict[str, Any] = {"linewidth": 1.2, "linestyle": (0, (2, 1.5)), "zorder": 3}


def published(setting: str) -> list[Point]:
    """The authors' curves under our names."""
    theirs = authors_curves("fig8_wet_chicken")
    series = [("average_reward", *names[:2]) for names in _REWARDS if names[1]]
    series += [("q_distance", *names[:2]) for names in _DISTANCES]
    return [
        Point(name, setting, epoch, quantity, value, float("nan"))
        for quantity, name, their_name in series
        for epoch, value in zip(*theirs[quantity, their_name], strict=True)
    ]


def draw(reproduction: Reproduction, path: str | Path) -> None:
    """Average reward at the left, distances between the learned Q at the right; PNG or PDF, by the suffix of `path`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    setting = reproduction.rows[0].setting
    repeats = int(setting.split()[0])  # "10 repeats"
    _draw_series(left, reproduction, setting, "average_reward", _REWARDS, spread=1.0)
    left.set_ylabel("average reward per step")
    left.set_title(f"{setting}; shaded: ± standard error", loc="left", fontsize=9, color=GREY)
    _draw_series(right, reproduction, setting, "q_distance", _DISTANCES, spread=np.sqrt(repeats))
    right.set_ylabel("distance")
    right.set_ylim(bottom=-2)
    right.set_title(f"{setting}; shaded: ± standard deviation", loc="left", fontsize=9, color=GREY)
    for axes in (left, right):
        axes.set_xlabel("epoch")
        axes.grid(color="#e6e6e6", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.plot([], [], color=GREY, label="the authors' (10 repeats)", **_DASHES)
        axes.legend(fontsize=8.5, frameon=False)
    figure.suptitle(f"Fig. 8 again: wet chicken · {reproduction.about}", fontsize=10.5, color=INK)
    save(figure, path)


def _draw_series(
    axes: Axes, reproduction: Reproduction, setting: str, quantity: str, series: Sequence[Series], spread: float
) -> None:
    """Ours with its band of `spread` standard errors, and theirs, which they have smoothed."""
    theirs = authors_curves("fig8_wet_chicken")
    ours = {row.algorithm for row in reproduction.rows if row.quantity == quantity}
    for name, their_name, label, colour in series:
        if name not in ours:
            continue
        epoch_T, value_T, stderr_T = select(reproduction, name, setting, quantity)
        axes.plot(epoch_T, value_T, color=colour, linewidth=1.5, label=label)
        if np.isfinite(stderr_T).any():
            low_T, high_T = value_T - spread * stderr_T, value_T + spread * stderr_T
            axes.fill_between(epoch_T, low_T, high_T, color=colour, alpha=0.2, linewidth=0)
        if their_name:
            axes.plot(*theirs[quantity, their_name], color=_darker(colour), **_DASHES)


def _darker(colour: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return 0.6 * red, 0.6 * green, 0.6 * blue
