"""What is read off the oscillator's states: against fine grids."""

import numpy as np
import pytest

from cdqn.tasks import oscillator as physics
from cdqn.tasks.oscillator import MASS, QUARTIC
from oscillator_states import lively_states


def test_energy_is_without_that_of_the_force(basis):
    states = lively_states(basis, count=4)
    x, step = np.linspace(-12, 12, 2401, retstep=True)
    psi = states @ basis.functions(x)
    slope = np.gradient(psi, step, axis=1)
    expected = ((np.abs(slope) ** 2 / (2 * MASS)) + QUARTIC * x**4 * np.abs(psi) ** 2).sum(1) * step
    np.testing.assert_allclose(physics.energies(basis, states), expected, rtol=5e-3)


@pytest.mark.parametrize("displaced", [False, True])
def test_moments_are_those_of_a_fine_grid(basis, displaced):
    states = physics.gaussian_packets(basis, [3.0, -2.0], 2.2, 0.6) if displaced else lively_states(basis, count=8)
    x = np.linspace(-14, 14, 1024, endpoint=False)
    step = x[1] - x[0]
    psi = states @ basis.functions(x)
    wave_number = 2 * np.pi * np.fft.fftfreq(1024, step)

    def momentum(psi):
        return np.fft.ifft(wave_number * np.fft.fft(psi))

    for found, row in zip(physics.moments(basis, states), psi, strict=True):
        mean_x = (np.abs(row) ** 2 * x).sum() * step
        mean_p = (row.conj() * momentum(row)).real.sum() * step
        expected = [mean_x, mean_p]
        for order in range(2, 6):
            for power in range(order + 1):  # xx, xp, pp, xxx, …
                ket = row
                for _ in range(power):
                    ket = momentum(ket) - mean_p * ket
                expected.append((row.conj() * (x - mean_x) ** (order - power) * ket).real.sum() * step)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_moments_never_exceed_their_bounds(basis):
    rng = np.random.default_rng(0)
    states = physics.normalized(rng.standard_normal((200, 80)).view(np.complex128))
    extreme = np.eye(40, dtype=np.complex128)
    corner = basis.to_point_NN.T.astype(np.complex128)
    bound = physics.moment_bounds(basis)
    for batch in (states, extreme, corner):
        assert (np.abs(physics.moments(basis, batch)) <= bound * (1 + 1e-9)).all()


def test_edge_population_is_the_probability_of_the_highest_states():
    amplitudes = np.zeros((2, 40), np.complex128)
    amplitudes[:, 0] = 1
    amplitudes[1, [35, 36, 39]] = [0.5, 0.1j, 0.2]
    np.testing.assert_allclose(physics.edge_population(amplitudes), [0, 0.05])
