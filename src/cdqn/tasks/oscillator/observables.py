"""What is read off a batch of states: energy, moments, and how much of it is at the edge of the basis."""

from math import comb

import numpy as np

from cdqn.tasks.oscillator.basis import Basis
from cdqn.tasks.oscillator.constants import EDGE_STATES, MOMENT_ORDER, Amplitudes, Reals

_KEPT = tuple((order - power, power) for order in range(2, MOMENT_ORDER + 1) for power in range(order + 1))
_DISTANCE = np.maximum(np.arange(MOMENT_ORDER + 1)[:, None] - np.arange(MOMENT_ORDER + 1), 0)
_BINOMIAL = np.array([[comb(n, k) for k in range(MOMENT_ORDER + 1)] for n in range(MOMENT_ORDER + 1)], np.float64)


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
