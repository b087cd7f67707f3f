"""Three controllers of the quartic oscillator to compare a learned one with (Wang, Ashida, Ueda, PRL 125, 100401).

Each maps the 20 moments of `oscillator.moments` to the force F that it would like to exert during the next
control step, whose length is τ; `nearest_actions` takes the nearest of the forces that there are.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdqn.errors import ConfigError
from cdqn.tasks.oscillator import CONTROL_PERIOD, FORCE_UNIT, MASS, NUM_MOMENTS, QUARTIC, Reals

Controller = Callable[[Reals], Reals]

LQG_STIFFNESS = 2.8
"""k of the harmonic force −k·x that stands for the quartic one, in units of λ; with it LQG was best (authors' code)."""
DAMPING = 0.4
"""Share of the momentum that one control step takes away; with it damping was best (authors' code)."""


def lqg(moments_BM: ArrayLike, stiffness: float = LQG_STIFFNESS) -> Reals:
    """Linear-quadratic control of ⟨x⟩ and ⟨p⟩: brings ⟨p⟩ to −√(km)⟨x⟩, as predicted for the end of the step."""
    x_B, p_B = _predicted(_checked(moments_BM))
    force_B: Reals = -(np.sqrt(stiffness * QUARTIC * MASS) * x_B + p_B) / CONTROL_PERIOD
    return force_B


def damping(moments_BM: ArrayLike, share: float = DAMPING) -> Reals:
    """Takes away a share of the momentum predicted for the end of the step."""
    _, p_B = _predicted(_checked(moments_BM))
    return -share * p_B / CONTROL_PERIOD


def semiclassical(moments_BM: ArrayLike) -> Reals:
    """Gives a particle of the present variance the momentum with which it comes to rest at x = 0.

    In ⟨λx⁴⟩ = λ(⟨x⟩⁴ + 6⟨x⟩²Var + …) it climbs to the energy of ⟨x⟩ = 0: p²/2m = λ⟨x⟩²(⟨x⟩² + 6Var).
    """
    moments_BM = _checked(moments_BM)
    x_B, p_B, variance_B = moments_BM[:, 0], moments_BM[:, 1], moments_BM[:, 2]
    target_B = -np.sqrt(2 * MASS * QUARTIC * (6 * variance_B + x_B**2)) * x_B
    return (target_B - p_B) / CONTROL_PERIOD


CONTROLLERS: dict[str, Controller] = {"lqg": lqg, "damping": damping, "semiclassical": semiclassical}


def nearest_actions(force_B: Reals, force_A: ArrayLike) -> NDArray[np.int64]:
    """The actions whose forces π·f are nearest; `force_A` are equally spaced f."""
    force_A = np.asarray(force_A, np.float64)
    spacing = force_A[1] - force_A[0]
    # Clipped first: a very large force must not overflow the integer.
    f_B = np.clip(force_B / FORCE_UNIT, force_A[0], force_A[-1])
    actions: NDArray[np.int64] = np.rint((f_B - force_A[0]) / spacing).astype(np.int64)
    return actions


def policy(name: str, force_A: ArrayLike, observation_scale: float) -> Callable[[ArrayLike], NDArray[np.int64]]:
    """A controller by name, from the environment's observations to its actions."""
    if name not in CONTROLLERS:
        raise ConfigError(f"there is no controller {name!r}: choose {', '.join(CONTROLLERS)}")
    return partial(_act, CONTROLLERS[name], np.asarray(force_A, np.float64), observation_scale)


def _act(
    controller: Controller, force_A: Reals, observation_scale: float, observation_BM: ArrayLike
) -> NDArray[np.int64]:
    moments_BM = np.asarray(observation_BM, np.float64) / observation_scale
    return nearest_actions(controller(moments_BM), force_A)


def _predicted(moments_BM: Reals) -> tuple[Reals, Reals]:
    """⟨x⟩ and ⟨p⟩ at the end of a step without force, to the second order in τ, by Ehrenfest's theorem.

    ⟨x⟩″ = −4λ⟨x³⟩/m and ⟨p⟩″ = −12λ⟨xpx⟩/m, with ⟨xpx⟩ = Re⟨x²p⟩.
    """
    x_B, p_B, xx_B, xp_B, _, xxx_B, xxp_B = moments_BM[:, :7].T
    cube_B = xxx_B + 3 * x_B * xx_B + x_B**3
    xpx_B = xxp_B + 2 * x_B * xp_B + p_B * (xx_B + x_B**2)
    pull_B = 4 * QUARTIC * cube_B
    later_x_B = x_B + p_B / MASS * CONTROL_PERIOD - pull_B / MASS * CONTROL_PERIOD**2 / 2
    later_p_B = p_B - pull_B * CONTROL_PERIOD - 12 * QUARTIC * xpx_B / MASS * CONTROL_PERIOD**2 / 2
    return later_x_B, later_p_B


def _checked(moments_BM: ArrayLike) -> Reals:
    moments_BM = np.asarray(moments_BM, np.float64)
    if moments_BM.ndim != 2 or moments_BM.shape[1] != NUM_MOMENTS:
        raise ConfigError(
            f"a controller got moments of shape {moments_BM.shape}: it needs (trajectories, {NUM_MOMENTS}), what "
            "cdqn.tasks.oscillator.moments returns; observations must be divided by observation_scale before"
        )
    return moments_BM
