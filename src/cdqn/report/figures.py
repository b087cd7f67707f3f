"""Pictures of runs. `draw_*` returns a matplotlib Figure, and its namesake without `draw_` writes it.

No pyplot and no global state: a figure needs no display and leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
from cdqn.report.comparison import finals_of
from cdqn.report.groups import Group, Look, differing_settings, looks
from cdqn.report.palette import ALGORITHMS, appearance, in_order
from cdqn.report.runs import Curve, Run
from cdqn.report.statistics import FEWEST, align_curves, mean_band, mean_interval
from cdqn.storage.named_code import is_code_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]
# algorithm -> quantity -> (x_T, value_ST)
Histories = Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]]

QUANTITIES = ("return", "loss", "q")
_MEAN = "line: mean over seeds, on the scale of the axis"
_BAND = "   band: 95 % interval (Student's t)"
_SEED = "   thin: each seed"
_DOTS = "   dots: final greedy evaluation, as in the table"


class Drawn(NamedTuple):
    """What is drawn of a group: its curves by quantity, x_T and value_ST."""

    label: str
    look: Look
    seeds: int
    history: Mapping[str, tuple[FloatArray, FloatArray]]
    finals: Sequence[float] = ()
    """Final evaluations, drawn beside the returns."""


def comparison(groups: Sequence[Group], path: str | Path) -> None:
    """Write `draw_comparison(groups)` as PNG or PDF, by the suffix of `path`."""
    save(draw_comparison(groups), path)


def divergence(
    histories: Histories,
    path: str | Path,
    *,
    bound: float,
    title: str,
    x_label: str = "updates",
    return_label: str = "return",
    q_label: str = "Q",
) -> None:
    """Write `draw_divergence(histories, ...)` as PNG or PDF, by the suffix of `path`."""
    labels = {"x_label": x_label, "return_label": return_label, "q_label": q_label}
    save(draw_divergence(histories, bound=bound, title=title, **labels), path)


def draw_comparison(groups: Sequence[Group]) -> Figure:
    """Groups of runs side by side: return, loss and Q in units of its bound, each over its seeds.

    Returns are those of the greedy evaluations where the runs were told to make some on their way, else of training.
    """
    if not groups:
        raise ConfigError("no runs to compare: give at least one")
    runs = [run for group in groups for run in group.runs]
    bounded = any(run.q_over_bound()[0].size for run in runs)
    evaluated = any(run.config.get("evaluation_period_steps") for run in runs)
    drawn = [
        Drawn(
            group.label,
            look,
            len(group.runs),
            _histories(group.runs, bounded, evaluated),
            list(finals_of(group.runs).values()),
        )
        for group, look in zip(groups, looks(groups), strict=True)
    ]
    return _draw_panels(
        drawn,
        bound=1.0 if bounded else None,
        bound_text=BOUND_TEXT,
        return_label=_greedy_label(runs) if evaluated else "training return",
        q_label="mean max Q(s) / bound" if bounded else "mean max Q(s)",
        title="\n".join(filter(None, (runs[0].env_label, differing_settings(groups)))),
        x_label="steps",
    )


def draw_divergence(
    histories: Histories,
    *,
    bound: float,
    title: str,
    x_label: str = "updates",
    return_label: str = "return",
    q_label: str = "Q",
) -> Figure:
    """The same three panels from plain arrays: `histories[algorithm][quantity] = (x_T, value_ST)`.

    Quantities are "return", "loss" and "q"; one that an algorithm lacks is left out. The title is the
    caller's: it should say what one sees.
    """
    checked = {algorithm: _check_history(algorithm, history) for algorithm, history in histories.items()}
    drawn = []
    for name in in_order(checked):
        label, colour = appearance(name, checked)
        seeds = max((len(y_ST) for _, y_ST in checked[name].values()), default=0)
        drawn.append(Drawn(label, Look(colour), seeds, checked[name]))
    return _draw_panels(
        drawn,
        bound=bound,
        bound_text=f"bound = {bound:.4g}",
        return_label=return_label,
        q_label=q_label,
        title=title,
        x_label=x_label,
    )


def _histories(runs: list[Run], bounded: bool, evaluated: bool) -> dict[str, tuple[FloatArray, FloatArray]]:
    """The curves of one group on common steps; a run without a quantity is left out of it."""
    curves: dict[str, list[Curve]] = {
        "return": [run.evaluations() if evaluated else run.curve("return_mean") for run in runs],
        "loss": [run.curve("loss") for run in runs],
        "q": [run.q_over_bound() if bounded else run.curve("q_mean") for run in runs],
    }
    return {name: align_curves([c for c in group if c[0].size]) for name, group in curves.items()}


def _greedy_label(runs: Iterable[Run]) -> str:
    """With the number of episodes that an evaluation is the mean of."""
    counts = sorted({int(run.final_evaluation["episodes"]) for run in runs if run.final_evaluation})
    ends = " to ".join(str(count) for count in dict.fromkeys(counts[:1] + counts[-1:]))
    return f"greedy return (mean of {ends} episodes)" if ends else "greedy return"


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
    drawn: Sequence[Drawn],
    *,
    bound: float | None,
    bound_text: str,
    return_label: str,
    q_label: str,
    title: str,
    x_label: str,
) -> Figure:
    """Three panels."""
    figure = figure_of(width=12.0, height=4.2 + 0.2 * -(-len(drawn) // 3))
    return_axes, loss_axes, q_axes = figure.subplots(1, 3, sharex=True)
    loss_axes.set_yscale("log")
    if bound is not None:
        scale_q(q_axes, _pool(drawn, "q"), bound)
    labels = (return_label, "loss (mean squared TD error)", q_label)
    for axes, quantity, label in zip((return_axes, loss_axes, q_axes), QUANTITIES, labels, strict=True):
        for one in drawn:
            if quantity in one.history:
                draw_curves(axes, *one.history[quantity], one.look)
        if not axes.lines:
            say_instead(axes, "nothing recorded")
        axes.set_title(label, fontsize=11, color=INK, loc="left")
        axes.set_xlabel(x_label, fontsize=11, color=INK)
        decorate(axes)
    _draw_finals(return_axes, drawn)
    if bound is not None and q_axes.lines:
        below = bool((_pool(drawn, "q") < -0.5 * bound).any())
        _draw_bound(q_axes, bound, bound_text, below, at_right=_bound_is_clearer_at_right(drawn, bound))
    tick_log_axis(loss_axes)
    figure.suptitle(title, fontsize=13, color=INK)
    _draw_legend(figure, drawn)
    return figure


def draw_curves(axes: Axes, x_T: FloatArray, value_ST: FloatArray, look: Look) -> None:
    """A thin line per seed, and their mean where every seed has a value, with its band if they are enough for one.

    The mean is taken on the scale of the axis, which on a logarithmic one is the geometric mean: the
    arithmetic mean of seeds that differ by powers of ten would be a picture of the largest alone.
    """
    drawable_ST = np.where(np.isfinite(value_ST), value_ST, np.nan)
    if axes.get_yscale() == "log":
        drawable_ST = np.where(drawable_ST > 0, drawable_ST, np.nan)
    if not np.isfinite(drawable_ST).any():
        return
    if len(drawable_ST) > 1:
        axes.plot(x_T, drawable_ST.T, color=look.colour, linewidth=0.7, alpha=0.35)
    scale = axes.yaxis.get_transform()
    # Raveled, because matplotlib takes the columns of a matrix for coordinates.
    on_axis_ST = scale.transform(drawable_ST.ravel()).reshape(drawable_ST.shape)
    with np.errstate(over="ignore"):  # an end of the band may lie beyond all numbers where the seeds do not
        mean_T, low_T, high_T = map(scale.inverted().transform, mean_band(on_axis_ST))
    # Clipped to the seeds' own range, which there and back through a logarithm misses by a rounding error.
    mean_T = np.clip(mean_T, np.fmin.reduce(drawable_ST), np.fmax.reduce(drawable_ST))
    if (banded_T := np.isfinite(low_T) & np.isfinite(high_T)).any():
        axes.fill_between(x_T, low_T, high_T, where=banded_T, color=look.colour, alpha=0.18, linewidth=0)
    axes.plot(x_T, mean_T, color=look.colour, linewidth=2.0, linestyle=look.dashes)


def _draw_finals(axes: Axes, drawn: Sequence[Drawn]) -> None:
    """The numbers of the table, right of the curves, one beside the other."""
    ends = [x_T[-1] for one in drawn for x_T, _ in one.history.values() if x_T.size]
    for place, one in enumerate(one for one in drawn if np.isfinite(one.finals).any()):
        mean, low, high = mean_interval(one.finals)
        x = max(ends, default=1.0) * (1.02 + 0.02 * place)
        axes.plot([x], [mean], "o", color=one.look.colour, markersize=4.5)
        if np.isfinite([low, high]).all():
            axes.plot([x, x], [low, high], color=one.look.colour, linewidth=1.4)


def _draw_legend(figure: Figure, drawn: Sequence[Drawn]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=one.look.colour, linewidth=2.5, linestyle=one.look.dashes) for one in drawn]
    # A dollar would begin a formula.
    labels = [f"{one.label} ({_plural(one.seeds, 'seed')})".replace("$", r"\$") for one in drawn]
    seeds = max((one.seeds for one in drawn), default=0)
    notes = [_MEAN * (seeds > 1), _BAND * (seeds >= FEWEST), _SEED * (seeds > 1)]
    notes.append(_DOTS * any(np.isfinite(one.finals).any() for one in drawn))
    note: dict[str, Any] = {"title": "".join(notes).strip(), "title_fontsize": 8, "alignment": "left"}
    legend = figure.legend(handles, labels, loc="outside lower left", ncols=3, fontsize=10, frameon=False, **note)
    legend.get_title().set_color(GREY)


def _bound_is_clearer_at_right(drawn: Sequence[Drawn], bound: float) -> bool:
    """Whether fewer curves pass through the place of the label in the last third than in the first."""
    passes = np.zeros(2)
    for one in drawn:
        x_T, q_ST = one.history.get("q", (np.empty(0), np.empty((0, 0))))
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


def _pool(drawn: Sequence[Drawn], quantity: str) -> FloatArray:
    pools = [one.history[quantity][1].ravel() for one in drawn if quantity in one.history]
    return np.concatenate(pools) if pools else np.empty(0)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
