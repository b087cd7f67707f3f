"""Pictures of the quartic oscillator: the probability density, standing at its energy, over the potential."""

from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from cdqn.tasks.oscillator import FORCE_UNIT, QUARTIC, Basis

WIDTH, HEIGHT = 480, 360
HALF_RANGE = 4.5
LOWEST, HIGHEST = -4.0, 14.0
DENSITY_SCALE = 5.0
"""Height of a probability density of 1, in units of energy."""


class OscillatorPicture:
    """A figure that is drawn once and then only changed, so that a video takes little more time than its pixels."""

    def __init__(self, basis: Basis) -> None:
        self._x = np.linspace(-HALF_RANGE, HALF_RANGE, 241)
        self._functions_NG = basis.functions(self._x)
        self._potential = QUARTIC * self._x**4
        self._canvas = _canvas()
        axes = self._canvas.figure.add_axes((0.1, 0.13, 0.88, 0.77))
        axes.set(xlim=(-HALF_RANGE, HALF_RANGE), ylim=(LOWEST, HIGHEST), xlabel="x", ylabel="energy")
        axes.plot(self._x, self._potential, color="0.75", lw=1.5)
        self._axes = axes
        self._tilted = axes.plot([], [], color="tab:red", lw=1.2, animated=True)[0]
        self._level = axes.plot([], [], color="0.5", lw=0.8, ls="--", animated=True)[0]
        self._density = axes.fill_between(self._x, 0, 0, color="tab:blue", alpha=0.6, lw=0, animated=True)
        arrow = {"width": 0.07, "head_width": 0.5, "head_length": 0.3, "length_includes_head": True}
        self._arrow = axes.arrow(0, LOWEST + 1, 1e-3, 0, color="tab:red", animated=True, **arrow)
        self._title = axes.text(0.0, 1.03, "", transform=axes.transAxes, family="monospace", animated=True)
        self._canvas.draw()
        self._background = self._canvas.copy_from_bbox(self._canvas.figure.bbox)

    def draw(self, amplitudes_N: NDArray[np.complex128], energy: float, force: float, time: float) -> NDArray[np.uint8]:
        """The picture of a state as RGB, shape (360, 480, 3)."""
        density = np.abs(amplitudes_N @ self._functions_NG) ** 2
        self._density.set_data(self._x, np.full_like(self._x, energy), energy + DENSITY_SCALE * density)
        self._tilted.set_data(self._x, self._potential - FORCE_UNIT * force * self._x)
        self._level.set_data([-HALF_RANGE, HALF_RANGE], [energy, energy])
        self._arrow.set_data(dx=0.8 * force)
        self._arrow.set_visible(force != 0)
        self._title.set_text(f"t = {time:6.2f}   energy {energy:7.3f}   force {force:+4.1f}π")
        self._canvas.restore_region(self._background)
        for artist in (self._tilted, self._level, self._density, self._arrow, self._title):
            self._axes.draw_artist(artist)
        picture: NDArray[np.uint8] = np.asarray(self._canvas.buffer_rgba())[..., :3].copy()
        return picture


def _canvas() -> Any:  # matplotlib's own types are incomplete
    return FigureCanvasAgg(Figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100))
