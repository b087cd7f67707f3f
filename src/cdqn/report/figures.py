"""Pictures of runs. `draw_*` returns a matplotlib Figure, and its namesake without `draw_` writes it.

No pyplot and no global state: a figure needs no display and leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdqn.errors import ConfigError
from cdqn.report.axes import (
    BOUND_TEXT,
    DASHED,
    GREY,
    INK,
    decorate,
    figure_of,
    save,
    say_instead,
    scale_q,
    tick_log_axis,
)
from cdqn.report.palette import ALGORITHMS, appearance, in_order
from cdqn.report.runs import Run, differing_settings, group_by_algorithm
from cdqn.report.statistics import align_curves, mean_band
from cdqn.storage.named_code import is_code_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]
# algorithm -> quantity -> (x_T, value_ST)
Histories = Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]]

QUANTITIES = ("return", "loss", "q")
_NOTE = "line: mean over seeds, on the scale of the axis   band: 95 % bootstrap interval   thin: each seed"


def comparison(runs: Iterable[Run], path: str | Path, rng: np.random.Generator | None = None) -> None:
    """Write `draw_comparison(runs)` as PNG or PDF, by the suffix of `path`."""
    save(draw_comparison(runs, rng), path)


def divergence(
    histories: Histories,
    path: str | Path,
    *,
    bound: float,
    title: str,
    x_label: str = "updates",
    return_label: str = "return",
    q_label: str = "Q",
    rng: np.random.Generator | None = None,
) -> None:
    """Write `draw_divergence(histories, ...)` as PNG or PDF, by the suffix of `path`."""
    labels = {"x_label": x_label, "return_label": return_label, "q_label": q_label}
    save(draw_divergence(histories, bound=bound, title=title, rng=rng, **labels), path)


def draw_comparison(runs: Iterable[Run], rng: np.random.Generator | None = None) -> Figure:
    """Algorithms side by side: return, loss and Q in units of its bound, each over its seeds."""
    groups = group_by_algorithm(runs)
    if not groups:
        raise ConfigError("no runs to compare: give at least one")
    bounded = any(run.q_over_bound()[0].size for group in groups.values() for run in group)
    histories = {algorithm: _histories(group, bounded) for algorithm, group in groups.items()}
    env_label = next(iter(groups.values()))[0].env_label
    return _draw_panels(
        histories,
        bound=1.0 if bounded else None,
        bound_text=BOUND_TEXT,
        return_label="training return",
        q_label="mean max Q(s) / bound" if bounded else "mean max Q(s)",
        title="\n".join(filter(None, (env_label, differing_settings(groups)))),
        x_label="steps",
        rng=rng,
        seeds={algorithm: len(group) for algorithm, group in groups.items()},
    )


def draw_divergence(
    histories: Histories,
    *,
    bound: float,
    title: str,
    x_label: str = "updates",
    return_label: str = "return",
    q_label: str = "Q",
    rng: np.random.Generator | None = None,
) -> Figure:
    """The same three panels from plain arrays: `histories[algorithm][quantity] = (x_T, value_ST)`.

    Quantities are "return", "loss" and "q"; one that an algorithm lacks is left out. The title is the
    caller's: it should say what one sees.
    """
    checked = {algorithm: _check_history(algorithm, history) for algorithm, history in histories.items()}
    seeds = {name: max((len(y_ST) for _, y_ST in h.values()), default=0) for name, h in checked.items()}
    return _draw_panels(
        {name: checked[name] for name in in_order(checked)},
        bound=bound,
        bound_text=f"bound = {bound:.4g}",
        return_label=return_label,
        q_label=q_label,
        title=title,
        x_label=x_label,
        rng=rng,
        seeds=seeds,
    )


# One run ------------------------------------------------------------------------------------------------


def _histories(runs: list[Run], bounded: bool) -> dict[str, tuple[FloatArray, FloatArray]]:
    """The curves of one algorithm on common steps; a run without a quantity is left out of it."""
    curves = {
        "return": [run.curve("return_mean") for run in runs],
        "loss": [run.curve("loss") for run in runs],
        "q": [run.q_over_bound() if bounded else run.curve("q_mean") for run in runs],
    }
    return {name: align_curves([c for c in group if c[0].size]) for name, group in curves.items()}


def _check_history(
    algorithm: str, history: Mapping[str, tuple[ArrayLike, ArrayLike]]
) -> dict[str, tuple[FloatArray, FloatArray]]:
    if algorithm not in ALGORITHMS and not is_code_name(algorithm):
        raise ValueError(f"algorithm {algorithm!r} is none of {', '.join(ALGORITHMS)}")
    checked = {}
    for quantity, (x, value) in history.items():
        x_T, value_ST = np.asarray(x, dtype=np.float64), np.asarray(value, dtype=np.float64)
        if quantity not in QUANTITIES:
            raise ValueError(f"{algorithm}: quantity {quantity!r} is none of {', '.join(QUANTITIES)}")
        if value_ST.ndim != 2 or x_T.shape != value_ST.shape[1:]:
            raise ValueError(
                f"{algorithm}, {quantity}: want x of shape (T,) and values of shape (seeds, T), "
                f"not {x_T.shape} and {value_ST.shape}"
            )
        checked[quantity] = (x_T, value_ST)
    return checked


def _draw_panels(
    histories: Mapping[str, Mapping[str, tuple[FloatArray, FloatArray]]],
    *,
    bound: float | None,
    bound_text: str,
    return_label: str,
    q_label: str,
    title: str,
    x_label: str,
    rng: np.random.Generator | None,
    seeds: Mapping[str, int],
) -> Figure:
    """Three panels; without a generator the bands come from a fixed seed, so that a picture repeats."""
    rng = np.random.default_rng(0) if rng is None else rng
    figure = figure_of(width=12.0, height=4.4)
    return_axes, loss_axes, q_axes = figure.subplots(1, 3, sharex=True)
    loss_axes.set_yscale("log")
    if bound is not None:
        scale_q(q_axes, _pool(histories, "q"), bound)
    labels = (return_label, "loss (mean squared TD error)", q_label)
    for axes, quantity, label in zip((return_axes, loss_axes, q_axes), QUANTITIES, labels, strict=True):
        for algorithm, history in histories.items():
            if quantity in history:
                draw_algorithm(axes, *history[quantity], appearance(algorithm, histories).colour, rng)
        if not axes.lines:
            say_instead(axes, "nothing recorded")
        axes.set_title(label, fontsize=11, color=INK, loc="left")
        axes.set_xlabel(x_label, fontsize=11, color=INK)
        decorate(axes)
    if bound is not None and q_axes.lines:
        below = bool((_pool(histories, "q") < -0.5 * bound).any())
        _draw_bound(q_axes, bound, bound_text, below, at_right=_bound_is_clearer_at_right(histories, bound))
    tick_log_axis(loss_axes)
    figure.suptitle(title, fontsize=13, color=INK)
    _draw_legend(figure, seeds, list(histories))
    return figure


def draw_algorithm(axes: Axes, x_T: FloatArray, value_ST: FloatArray, colour: str, rng: np.random.Generator) -> None:
    """A thin line per seed, and their mean with its band where every seed has a value.

    The mean is taken on the scale of the axis, which on a logarithmic one is the geometric mean: the
    arithmetic mean of seeds that differ by powers of ten would be a picture of the largest alone.
    """
    drawable_ST = np.where(np.isfinite(value_ST), value_ST, np.nan)
    if axes.get_yscale() == "log":
        drawable_ST = np.where(drawable_ST > 0, drawable_ST, np.nan)
    if not np.isfinite(drawable_ST).any():
        return
    if len(drawable_ST) > 1:
        axes.plot(x_T, drawable_ST.T, color=colour, linewidth=0.7, alpha=0.35)
    scale = axes.yaxis.get_transform()
    # Raveled, because matplotlib takes the columns of a matrix for coordinates.
    on_axis_ST = scale.transform(drawable_ST.ravel()).reshape(drawable_ST.shape)
    band = mean_band(on_axis_ST, rng)
    # Clipped to the seeds' own range, which there and back through a logarithm misses by a rounding error.
    least_T, most_T = np.fmin.reduce(drawable_ST), np.fmax.reduce(drawable_ST)
    back = scale.inverted().transform
    mean_T, low_T, high_T = (np.clip(back(curve_T), least_T, most_T) for curve_T in band)
    if len(drawable_ST) > 1:
        axes.fill_between(x_T, low_T, high_T, color=colour, alpha=0.18, linewidth=0)
    axes.plot(x_T, mean_T, color=colour, linewidth=2.0)


def _draw_legend(figure: Figure, seeds: Mapping[str, int], algorithms: list[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=appearance(name, algorithms).colour, linewidth=2.5) for name in algorithms]
    labels = [f"{appearance(name).label} ({_plural(seeds[name], 'seed')})" for name in algorithms]
    figure.legend(handles, labels, loc="outside lower left", ncols=3, fontsize=10, frameon=False)
    if max(seeds.values(), default=0) > 1:
        note = figure.legend([], [], loc="outside lower right", title=_NOTE, title_fontsize=8, frameon=False)
        note.get_title().set_color(GREY)


# Shared by all ------------------------------------------------------------------------------------------


def _bound_is_clearer_at_right(
    histories: Mapping[str, Mapping[str, tuple[FloatArray, FloatArray]]], bound: float
) -> bool:
    """Whether fewer curves pass through the place of the label in the last third than in the first."""
    passes = np.zeros(2)
    for history in histories.values():
        x_T, q_ST = history.get("q", (np.empty(0), np.empty((0, 0))))
        if len(x_T) < 2:
            continue
        low_ST, high_ST = np.fmin(q_ST[:, :-1], q_ST[:, 1:]), np.fmax(q_ST[:, :-1], q_ST[:, 1:])
        through_T = ((low_ST <= 1.6 * bound) & (high_ST >= bound)).sum(0)
        place_T = (x_T[1:] - x_T[0]) / (x_T[-1] - x_T[0])
        passes += [through_T[place_T < 1 / 3].sum(), through_T[place_T > 2 / 3].sum()]
    return bool(passes[1] < passes[0])


def _draw_bound(axes: Axes, bound: float, text: str, below: bool, at_right: bool) -> None:
    """The line, and its label at one end of it."""
    axes.axhline(bound, **DASHED)
    if below:
        axes.axhline(-bound, **DASHED)
    axes.annotate(
        text,
        (0.98 if at_right else 0.02, bound),
        xycoords=("axes fraction", "data"),
        ha="right" if at_right else "left",
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=9,
        color=GREY,
    )


def _pool(histories: Mapping[str, Mapping[str, tuple[FloatArray, FloatArray]]], quantity: str) -> FloatArray:
    pools = [history[quantity][1].ravel() for history in histories.values() if quantity in history]
    return np.concatenate(pools) if pools else np.empty(0)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
