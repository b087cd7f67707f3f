"""The states in which the oscillator is described: the lowest ones of H₀, and wave packets among them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from cdqn.errors import ConfigError
from cdqn.tasks.oscillator.constants import EDGE_STATES, MASS, MOMENT_ORDER, QUARTIC, Amplitudes, Reals


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


def gaussian_packets(basis: Basis, momentum_B: ArrayLike, mean: float = 0.0, std: float = 1.0) -> Amplitudes:
    """Packets exp(ip(x−x₀))·exp(−(x−x₀)²/4σ²): σ is the standard deviation of |ψ|²."""
    x_G, projection_GN = basis.grid
    envelope_G = np.exp(-((x_G - mean) ** 2) / (4 * std**2)) / (2 * np.pi * std**2) ** 0.25
    phase_BG = np.exp(1j * np.asarray(momentum_B, np.float64)[:, None] * (x_G - mean))
    packets: Amplitudes = (phase_BG * envelope_G) @ projection_GN
    return packets
