"""Figures 1, 2 and 3 and the condition numbers, in the paper's layout, with the authors' curves as rings on ours."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cdqn.report.authors import authors_curves
from cdqn.report.axes import GREY, INK, decorate_plainly, figure_of, save
from cdqn.report.palette import ALGORITHMS
from cdqn.report.reproduction import Point, Reproduction, select
from cdqn.tabular import EQUAL, LABELS, FiniteMDP, optimal_q
from cdqn.tasks.cliff_walking import DOWN, HEIGHT, LEFT, ONE_WAY_RIGHT, RIGHT, UP, cliff_walking, one_way_cliff_walking

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]
Arrows = dict[int, tuple[int, int]]

_CLIFF, _GOAL = "#696969", "#ff8c00"
# Q-table learning is DQN's rule on a table, and has its colour.
_COLOURS = {"q_table": ALGORITHMS["dqn"].colour, "rg": ALGORITHMS["rg"].colour, "cdqn": ALGORITHMS["cdqn"].colour}
_RINGS: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4.2, "mfc": "white", "mew": 0.9, "zorder": 3}
_RINGS_PER_CURVE = 22
_MOVES: Arrows = {UP: (0, 1), DOWN: (0, -1), RIGHT: (1, 0), LEFT: (-1, 0)}


def published(name: str) -> list[Point]:
    """The authors' curves of figure 1, 2 or 3, under our names."""
    files = {"fig1": "fig1_cliff_walking", "fig2": "fig2_gamma_dependence", "fig3": "fig3_one_way_cliff"}
    curves = authors_curves(files[name])
    found = []
    for (panel, series), (x_T, y_T) in curves.items():
        if panel.endswith("scatter"):
            continue
        quantity, label, setting = _our_name(name, panel, series)
        algorithm = next(key for key, text in LABELS.items() if text == label)
        found += [Point(algorithm, setting, x, quantity, y, float("nan")) for x, y in zip(x_T, y_T, strict=True)]
    return found


def _our_name(name: str, panel: str, series: str) -> tuple[str, str, str]:
    """Quantity, label of the algorithm and setting of one of the authors' curves."""
    first, _, second = series.partition("_")
    if name == "fig1":
        return {"MSBE": "msbe", "dist2": "distance"}[first], second, "width 10"
    if name == "fig2":
        return "msbe", first, f"gamma {second.removeprefix('gamma')}"
    return {"total_reward": "greedy_return", "min_Q": "min_q"}[panel], first, f"epsilon {second.removeprefix('eps')}"


def draw_fig1(reproduction: Reproduction, path: str | Path) -> None:
    """The task at the left; for each width the curves over steps, and the distance to Q* over the MSBE."""
    figure = figure_of(12.0, 6.4)
    grid = figure.add_gridspec(2, 3, width_ratios=(0.95, 1.25, 1.0))
    _draw_cliff(figure.add_subplot(grid[:, 0]))
    for row, (width, discount, right) in enumerate(((10, 0.9, 5e5), (20, 0.95, 7e6))):
        curves, scatter = figure.add_subplot(grid[row, 1]), figure.add_subplot(grid[row, 2])
        for algorithm in ("q_table", "rg", "cdqn"):
            step_T, msbe_T, _ = select(reproduction, algorithm, f"width {width}", "msbe")
            _, distance_T, _ = select(reproduction, algorithm, f"width {width}", "distance")
            colour = _COLOURS[algorithm]
            if algorithm == "cdqn":
                curves.plot(step_T, msbe_T, color=colour, linewidth=1.2, alpha=0.8)
                continue
            curves.plot(step_T, msbe_T, color=colour, linewidth=1.8)
            curves.plot(step_T, distance_T, color=colour, linewidth=1.8, linestyle=(0, (4, 2)))
            marker = {"q_table": "+", "rg": "x"}[algorithm]
            scatter.plot(
                msbe_T, distance_T, linestyle="", marker=marker, markersize=5, color=colour, label=LABELS[algorithm]
            )
            if width == 10:
                _draw_authors_fig1(curves, scatter, algorithm)
        _set_log(curves, x=(10, right), y=(1e-1, 5e5))
        curves.axhline(1, color=GREY, linewidth=0.8, linestyle=":")
        curves.set_xlabel("update steps")
        curves.set_title(rf"width {width}, $\gamma = {discount}$", loc="left")
        _set_log(scatter, x=(1e-2, 3e5), y=(1e-2, 5e5))
        scatter.set_xlabel("MSBE (sum over pairs)")
        scatter.set_ylabel("$|Q-Q^*|^2$ (sum over pairs)")
        scatter.legend(loc="lower right", frameon=False)
    _legend(
        figure,
        [
            ("MSBE of Q-table", {"color": _COLOURS["q_table"]}),
            ("$|Q-Q^*|^2$ of Q-table", {"color": _COLOURS["q_table"], "linestyle": (0, (4, 2))}),
            ("MSBE of RG", {"color": _COLOURS["rg"]}),
            ("$|Q-Q^*|^2$ of RG", {"color": _COLOURS["rg"], "linestyle": (0, (4, 2))}),
            ("MSBE of C-DQN (not in the paper)", {"color": _COLOURS["cdqn"], "linewidth": 1.2}),
            ("the authors' (width 10)", _RINGS | {"color": INK}),
        ],
    )
    _finish(figure, f"Fig. 1 again: cliff walking from random pairs · {reproduction.about}", path)


def draw_fig2(reproduction: Reproduction, path: str | Path) -> None:
    """The MSBE over steps for three γ, and beside it what the paper says of them: the learning time against 1/(1−γ)."""
    figure = figure_of(11.0, 4.8)
    curves, times = figure.subplots(1, 2, width_ratios=(1.25, 1))
    authors = authors_curves("fig2_gamma_dependence")
    entries: list[tuple[str, dict[str, Any]]] = []
    styles = {"0.9": "-", "0.99": (0, (5, 2)), "1": (0, (1, 1.2))}
    for algorithm in ("q_table", "rg"):
        for gamma, style in styles.items():
            step_T, msbe_T, _ = select(reproduction, algorithm, f"gamma {gamma}", "msbe")
            if not step_T.size:
                continue
            look: dict[str, Any] = {"color": _COLOURS[algorithm], "linestyle": style}
            curves.plot(step_T, msbe_T, linewidth=1.8, **look)
            _draw_rings(curves, *authors["MSBE_vs_steps", f"{LABELS[algorithm]}_gamma{gamma}"], _COLOURS[algorithm])
            entries.append((rf"{LABELS[algorithm]}, $\gamma = {gamma}$", look))
    _set_log(curves, x=(30, 1e7), y=(1e-1, 3e5))
    curves.axhline(1, color=GREY, linewidth=0.8, linestyle=":")
    curves.set_xlabel("update steps")
    curves.set_ylabel("MSBE (sum over pairs)")
    _draw_times(times, reproduction)
    _legend(figure, [*entries, ("the authors'", _RINGS | {"color": INK})], columns=7)
    _finish(figure, f"Fig. 2 again: cliff walking of width 10 · {reproduction.about}", path)


def draw_fig3(reproduction: Reproduction, path: str | Path) -> None:
    """The task at the left; at the right the greedy return above, the least Q below."""
    figure = figure_of(11.0, 6.0)
    grid = figure.add_gridspec(2, 2, width_ratios=(0.8, 1.2))
    _draw_one_way(figure.add_subplot(grid[:, 0]))
    upper = figure.add_subplot(grid[0, 1])
    lower = figure.add_subplot(grid[1, 1], sharex=upper)
    authors = authors_curves("fig3_one_way_cliff")
    series = [("q_table", "0", "-"), ("rg", "0", "-"), ("rg", "0.01", (0, (5, 2))), ("rg", "0.1", (0, (1, 1.2)))]
    entries: list[tuple[str, dict[str, Any]]] = []
    for axes, quantity, panel in ((upper, "greedy_return", "total_reward"), (lower, "min_q", "min_Q")):
        for algorithm, epsilon, style in series:
            step_T, value_T, stderr_T = select(reproduction, algorithm, f"epsilon {epsilon}", quantity)
            look: dict[str, Any] = {"color": _COLOURS[algorithm], "linestyle": style}
            axes.fill_between(step_T, value_T - stderr_T, value_T + stderr_T, alpha=0.2, lw=0, color=look["color"])
            axes.plot(step_T, value_T, linewidth=1.8, **look)
            _draw_rings(axes, *authors[panel, f"{LABELS[algorithm]}_eps{epsilon}"], _COLOURS[algorithm])
            if axes is upper:
                entries.append((rf"{LABELS[algorithm]}, $\epsilon = {epsilon}$", look))
        decorate_plainly(axes)
        axes.set_xscale("log")
    upper.set_ylabel("return of the greedy policy")
    lower.set_ylabel(r"$\min\ Q(s,a)$")
    lower.set_xlabel("steps")
    upper.tick_params(labelbottom=False)
    band = ("band: ± standard error", {"color": "#cccccc", "linewidth": 6})
    _legend(figure, [*entries, ("the authors'", _RINGS | {"color": INK}), band], columns=6)
    _finish(figure, f"Fig. 3 again: one-way cliff walking, online · {reproduction.about}", path)


def draw_conditioning(reproduction: Reproduction, path: str | Path) -> None:
    """κ against the length of a trajectory, and for cycles against the horizon 1/(1−γ)."""
    figure = figure_of(11.0, 4.8)
    left, right = figure.subplots(1, 2)
    colours = dict(zip(("trajectory with the added term", "trajectory"), ("#0072B2", "#D55E00"), strict=True))
    labels = {"trajectory with the added term": "with $Q(s_0,a_0)^2$ added", "trajectory": "as it is (Eq. 6)"}
    for setting, colour in colours.items():
        size_T, kappa_T, _ = select(reproduction, "MSBE", setting, "kappa")
        left.plot(size_T, kappa_T, "o", color=colour, markersize=5, mfc="white", label=labels[setting], zorder=3)
    dense = np.geomspace(size_T.min(), size_T.max(), 100)
    cosine = np.cos(np.pi / (dense + 1))
    left.plot(
        dense,
        (1 + cosine) / (1 - cosine),
        color=INK,
        lw=1.2,
        label=r"$(1+\cos\frac{\pi}{N+1})/(1-\cos\frac{\pi}{N+1})$",
    )
    left.plot(dense, 16 * dense**2 / np.pi**2, color=GREY, lw=1.2, ls=(0, (4, 2)), label=r"$16N^2/\pi^2$, slope 2")
    left.set_xlabel("length $N$ of the trajectory")
    left.set_title(r"a trajectory, $\gamma = 1$", loc="left")
    settings = dict.fromkeys(row.setting for row in reproduction.rows if row.setting.startswith("cycle"))
    markers = ("o", "s", "D", "^", "v", "P")
    for number, setting in enumerate(settings):
        horizon_T, kappa_T, _ = select(reproduction, "MSBE", setting, "kappa")
        size = 11 - 1.4 * number  # the points coincide: rings of falling size
        right.plot(horizon_T, kappa_T, markers[number], markersize=size, mfc="none", label=f"N = {setting.split()[-1]}")
    dense = np.geomspace(horizon_T.min(), horizon_T.max(), 100)
    gamma = 1 - 1 / dense
    right.plot(dense, (1 + gamma) ** 2 / (1 - gamma) ** 2, color=INK, lw=1.2, label=r"$(1+\gamma)^2/(1-\gamma)^2$")
    right.set_xlabel(r"horizon $1/(1-\gamma)$")
    right.set_title("a cycle of $N$ states", loc="left")
    for axes in (left, right):
        _set_log(axes)
        axes.set_ylabel(r"condition number $\kappa$ of the Hessian")
        axes.legend(loc="upper left", frameon=False, fontsize=9.5)
    _finish(figure, f"Condition numbers of the MSBE (Sec. 3.1) · {reproduction.about}", path)


# Parts --------------------------------------------------------------------------------------------------


def _draw_authors_fig1(curves: Axes, scatter: Axes, algorithm: str) -> None:
    authors = authors_curves("fig1_cliff_walking")
    for quantity in ("MSBE", "dist2"):
        x, y = authors["gamma0.9_width10_curves", f"{quantity}_{LABELS[algorithm]}"]
        _draw_rings(curves, x, y, _COLOURS[algorithm])
    x, y = authors["gamma0.9_width10_scatter", LABELS[algorithm]]
    _draw_rings(scatter, x, y, INK)


def _draw_rings(axes: Axes, x: FloatArray, y: FloatArray, colour: str) -> None:
    """Some of the authors' points, at about equal distances on a logarithmic axis."""
    order = np.argsort(x)
    wanted = np.geomspace(x.min(), x.max(), _RINGS_PER_CURVE)
    at = np.unique(order[np.clip(np.searchsorted(x[order], wanted), 0, len(x) - 1)])
    axes.plot(x[at], y[at], color=colour, **_RINGS)


def _draw_times(axes: Axes, reproduction: Reproduction) -> None:
    """Steps until the mean MSBE is below 1, from the data of the curves: exact to 5 %."""
    for algorithm, slope_label in (("q_table", None), ("rg", "slope 1")):
        points = []
        for setting in dict.fromkeys(row.setting for row in reproduction.rows if row.algorithm == algorithm):
            gamma = float(setting.split()[-1])
            step_T, msbe_T, _ = select(reproduction, algorithm, setting, "msbe")
            if gamma < 1 and (msbe_T < 1).any():
                points.append((1 / (1 - gamma), step_T[(msbe_T < 1).argmax()]))
        horizon, step = np.array(sorted(points)).reshape(-1, 2).T
        axes.plot(horizon, step, "o-", color=_COLOURS[algorithm], linewidth=1.5, markersize=5, label=LABELS[algorithm])
        if slope_label and len(points) > 1:
            axes.plot(horizon, step[-1] * horizon / horizon[-1], color=GREY, ls=(0, (4, 2)), lw=1.2, label=slope_label)
    _set_log(axes)
    axes.set_xlabel(r"horizon $1/(1-\gamma)$")
    axes.set_ylabel("steps until MSBE < 1")
    axes.legend(loc="center right", frameon=False)


def _draw_cliff(axes: Axes) -> None:
    """The task of figure 1 with its optimal policy."""
    width = 10
    _draw_cells(axes, width, HEIGHT, cliff=[(column, 0) for column in range(1, width - 1)], goal=(width - 1, 0))
    mdp = cliff_walking(width)
    for state, (column, row) in enumerate((s % width, HEIGHT - 1 - s // width) for s in range(len(mdp.reward))):
        _draw_arrows(axes, column, row, _optimal_actions(mdp, 0.9, state), _MOVES)
    axes.set_title(
        "The task; arrows: the optimal policy.\n"
        "A step costs 1, one into the cliff 100;\n"
        "there and at the goal the episode ends.",
        loc="left",
        fontsize=10,
    )


def _draw_one_way(axes: Axes) -> None:
    """The task of figure 3 with its optimal policy."""
    width = 8
    _draw_cells(axes, width, 2, cliff=[(column, 1) for column in range(width)], goal=(width - 1, 0))
    mdp = one_way_cliff_walking(width)
    for state in range(width - 1):
        _draw_arrows(axes, state, 0, _optimal_actions(mdp, 1.0, state), {ONE_WAY_RIGHT: (1, 0)})
    axes.set_title(
        "The task; arrows: the optimal policy.\n"
        "A step to the right gives 2; a step up gives −1\n"
        "and the episode ends, as it does at the goal.",
        loc="left",
        fontsize=10,
    )


def _optimal_actions(mdp: FiniteMDP, discount: float, state: int) -> list[int]:
    q_A = optimal_q(mdp, discount)[state]
    return [int(action) for action in np.flatnonzero(q_A.max() - q_A < EQUAL)]


def _draw_cells(axes: Axes, width: int, height: int, cliff: Iterable[tuple[int, int]], goal: tuple[int, int]) -> None:
    from matplotlib.patches import Rectangle

    for column, row in cliff:
        axes.add_patch(Rectangle((column, row), 1, 1, color=_CLIFF))
    axes.add_patch(Rectangle(goal, 1, 1, color=_GOAL))
    axes.text(goal[0] + 0.5, goal[1] + 0.5, "Goal", ha="center", va="center", fontsize=9)
    axes.hlines(range(height + 1), 0, width, color=INK, linewidth=1)
    axes.vlines(range(width + 1), 0, height, color=INK, linewidth=1)
    axes.set(xlim=(-0.1, width + 0.1), ylim=(-0.1, height + 0.1), aspect="equal")
    axes.axis("off")


def _draw_arrows(axes: Axes, column: int, row: int, actions: Iterable[int], moves: Arrows) -> None:
    for action in actions:
        dx, dy = moves[action]
        look = {"arrowstyle": "-|>", "color": "#c22f2f", "lw": 1.1, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 7}
        axes.annotate("", (column + 0.5 + 0.38 * dx, row + 0.5 + 0.38 * dy), (column + 0.5, row + 0.5), arrowprops=look)


def _set_log(axes: Axes, x: tuple[float, float] | None = None, y: tuple[float, float] | None = None) -> None:
    from matplotlib.ticker import NullFormatter

    if x is None and not any(np.size(line.get_xdata()) for line in axes.get_lines()):
        x = y = (1, 10)  # nothing to draw, and nothing to take the limits of a logarithmic axis from
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_formatter(NullFormatter())
    if x is not None:
        axes.set_xlim(*x)
    if y is not None:
        axes.set_ylim(*y)
    decorate_plainly(axes)  # not `decorate`: these axes are in powers of ten, and the MSBE goes below 1


def _legend(figure: Figure, entries: list[tuple[str, dict[str, Any]]], columns: int = 3) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=label, **({"linewidth": 1.8} | look)) for label, look in entries]
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9.5)


def _finish(figure: Figure, title: str, path: str | Path) -> None:
    figure.suptitle(title, fontsize=12, color=INK)
    save(figure, path)
