"""The picture of one run: return, loss, and Q beside what it can be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cdqn.report.axes import (
    BOUND_TEXT,
    DASHED,
    GREY,
    INK,
    decorate,
    figure_of,
    finite,
    save,
    say_instead,
    scale_q,
    tick_log_axis,
)
from cdqn.report.palette import appearance
from cdqn.report.runs import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FAR_BOUND = 3.0
"""Times all that was earned and expected: a bound farther away is named, not drawn."""


def learning_curve(run: Run, path: str | Path) -> None:
    """Write `draw_learning_curve(run)` as PNG or PDF, by the suffix of `path`."""
    save(draw_learning_curve(run), path)


def draw_learning_curve(run: Run) -> Figure:
    """One run: return, loss, and Q against its bound, stacked over the same steps."""
    figure = figure_of(width=8.0, height=8.0)
    return_axes, loss_axes, q_axes = figure.subplots(3, 1, sharex=True)
    label, colour = appearance(run.algorithm)
    figure.suptitle(f"{run.env_label} · {label} · seed {run.seed}", fontsize=13, color=INK)
    _draw_returns(return_axes, run, colour)
    _draw_loss(loss_axes, run, colour)
    _draw_q(q_axes, run, colour)
    for axes in (return_axes, loss_axes, q_axes):
        decorate(axes)
        axes.tick_params(labelbottom=axes is q_axes)
    tick_log_axis(loss_axes)
    q_axes.set_xlabel("steps", fontsize=11, color=INK)
    figure.align_ylabels()
    return figure


def _draw_returns(axes: Axes, run: Run, colour: str) -> None:
    axes.set_ylabel("return", fontsize=11, color=INK)
    curves = (run.episodes(), run.curve("return_mean"), run.evaluations())
    episodes, mean, evaluations = map(finite, curves)
    if not any(step_T.size for step_T, _ in (episodes, mean, evaluations)):
        say_instead(axes, "no episode has ended yet")
        return
    # Rasterized: a long run has 10⁵ episodes, which would make a PDF of many megabytes.
    axes.plot(*episodes, ".", color=colour, markersize=4, alpha=0.3, markeredgewidth=0, rasterized=True)
    axes.plot([], [], ".", color=colour, markersize=6, alpha=0.5, mew=0, label="training episode")
    axes.plot(*mean, color=colour, linewidth=1.8, label="mean of 20 episodes")
    if evaluations[0].size:
        style: dict[str, Any] = {
            "markersize": 6,
            "markerfacecolor": "white",
            "markeredgecolor": INK,
            "markeredgewidth": 1.3,
        }
        axes.plot(*evaluations, "D", label="evaluation", zorder=5, clip_on=False, **style)
    axes.legend(loc="best", fontsize=9, frameon=False)


def _draw_loss(axes: Axes, run: Run, colour: str) -> None:
    axes.set_ylabel("loss\n(mean squared TD error)", fontsize=11, color=INK)
    axes.set_yscale("log")
    step_T, loss_T = finite(run.curve("loss"), positive=True)
    if not step_T.size:
        say_instead(axes, "no loss yet: learning has not begun")
        return
    axes.plot(step_T, loss_T, color=colour, linewidth=1.3, label="loss")


def _draw_q(axes: Axes, run: Run, colour: str) -> None:
    axes.set_ylabel("mean max Q(s)", fontsize=11, color=INK)
    step_T, q_T = finite(run.curve("q_mean"))
    bound_step_T, bound_T = finite(run.curve("q_bound"))
    if not step_T.size:
        say_instead(axes, "no Q yet: learning has not begun")
        return
    axes.plot(step_T, q_T, color=colour, linewidth=1.8, label="Q")
    earned = _draw_earned(axes, run)
    if not bound_step_T.size or bound_T.max() <= 0:
        return
    label = f"{BOUND_TEXT} = {bound_T[-1]:.4g}"
    if earned and bound_T[-1] > FAR_BOUND * max(earned, np.abs(q_T).max()):
        axes.plot([], [], label=f"{label}, beyond this axis", **DASHED)  # it would press all else to a line
    else:
        axes.plot(bound_step_T, bound_T, label=label, **DASHED)
        if q_T.min() < 0:
            axes.plot(bound_step_T, -bound_T, **DASHED)
        scale_q(axes, q_T, float(bound_T[-1]))
    # Above the axes: inside, with a bound at either edge and Q between them, there may be no free place.
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderaxespad=0, fontsize=9, frameon=False)


def _draw_earned(axes: Axes, run: Run) -> float | None:
    """The range of the discounted returns that the last 100 episodes had, where Q should lie; its largest magnitude."""
    rows = [row for row in run.rows.get("progress", ()) if row.get("earned_low") is not None]
    if not rows:  # as in older runs
        return None
    keys = ("step", "earned_low", "earned_high")
    step_T, low_T, high_T = np.array([[row[key] for key in keys] for row in rows]).T
    axes.fill_between(step_T, low_T, high_T, color=GREY, alpha=0.2, linewidth=0, label="earned, last 100 episodes")
    return float(max(np.abs(low_T).max(), np.abs(high_T).max()))
