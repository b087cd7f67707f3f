"""Pictures of runs. `draw_*` returns a matplotlib Figure, and its namesake without `draw_` writes it.

No pyplot and no global state: a figure needs no display and leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdqn.errors import ConfigError
from cdqn.report.palette import appearance, in_order
from cdqn.report.runs import Curve, Run, differing_settings, group_by_algorithm
from cdqn.report.statistics import align_curves, mean_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]
# algorithm -> quantity -> (x_T, value_ST)
Histories = Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]]

QUANTITIES = ("return", "loss", "q")
_INK, _GREY = "#222222", "#777777"
# Q within a few bounds is readable on a linear axis, and easier to read there.
_LINEAR_UP_TO_BOUNDS = 3.0
_BOUND_TEXT = r"bound $r_\mathrm{max}/(1-\gamma)$"
_NOTE = "line: mean over seeds, on the scale of the axis   band: 95 % bootstrap interval   thin: each seed"


def learning_curve(run: Run, path: str | Path) -> None:
    """Write `draw_learning_curve(run)` as PNG or PDF, by the suffix of `path`."""
    save(draw_learning_curve(run), path)


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


def draw_learning_curve(run: Run) -> Figure:
    """One run: return, loss, and Q against its bound, stacked over the same steps."""
    figure = figure_of(width=8.0, height=8.0)
    return_axes, loss_axes, q_axes = figure.subplots(3, 1, sharex=True)
    label, colour = appearance(run.algorithm)
    figure.suptitle(f"{run.env_label} · {label} · seed {run.seed}", fontsize=13, color=_INK)
    _draw_returns(return_axes, run, colour)
    _draw_loss(loss_axes, run, colour)
    _draw_q(q_axes, run, colour)
    for axes in (return_axes, loss_axes, q_axes):
        decorate(axes)
        axes.tick_params(labelbottom=axes is q_axes)
    _tick_log_axis(loss_axes)
    q_axes.set_xlabel("steps", fontsize=11, color=_INK)
    figure.align_ylabels()
    return figure


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
        bound_text=_BOUND_TEXT,
        return_label="training return",
        q_label="mean max Q(s′) / bound" if bounded else "mean max Q(s′)",
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


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure, 150 dots per inch; its folder is made, and the same figure gives the same file."""
    path = Path(path)
    if path.suffix not in (".png", ".pdf"):
        raise ConfigError(f"cannot draw {path}: a figure is written as .png or .pdf, not {path.suffix!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata={"CreationDate": None} if path.suffix == ".pdf" else None)


# One run ------------------------------------------------------------------------------------------------


def _draw_returns(axes: Axes, run: Run, colour: str) -> None:
    axes.set_ylabel("return", fontsize=11, color=_INK)
    curves = (run.episodes(), run.curve("return_mean"), run.evaluations())
    episodes, mean, evaluations = map(_finite, curves)
    if not any(step_T.size for step_T, _ in (episodes, mean, evaluations)):
        _say(axes, "no episode has ended yet")
        return
    # Rasterized: a long run has 10⁵ episodes, which would make a PDF of many megabytes.
    axes.plot(*episodes, ".", color=colour, markersize=4, alpha=0.3, markeredgewidth=0, rasterized=True)
    axes.plot([], [], ".", color=colour, markersize=6, alpha=0.5, mew=0, label="training episode")
    axes.plot(*mean, color=colour, linewidth=1.8, label="mean of 20 episodes")
    if evaluations[0].size:
        style: dict[str, Any] = {
            "markersize": 6,
            "markerfacecolor": "white",
            "markeredgecolor": _INK,
            "markeredgewidth": 1.3,
        }
        axes.plot(*evaluations, "D", label="evaluation", zorder=5, clip_on=False, **style)
    axes.legend(loc="best", fontsize=9, frameon=False)


def _draw_loss(axes: Axes, run: Run, colour: str) -> None:
    axes.set_ylabel("loss\n(mean squared TD error)", fontsize=11, color=_INK)
    axes.set_yscale("log")
    step_T, loss_T = _finite(run.curve("loss"), positive=True)
    if not step_T.size:
        _say(axes, "no loss yet: learning has not begun")
        return
    axes.plot(step_T, loss_T, color=colour, linewidth=1.3, label="loss")


def _draw_q(axes: Axes, run: Run, colour: str) -> None:
    axes.set_ylabel("mean max Q(s′)", fontsize=11, color=_INK)
    step_T, q_T = _finite(run.curve("q_mean"))
    bound_step_T, bound_T = _finite(run.curve("q_bound"))
    if not step_T.size:
        _say(axes, "no Q yet: learning has not begun")
        return
    axes.plot(step_T, q_T, color=colour, linewidth=1.8, label="Q")
    if not bound_step_T.size or bound_T.max() <= 0:
        return
    axes.plot(bound_step_T, bound_T, label=f"{_BOUND_TEXT} = {bound_T[-1]:.4g}", **_DASHED)
    if q_T.min() < 0:
        axes.plot(bound_step_T, -bound_T, **_DASHED)
    _scale_q(axes, q_T, float(bound_T[-1]))
    # Above the axes: inside, with a bound at either edge and Q between them, there may be no free place.
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0, fontsize=9, frameon=False)


# Several algorithms -------------------------------------------------------------------------------------


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
        _scale_q(q_axes, _pool(histories, "q"), bound)
    labels = (return_label, "loss (mean squared TD error)", q_label)
    for axes, quantity, label in zip((return_axes, loss_axes, q_axes), QUANTITIES, labels, strict=True):
        for algorithm, history in histories.items():
            if quantity in history:
                draw_algorithm(axes, *history[quantity], appearance(algorithm, histories).colour, rng)
        if not axes.lines:
            _say(axes, "nothing recorded")
        axes.set_title(label, fontsize=11, color=_INK, loc="left")
        axes.set_xlabel(x_label, fontsize=11, color=_INK)
        decorate(axes)
    if bound is not None and q_axes.lines:
        below = bool((_pool(histories, "q") < -0.5 * bound).any())
        _draw_bound(q_axes, bound, bound_text, below, at_right=_bound_is_clearer_at_right(histories, bound))
    _tick_log_axis(loss_axes)
    figure.suptitle(title, fontsize=13, color=_INK)
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
        note.get_title().set_color(_GREY)


# Shared by all ------------------------------------------------------------------------------------------

_DASHED: dict[str, Any] = {"color": _GREY, "linestyle": (0, (5, 3)), "linewidth": 1.3, "zorder": 1.5}


def figure_of(width: float, height: float) -> Figure:
    """An empty figure of this size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def decorate(axes: Axes) -> None:
    """The house's look: a light grid, two spines, steps in thousands."""
    from matplotlib.ticker import EngFormatter, FuncFormatter

    axes.grid(color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#aaaaaa")
    axes.tick_params(labelsize=9.5, color="#aaaaaa", labelcolor=_INK, which="both")
    thousands = EngFormatter(sep="")  # 50k, not 50000; and nothing between one step and the next
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: thousands(x) if x == round(x) else ""))
    axes.margins(x=0.02)


def _scale_q(axes: Axes, q: FloatArray, bound: float) -> None:
    """Linear within the bound and logarithmic beyond it, once Q has left it far behind."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    finite = np.abs(q[np.isfinite(q)])
    if not finite.size or finite.max() <= _LINEAR_UP_TO_BOUNDS * bound:
        return
    # The linear part keeps a fifth of the height or more, however far Q goes.
    axes.set_yscale("symlog", linthresh=bound, linscale=max(1.2, 0.25 * np.log10(finite.max() / bound)))
    first, last = int(np.floor(np.log10(bound) + 0.6)) + 1, int(np.ceil(np.log10(finite.max())))
    stride = max(1, (last - first + 1) // 6)
    powers = 10.0 ** np.arange(first + stride - 1, last + 1, stride)
    above = np.concatenate([[bound / 2, bound], powers])
    axes.yaxis.set_major_locator(FixedLocator([*-above[::-1], 0.0, *above]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick_text(value)))
    axes.yaxis.set_minor_locator(NullLocator())


def _tick_log_axis(axes: Axes) -> None:
    """Ticks at 1, 2, 5 in plain numbers where less than two decades show; powers of ten are too few there."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axes.get_ylim()
    if high / low < 100:
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick_text(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _tick_text(value: float) -> str:
    """Plain from 0.001 to 1000, beyond that a power of ten as one writes it by hand."""
    if value == 0 or 1e-3 <= abs(value) <= 1e3:
        return f"{value:.6g}".replace("-", "−")
    mantissa, exponent = f"{value:.1e}".split("e")
    factor = {"1.0": "", "-1.0": "-"}.get(mantissa, f"{float(mantissa):g}\\cdot ")
    return f"${factor}10^{{{int(exponent)}}}$"


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
    axes.axhline(bound, **_DASHED)
    if below:
        axes.axhline(-bound, **_DASHED)
    axes.annotate(
        text,
        (0.98 if at_right else 0.02, bound),
        xycoords=("axes fraction", "data"),
        ha="right" if at_right else "left",
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=9,
        color=_GREY,
    )


def _say(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=10, color=_GREY)
    axes.tick_params(axis="y", which="both", left=False, labelleft=False)


def _finite(curve: Curve, positive: bool = False) -> Curve:
    """What an axis can show: drops NaN and infinity, and for a logarithmic axis all that is not positive."""
    step_T, value_T = curve
    keep_T = np.isfinite(value_T) & ((value_T > 0) if positive else True)
    return step_T[keep_T], value_T[keep_T]


def _pool(histories: Mapping[str, Mapping[str, tuple[FloatArray, FloatArray]]], quantity: str) -> FloatArray:
    pools = [history[quantity][1].ravel() for history in histories.values() if quantity in history]
    return np.concatenate(pools) if pools else np.empty(0)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
