"""The oscillator's basis: against fine grids."""

import numpy as np
import pytest

from cdqn.tasks import oscillator as physics
from cdqn.tasks.oscillator import MASS, QUARTIC


def test_lowest_energies_are_those_of_a_fine_grid(basis):
    step, half = 0.05, 160
    distance = np.subtract.outer(np.arange(-half, half + 1), np.arange(-half, half + 1))
    with np.errstate(divide="ignore"):
        second = np.where(distance == 0, np.pi**2 / 3, (-1.0) ** distance * 2 / distance**2.0) / step**2
    x = step * np.arange(-half, half + 1)
    expected = np.linalg.eigvalsh(second / (2 * MASS) + np.diag(QUARTIC * x**4))[:6]
    np.testing.assert_allclose(basis.energy_N[:6], expected, atol=1e-8)
    assert basis.energy_N[0] == pytest.approx(0.7177, abs=5e-5)


def test_highest_states_are_as_exact_as_the_lowest(basis):
    np.testing.assert_allclose(basis.energy_N, physics.make_basis(60).energy_N[:40], atol=1e-8)


def test_functions_of_the_basis_are_orthonormal_and_the_points_diagonalise_x(basis):
    x, step = np.linspace(-12, 12, 2401, retstep=True)
    functions = basis.functions(x)
    np.testing.assert_allclose(functions @ functions.T * step, np.eye(40), atol=1e-10)
    x_in_basis = (functions * x) @ functions.T * step
    np.testing.assert_allclose(basis.to_point_NN.T @ x_in_basis @ basis.to_point_NN, np.diag(basis.point_N), atol=1e-9)


def test_amplitudes_at_the_points_have_the_sign_of_the_wave_function(basis):
    at_points = (physics.gaussian_packets(basis, [0.0]) @ basis.to_point_NN)[0]
    inner = np.abs(basis.point_N) < 2
    assert (at_points.real[inner] > 0.01).all()
    np.testing.assert_allclose(at_points.imag, 0, atol=1e-12)


def test_packet_has_unit_standard_deviation_of_probability_and_the_momentum_asked_for(basis):
    x, p, xx, xp, pp = physics.moments(basis, physics.gaussian_packets(basis, [1.5], mean=0.5, std=1.0))[0, :5]
    np.testing.assert_allclose([x, p, xx, xp, pp], [0.5, 1.5, 1.0, 0.0, 0.25], atol=1e-6)
