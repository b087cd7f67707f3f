"""One control step of a batch of states, and the measured evolution before an episode."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from cdqn.errors import ConfigError
from cdqn.tasks.oscillator.basis import Basis
from cdqn.tasks.oscillator.constants import CONTROL_PERIOD, FORCE_UNIT, MEASUREMENT, Amplitudes, Reals


@dataclass(frozen=True)
class Propagator:
    """One control step: substeps of half H₀, measurement and force, half H₀ (the halves between two are merged)."""

    basis: Basis
    substeps: int
    measurement: float
    enter_RR: Reals
    """Half a substep of H₀, from amplitudes to points. R = 2N: complex products are taken as real ones, because
    BLAS then gives a row the same bits in every batch."""
    between_RR: Reals
    leave_RR: Reals
    kick_AN: Amplitudes
    """Force and the fixed part of the measurement, a substep of each action."""
    sums_R3: Reals
    """1, x, x² at the points, for real and imaginary part."""

    @property
    def time(self) -> float:
        """Of a substep."""
        return CONTROL_PERIOD / self.substeps


def make_propagator(
    basis: Basis, substeps: int, force_A: ArrayLike = (0.0,), measurement: float = MEASUREMENT
) -> Propagator:
    """The matrices of a control step; `force_A` are the forces f of the actions, in units of π."""
    if substeps < 1:
        raise ConfigError(f"substeps is {substeps}: a control step has at least 1, and 4 are accurate")
    time = CONTROL_PERIOD / substeps
    rotation_N = np.exp(-1j * basis.energy_N * time / 2)
    enter_NN = rotation_N[:, None] * basis.to_point_NN
    leave_NN = basis.to_point_NN.T * rotation_N
    exponent_N = -measurement * time / 2 * basis.point_N**2
    force_A1 = FORCE_UNIT * np.asarray(force_A, np.float64)[:, None]
    kick_AN = np.exp(exponent_N + 1j * force_A1 * basis.point_N * time)
    sums_N3 = np.stack([np.ones(basis.size), basis.point_N, basis.point_N**2], axis=1)
    return Propagator(
        basis,
        substeps,
        measurement,
        enter_RR=_as_real(enter_NN),
        between_RR=_as_real(leave_NN @ enter_NN),
        leave_RR=_as_real(leave_NN),
        kick_AN=kick_AN,
        sums_R3=sums_N3.repeat(2, axis=0),
    )


def _as_real(matrix_NN: Amplitudes) -> Reals:
    """The matrix for rows in which real and imaginary parts alternate, as they lie in memory."""
    size = len(matrix_NN)
    real = np.empty((size, 2, size, 2))
    real[:, 0, :, 0] = real[:, 1, :, 1] = matrix_NN.real
    real[:, 0, :, 1] = matrix_NN.imag
    real[:, 1, :, 0] = -matrix_NN.imag
    return real.reshape(2 * size, 2 * size)


class Advanced(NamedTuple):
    """The batch after a control step."""

    amplitudes_BN: Amplitudes
    signal_B: Reals
    """What the detector showed on average: ⟨x⟩ and noise of variance 1/(2γt); NaN without measurement."""


def control_step(
    propagator: Propagator, amplitudes_BN: Amplitudes, action_B: NDArray[np.int64], noise_BS: Reals
) -> Advanced:
    """One control step of each trajectory; `noise_BS` is standard normal, one number for each substep."""
    kick_BN = propagator.kick_AN[action_B]
    tilt_B = np.zeros(len(amplitudes_BN))
    point_BN = _product(amplitudes_BN, propagator.enter_RR)
    for substep in range(propagator.substeps):
        if substep:
            point_BN = _product(point_BN, propagator.between_RR)
        tilt_B += _measure(propagator, point_BN, kick_BN, noise_BS[:, substep])
    signal_B = np.full(len(tilt_B), np.nan)
    if propagator.measurement:
        signal_B = tilt_B / (propagator.measurement * CONTROL_PERIOD)
    return Advanced(normalized(_product(point_BN, propagator.leave_RR)), signal_B)


def free_evolution(
    propagator: Propagator, amplitudes_BN: Amplitudes, count_B: NDArray[np.int64], noise_BT: Reals
) -> Amplitudes:
    """Measured without control for `count_B` ≥ 1 substeps; `noise_BT` has a number for each of at least as many.

    Compiled, one trajectory after the other: a reset has few trajectories and hundreds of substeps.
    """
    point_BR = _product(amplitudes_BN, propagator.enter_RR).view(np.float64)
    kick_N = np.abs(propagator.kick_AN[0])
    strength = propagator.measurement * propagator.time
    point_N = propagator.basis.point_N
    _evolve_freely(point_BR, count_B, noise_BT, propagator.between_RR, kick_N, point_N, strength)
    return normalized(_product(point_BR.view(np.complex128), propagator.leave_RR))


@njit(cache=True)
def _evolve_freely(
    point_BR: Reals,
    count_B: NDArray[np.int64],
    noise_BT: Reals,
    between_RR: Reals,
    kick_N: Reals,
    point_N: Reals,
    strength: float,
) -> None:
    """The same arithmetic as `_product` and `_measure`, in place."""
    now_R = np.empty(point_BR.shape[1])
    for row in range(len(point_BR)):
        next_R = point_BR[row]
        for substep in range(count_B[row]):
            if substep:
                now_R[:] = next_R
                next_R[:] = 0.0
                for i in range(len(now_R)):
                    for j in range(len(now_R)):
                        next_R[j] += now_R[i] * between_RR[i, j]
            norm = first = second = 0.0
            for n in range(len(point_N)):
                density = next_R[2 * n] ** 2 + next_R[2 * n + 1] ** 2
                norm += density
                first += density * point_N[n]
                second += density * point_N[n] ** 2
            mean = first / norm
            variance = second / norm - mean**2
            tilt = strength * mean + np.sqrt(strength / 2 + strength**2 * variance) * noise_BT[row, substep]
            for n in range(len(point_N)):
                factor = kick_N[n] * np.exp(tilt * point_N[n])
                next_R[2 * n] *= factor
                next_R[2 * n + 1] *= factor


def _measure(propagator: Propagator, point_BN: Amplitudes, kick_BN: Amplitudes, noise_B: Reals) -> Reals:
    """The exact factor of force and measurement, in place; returns γt·s, where s is the signal.

    The detector of a Gaussian error multiplies ψ by exp(−(γt/2)(x−s)²), and shows s with the probability |that|²: a
    distribution of mean ⟨x⟩ and variance Var(x) + 1/(2γt), which is taken as a normal one.
    """
    strength = propagator.measurement * propagator.time
    sums_B3 = np.square(point_BN.view(np.float64)) @ propagator.sums_R3
    mean_B = sums_B3[:, 1] / sums_B3[:, 0]
    variance_B = sums_B3[:, 2] / sums_B3[:, 0] - mean_B**2
    tilt_B: Reals = strength * mean_B + np.sqrt(strength / 2 + strength**2 * variance_B) * noise_B
    point_BN *= kick_BN
    point_BN *= np.exp(tilt_B[:, None] * propagator.basis.point_N)
    return tilt_B


def _product(amplitudes_BN: Amplitudes, matrix_RR: Reals) -> Amplitudes:
    product: Amplitudes = (amplitudes_BN.view(np.float64) @ matrix_RR).view(np.complex128)
    return product


def normalized(amplitudes_BN: Amplitudes) -> Amplitudes:
    """Every trajectory with norm 1."""
    norm_B1 = np.sqrt(np.square(amplitudes_BN.view(np.float64)).sum(1, keepdims=True))
    scaled: Amplitudes = amplitudes_BN / norm_B1
    return scaled
