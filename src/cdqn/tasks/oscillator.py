"""A quartic oscillator under continuous position measurement and a controlled force (App. B.1), as functions of arrays.

    H = p²/2m + λx⁴ − F·x,   dψ = [−iH − (γ/4)(x−⟨x⟩)²]ψ dt + √(γ/2)(x−⟨x⟩)ψ dW

(Wang, Ashida, Ueda, PRL 125, 100401; ħ = 1.)

A state is a row of amplitudes of the lowest energy states of H₀, H without force; a batch of trajectories is a matrix,
and all of them advance by one matrix product. Measurement and force are diagonal in the basis in which the truncated
operator x is (the discrete-variable representation); between the two bases lies a real rotation.

Suffixes: B trajectories, N energy states or points, S substeps, A actions, K powers of ∂/∂x.
"""

from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from cdqn.errors import ConfigError

MASS = 1 / np.pi
QUARTIC = np.pi / 25
MEASUREMENT = 0.01 * np.pi
"""γ, the strength of the measurement."""
FORCE_UNIT = np.pi
"""F = π·f."""
NUM_ACTIONS = 21
CONTROL_PERIOD = 1 / 18
MOMENT_ORDER = 5
NUM_MOMENTS = 20
EDGE_STATES = 4
"""The highest states: a trajectory that populates them has outgrown the basis."""
EDGE_POPULATION = 1e-4
STEP_ERROR = 1e-7
"""Infidelity of a control step at which the energy that LQG reaches is wrong by some 0.2 %."""

Reals = NDArray[np.float64]
Amplitudes = NDArray[np.complex128]

_KEPT = tuple((order - power, power) for order in range(2, MOMENT_ORDER + 1) for power in range(order + 1))
_DISTANCE = np.maximum(np.arange(MOMENT_ORDER + 1)[:, None] - np.arange(MOMENT_ORDER + 1), 0)
_BINOMIAL = np.array([[comb(n, k) for k in range(MOMENT_ORDER + 1)] for n in range(MOMENT_ORDER + 1)], np.float64)


@dataclass(frozen=True)
class Basis:
    """The lowest energy states of H₀, and the points at which their truncated position operator is diagonal."""

    energy_N: Reals
    point_N: Reals
    to_point_NN: Reals
    """⟨n|x_i⟩, orthogonal: amplitudes at the points are `amplitudes_BN @ to_point_NN`."""
    derivative_KNN: Reals
    """⟨n|∂ᵏ|m⟩ for k = 0…5."""
    hermite_NM: Reals
    """The energy states as sums of M harmonic-oscillator functions of width `width`."""
    width: float

    @property
    def size(self) -> int:
        return len(self.energy_N)

    @cached_property
    def fields(self) -> Reals:
        """From amplitudes to ±∂ᵏψ at the points, k = 0…5 side by side, shape (N, 6N); ± is the sign of (−i)ᵏ."""
        sign_K = np.array([1, 1, -1, -1, 1, 1])
        field_KNN = sign_K[:, None, None] * (self.derivative_KNN.transpose(0, 2, 1) @ self.to_point_NN)
        return np.ascontiguousarray(np.concatenate(list(field_KNN), axis=1))

    @cached_property
    def powers(self) -> Reals:
        """x⁰…x⁵ at the points, shape (N, 6)."""
        return np.vander(self.point_N, MOMENT_ORDER + 1, increasing=True)

    @cached_property
    def grid(self) -> tuple[Reals, Reals]:
        """Points, and what projects a function given there onto the basis: every reset needs them."""
        x_G, step = np.linspace(-12, 12, 401, retstep=True)
        return x_G, self.functions(x_G).T * step

    def functions(self, x_G: ArrayLike) -> Reals:
        """The energy states as functions: φ_n(x), shape (N, G)."""
        return self.hermite_NM @ _oscillator_functions(self.hermite_NM.shape[1], self.width, np.asarray(x_G, float))


def make_basis(size: int) -> Basis:
    """Diagonalise H₀ among many harmonic-oscillator functions, and x among the `size` lowest of its states."""
    if size <= EDGE_STATES:
        raise ConfigError(f"basis_size is {size}: it must be above {EDGE_STATES}; 40 is enough for energies up to 100")
    highest = 1.5 * size ** (4 / 3)  # semiclassical: Eₙ ∝ (n + ½)^(4/3)
    # As wide in position and momentum as the highest state, in the ratio of its turning point and largest momentum.
    width = float(np.sqrt((highest / QUARTIC) ** 0.25 / np.sqrt(2 * MASS * highest)))
    count = 3 * size + 60
    ladder = np.diag(np.sqrt(np.arange(1.0, count + 2 * MOMENT_ORDER)), 1)
    x = width * (ladder + ladder.T) / np.sqrt(2)
    derivative = (ladder - ladder.T) / (np.sqrt(2) * width)

    def power(operator: Reals, exponent: int) -> Reals:
        """Exact among the first `count` functions: the product is taken among more, and then cut."""
        return np.linalg.matrix_power(operator, exponent)[:count, :count]

    energy, vectors = np.linalg.eigh(-power(derivative, 2) / (2 * MASS) + QUARTIC * power(x, 4))
    states = vectors[:, :size]
    states = states * np.sign(states[np.abs(states).argmax(0), np.arange(size)])  # LAPACK leaves the sign open
    point_N, to_point_NN = np.linalg.eigh(states.T @ power(x, 1) @ states)
    at_points_NN = states.T @ _oscillator_functions(count, width, point_N)
    to_point_NN = to_point_NN * np.sign((to_point_NN * at_points_NN).sum(0))  # amplitudes have the sign of ψ(x_i)
    derivative_KNN = np.stack([states.T @ power(derivative, k) @ states for k in range(MOMENT_ORDER + 1)])
    return Basis(energy[:size], point_N, to_point_NN, derivative_KNN, np.ascontiguousarray(states.T), width)


def ground_state_energy() -> float:
    """What no controller can go below."""
    return float(make_basis(40).energy_N[0])


def _oscillator_functions(count: int, width: float, x_G: Reals) -> Reals:
    """Harmonic-oscillator functions by their recurrence, shape (count, G)."""
    u_G = x_G / width
    values = np.zeros((count, len(u_G)))
    values[0] = np.exp(-(u_G**2) / 2) / (np.pi**0.25 * np.sqrt(width))
    values[1] = np.sqrt(2) * u_G * values[0]
    for n in range(2, count):
        values[n] = np.sqrt(2 / n) * u_G * values[n - 1] - np.sqrt((n - 1) / n) * values[n - 2]
    return values


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


def energies(basis: Basis, amplitudes_BN: Amplitudes) -> Reals:
    """⟨H₀⟩, the energy without that of the force."""
    return np.square(amplitudes_BN.view(np.float64)) @ basis.energy_N.repeat(2)


def edge_population(amplitudes_BN: Amplitudes) -> Reals:
    """The probability of the highest states: what is beyond them is lost."""
    population: Reals = np.square(amplitudes_BN[:, -EDGE_STATES:].view(np.float64)).sum(1)
    return population


def moments(basis: Basis, amplitudes_BN: Amplitudes) -> Reals:
    """⟨x⟩, ⟨p⟩ and Re⟨(x−⟨x⟩)ʲ(p−⟨p⟩)ᵏ⟩ in the order xx, xp, pp, xxx, xxp, …, ppppp; shape (B, 20)."""
    count, size = amplitudes_BN.shape
    parts = np.concatenate([amplitudes_BN.real, amplitudes_BN.imag])
    real_BKN, imaginary_BKN = (parts @ basis.fields).reshape(2, count, MOMENT_ORDER + 1, size)
    density_BKN = np.empty_like(real_BKN)  # Re ψ*(pᵏψ): of an even power real, of an odd one imaginary before (−i)ᵏ
    real_B1N, imaginary_B1N = real_BKN[:, :1], imaginary_BKN[:, :1]
    density_BKN[:, ::2] = real_B1N * real_BKN[:, ::2] + imaginary_B1N * imaginary_BKN[:, ::2]
    density_BKN[:, 1::2] = real_B1N * imaginary_BKN[:, 1::2] - imaginary_B1N * real_BKN[:, 1::2]
    raw_BKJ = (density_BKN.reshape(-1, size) @ basis.powers).reshape(count, MOMENT_ORDER + 1, -1)
    x_B, p_B = raw_BKJ[:, 0, 1], raw_BKJ[:, 1, 0]
    central_BKJ = _shift(-p_B) @ raw_BKJ @ _shift(-x_B).transpose(0, 2, 1)
    return np.stack([x_B, p_B, *(central_BKJ[:, power, j] for j, power in _KEPT)], axis=1)


def _shift(by_B: Reals) -> Reals:
    """(y + a)ʲ = Σ binomial(j, l) aʲ⁻ˡ yˡ as a matrix for each a."""
    power_BD = by_B[:, None] ** np.arange(MOMENT_ORDER + 1)
    return power_BD[:, _DISTANCE] * _BINOMIAL


def moment_bounds(basis: Basis) -> Reals:
    """The largest absolute values that `moments` can have for states of the basis, by the norms of its operators."""
    x = np.abs(basis.point_N).max()
    p_K = np.linalg.norm(basis.derivative_KNN, ord=2, axis=(1, 2))
    shifted_K = [sum(comb(k, m) * p_K[1] ** (k - m) * p_K[m] for m in range(k + 1)) for k in range(MOMENT_ORDER + 1)]
    return np.array([x, p_K[1], *((2 * x) ** j * shifted_K[k] for j, k in _KEPT)])


def gaussian_packets(basis: Basis, momentum_B: ArrayLike, mean: float = 0.0, std: float = 1.0) -> Amplitudes:
    """Packets exp(ip(x−x₀))·exp(−(x−x₀)²/4σ²): σ is the standard deviation of |ψ|²."""
    x_G, projection_GN = basis.grid
    envelope_G = np.exp(-((x_G - mean) ** 2) / (4 * std**2)) / (2 * np.pi * std**2) ** 0.25
    phase_BG = np.exp(1j * np.asarray(momentum_B, np.float64)[:, None] * (x_G - mean))
    packets: Amplitudes = (phase_BG * envelope_G) @ projection_GN
    return packets


def require_room(basis: Basis, energy_limit: float) -> None:
    """The ground state, kicked to the energy limit, must fit into the basis."""
    if lost(basis, energy_limit) <= EDGE_POPULATION:
        return
    enough = basis.size
    while lost(make_basis(enough), energy_limit) > EDGE_POPULATION:
        enough += 4
    raise ConfigError(
        f"basis_size {basis.size} is too small for energy_limit {energy_limit:g}: raise basis_size to {enough}, or "
        "lower energy_limit"
    )


def lost(basis: Basis, energy: float) -> float:
    """How much of the ground state, kicked to an energy, is among the highest states or beyond them."""
    momentum = np.sqrt(2 * MASS * max(energy - basis.energy_N[0], 0.0))
    x_G, step = np.linspace(-12, 12, 2401, retstep=True)
    functions_NG = basis.functions(x_G)
    inside_N = (functions_NG[:-EDGE_STATES] * (functions_NG[0] * np.exp(1j * momentum * x_G))).sum(1) * step
    return float(1 - (np.abs(inside_N) ** 2).sum())


def require_fine_steps(propagator: Propagator, force: float) -> None:
    """A control step of the strongest force, from the ground state, must be as exact diagonalisation has it."""
    if step_error(propagator, force) <= STEP_ERROR:
        return
    enough = propagator.substeps
    while step_error(make_propagator(propagator.basis, enough, (force,)), force) > STEP_ERROR:
        enough += 1
    raise ConfigError(
        f"substeps {propagator.substeps} is too coarse for max_force {force:g}: raise substeps to {enough}, or lower "
        "max_force"
    )


def step_error(propagator: Propagator, force: float) -> float:
    """1 − |overlap|² of the ground state after a control step of `force` without measurement, and the exact one."""
    basis = propagator.basis
    split = make_propagator(basis, propagator.substeps, (force,), measurement=0.0)
    ground_1N = np.eye(1, basis.size, dtype=np.complex128)
    stepped_N = control_step(split, ground_1N, np.zeros(1, np.int64), np.zeros((1, split.substeps))).amplitudes_BN[0]
    x_NN = (basis.to_point_NN * basis.point_N) @ basis.to_point_NN.T
    energy_N, states_NN = np.linalg.eigh(np.diag(basis.energy_N) - FORCE_UNIT * force * x_NN)
    exact_N = states_NN @ (np.exp(-1j * energy_N * CONTROL_PERIOD) * states_NN[0])
    return float(1 - np.abs(np.vdot(exact_N, stepped_N)) ** 2)
