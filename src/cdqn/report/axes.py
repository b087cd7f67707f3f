"""What every picture of the house shares: its look, its axes, and how it is written.

No pyplot and no global state: a figure needs no display and leaves nothing behind.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cdqn.errors import ConfigError
from cdqn.report.runs import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]
INK, GREY = "#222222", "#777777"
DASHED: dict[str, Any] = {"color": GREY, "linestyle": (0, (5, 3)), "linewidth": 1.3, "zorder": 1.5}
BOUND_TEXT = r"bound $r_\mathrm{max}/(1-\gamma)$"
LINEAR_UP_TO_BOUNDS = 3.0
"""Q within a few bounds is readable on a linear axis, and easier to read there."""


def figure_of(width: float, height: float) -> Figure:
    """An empty figure of this size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure, 150 dots per inch; its folder is made, and the same figure gives the same file."""
    path = Path(path)
    if path.suffix not in (".png", ".pdf"):
        raise ConfigError(f"cannot draw {path}: a figure is written as .png or .pdf, not {path.suffix!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata={"CreationDate": None} if path.suffix == ".pdf" else None)


def decorate_plainly(axes: Axes) -> None:
    """The house's look: a light grid and two spines; the ticks stay where they are, and as they are written."""
    axes.grid(color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#aaaaaa")
    axes.tick_params(labelsize=9.5, color="#aaaaaa", labelcolor=INK, which="both")


def decorate(axes: Axes) -> None:
    """The house's look, over steps: in thousands."""
    from matplotlib.ticker import EngFormatter, FuncFormatter

    decorate_plainly(axes)
    thousands = EngFormatter(sep="")  # 50k, not 50000; and nothing between one step and the next
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: thousands(x) if x == round(x) else ""))
    axes.margins(x=0.02)


def scale_q(axes: Axes, q: FloatArray, bound: float) -> None:
    """Linear within the bound and logarithmic beyond it, once Q has left it far behind."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    finite = np.abs(q[np.isfinite(q)])
    if not finite.size or finite.max() <= LINEAR_UP_TO_BOUNDS * bound:
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


def tick_log_axis(axes: Axes) -> None:
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


def say_instead(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=10, color=GREY)
    axes.tick_params(axis="y", which="both", left=False, labelleft=False)


def finite(curve: Curve, positive: bool = False) -> Curve:
    """What an axis can show: drops NaN and infinity, and for a logarithmic axis all that is not positive."""
    step_T, value_T = curve
    keep_T = np.isfinite(value_T) & ((value_T > 0) if positive else True)
    return step_T[keep_T], value_T[keep_T]
