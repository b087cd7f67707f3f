"""The oscillator's steps: against conservation laws, the master equation and the stochastic one."""

from math import erf

import numpy as np
import pytest

from cdqn.tasks import controllers
from cdqn.tasks import oscillator as physics
from cdqn.tasks.oscillator import CONTROL_PERIOD, FORCE_UNIT, MASS, MEASUREMENT, QUARTIC
from oscillator_states import FORCES, lively_states, still

HEATING = MEASUREMENT / (4 * MASS)
"""dE/dt: the double commutator −(γ/4)[x, [x, ρ]] gives d⟨p²⟩/dt = γ/2 in every state, and nothing to functions of x."""


def test_without_measurement_and_force_a_step_is_the_exact_rotation(basis):
    propagator = physics.make_propagator(basis, 4, measurement=0.0)
    states = lively_states(basis)
    stepped = physics.control_step(propagator, states, still(32), np.ones((32, 4)))
    np.testing.assert_allclose(
        stepped.amplitudes_BN, states * np.exp(-1j * basis.energy_N * CONTROL_PERIOD), atol=1e-12
    )
    np.testing.assert_allclose(
        physics.energies(basis, stepped.amplitudes_BN), physics.energies(basis, states), rtol=1e-12
    )
    assert np.isnan(stepped.signal_B).all()


@pytest.mark.parametrize("action", [10, 15, 4])
def test_packet_follows_ehrenfest(basis, action):
    """Δ⟨x⟩ = ∫⟨p⟩/m dt and Δ⟨p⟩ = ∫(F − 4λ⟨x³⟩) dt over two steps, by Simpson's rule."""
    propagator = physics.make_propagator(basis, 8, FORCES, measurement=0.0)
    states = physics.gaussian_packets(basis, [0.9], mean=-0.4, std=0.7)
    series = []
    for _ in range(19):
        series.append(physics.moments(basis, states)[0])
        states = physics.control_step(propagator, states, np.array([action]), np.zeros((1, 8))).amplitudes_BN
    x, p, xx, xxx = np.array(series)[:, [0, 1, 2, 5]].T
    push = FORCE_UNIT * FORCES[action] - 4 * QUARTIC * (xxx + 3 * x * xx + x**3)

    def integral(y):
        return (y[:-2] + 4 * y[1:-1] + y[2:]) * CONTROL_PERIOD / 3

    assert np.ptp(x) > 0.5
    np.testing.assert_allclose(x[2:] - x[:-2], integral(p) / MASS, atol=1e-3)
    np.testing.assert_allclose(p[2:] - p[:-2], integral(push), atol=2e-3)


def test_norm_stays_one(basis):
    np.testing.assert_allclose(np.linalg.norm(lively_states(basis), axis=1), 1, rtol=1e-14)


def test_mean_over_the_noise_obeys_the_master_equation(basis):
    """Gauss–Hermite quadrature takes the mean over the noise without sampling: the gain of energy is exact."""
    node, weight = np.polynomial.hermite_e.hermegauss(24)
    weight /= weight.sum()
    propagator = physics.make_propagator(basis, 1)
    for state in lively_states(basis, count=5):
        batch = np.repeat(state[None], len(node), axis=0)
        stepped = physics.control_step(propagator, batch, still(len(node)), node[:, None]).amplitudes_BN
        gain = weight @ physics.energies(basis, stepped) - physics.energies(basis, state[None])[0]
        assert gain == pytest.approx(HEATING * CONTROL_PERIOD, rel=2e-3)
        # The whole density matrix: exp(−(γt/4)(x−x′)²) between two half steps of H₀.
        half = np.exp(-0.5j * basis.energy_N * CONTROL_PERIOD)
        at_points = (state * half) @ basis.to_point_NN
        decay = np.exp(-MEASUREMENT * CONTROL_PERIOD / 4 * np.subtract.outer(basis.point_N, basis.point_N) ** 2)
        mixed = basis.to_point_NN @ (np.outer(at_points, at_points.conj()) * decay) @ basis.to_point_NN.T
        expected = half[:, None] * mixed * half.conj()
        found = np.einsum("b,bn,bm->nm", weight, stepped, stepped.conj())
        change = np.abs(expected - np.outer(state * half**2, (state * half**2).conj())).max()
        assert np.abs(found - expected).max() < 0.01 * change


def test_measured_oscillator_heats_at_the_rate_of_the_master_equation(basis):
    """5 units of time, 1024 antithetic pairs: sampled as the environment does it."""
    pairs, steps = 1024, 90
    noise = np.random.default_rng(2).standard_normal((pairs, steps))
    states = physics.gaussian_packets(basis, np.zeros(2 * pairs))
    begin = physics.energies(basis, states)
    count = np.full(2 * pairs, steps)
    after = physics.free_evolution(physics.make_propagator(basis, 1), states, count, np.concatenate([noise, -noise]))
    gain = (physics.energies(basis, after) - begin).reshape(2, pairs).mean(0)
    error = gain.std(ddof=1) / np.sqrt(pairs)
    expected = HEATING * steps * CONTROL_PERIOD
    assert error < 0.05 * expected
    assert abs(gain.mean() - expected) < 3.5 * error


def test_trajectories_of_free_evolution_end_at_their_own_times(basis):
    propagator = physics.make_propagator(basis, 1)
    noise = np.random.default_rng(0).standard_normal((3, 9))
    packets = physics.gaussian_packets(basis, [0.5, -1.0, 1.5])
    together = physics.free_evolution(propagator, packets, np.array([4, 9, 1]), noise)
    for row, count in enumerate([4, 9, 1]):
        state = packets[row : row + 1]
        for step in range(count):
            state = physics.control_step(propagator, state, still(1), noise[row : row + 1, step, None]).amplitudes_BN
        np.testing.assert_allclose(together[row], state[0], atol=1e-10)


def test_one_substep_per_control_period_is_enough_without_force(basis):
    """The start of an episode is measured for 20 units of time in steps of 1/18; with steps of 1/144 it is the same."""
    fine = np.random.default_rng(3).standard_normal((64, 360, 8))
    packets = physics.gaussian_packets(basis, np.linspace(-1.9, 1.9, 64))
    coarse = physics.free_evolution(
        physics.make_propagator(basis, 1), packets, np.full(64, 360), fine.sum(2) / np.sqrt(8)
    )
    exact = physics.free_evolution(
        physics.make_propagator(basis, 8), packets, np.full(64, 2880), fine.reshape(64, 2880)
    )
    ours, theirs = physics.energies(basis, coarse), physics.energies(basis, exact)
    assert ours.mean() == pytest.approx(theirs.mean(), rel=5e-3)
    np.testing.assert_allclose(ours, theirs, rtol=0.1)


def test_signal_has_the_mean_and_variance_of_a_gaussian_detector(basis):
    propagator = physics.make_propagator(basis, 1)
    states = lively_states(basis, count=6)
    halfway = states * np.exp(-0.5j * basis.energy_N * CONTROL_PERIOD)
    x, _, variance = physics.moments(basis, halfway)[:, :3].T
    silent = physics.control_step(propagator, states, still(6), np.zeros((6, 1))).signal_B
    np.testing.assert_allclose(silent, x, atol=1e-9)
    loud = physics.control_step(propagator, states, still(6), np.ones((6, 1))).signal_B
    np.testing.assert_allclose((loud - silent) ** 2, 1 / (2 * MEASUREMENT * CONTROL_PERIOD) + variance, rtol=1e-9)


def test_signal_is_distributed_as_position_plus_white_noise(basis):
    """Against the exact law, a mixture of normal distributions around the points, and around ⟨x⟩ over a whole step."""
    rng = np.random.default_rng(5)
    count, propagator = 20_000, physics.make_propagator(basis, 4)
    batch = np.repeat(lively_states(basis, count=1), count, axis=0)
    signal = physics.control_step(propagator, batch, still(count), rng.standard_normal((count, 4))).signal_B
    spread = np.sqrt(1 / (2 * MEASUREMENT * CONTROL_PERIOD))
    probability = np.abs((batch[0] * np.exp(-0.5j * basis.energy_N * CONTROL_PERIOD)) @ basis.to_point_NN) ** 2
    edges = spread * np.array([-1.2816, -0.8416, -0.5244, -0.2533, 0.0, 0.2533, 0.5244, 0.8416, 1.2816])
    cumulative = np.array(
        [[0.5 * (1 + erf((edge - x) / spread / np.sqrt(2))) for x in basis.point_N] for edge in edges]
    )
    expected = np.diff([0.0, *(cumulative @ probability), 1.0]) * count
    found = np.diff([0, *(np.sort(signal).searchsorted(edges)), count])
    assert ((found - expected) ** 2 / expected).sum() < 27.9  # 9 degrees of freedom, p = 0.001


def test_trajectory_is_that_of_the_stochastic_equation_on_a_grid(basis):
    """The slow twin: the paper's equation as it stands, steps of 1/1440 on a grid, its noise summed up for ours."""
    rng = np.random.default_rng(4)
    count, steps, fine = 6, 36, 80
    actions = rng.integers(6, 15, (steps, count))
    increments = rng.standard_normal((steps, count, fine)) * np.sqrt(CONTROL_PERIOD / fine)
    time = CONTROL_PERIOD / fine
    states = physics.gaussian_packets(basis, rng.uniform(-1, 1, count))
    x = np.linspace(-10, 10, 256, endpoint=False)
    grid_step = x[1] - x[0]
    psi = states @ basis.functions(x)
    drift = np.exp(-0.5j * time / MASS * (2 * np.pi * np.fft.fftfreq(256, grid_step)) ** 2)
    propagator = physics.make_propagator(basis, 4, FORCES)
    for action, dw in zip(actions, increments, strict=True):
        potential = np.exp(-1j * time * (QUARTIC * x**4 - FORCE_UNIT * FORCES[action, None] * x))
        for dw_B in dw.T:
            off_mean = x - (np.abs(psi) ** 2 @ x * grid_step)[:, None]
            change = -MEASUREMENT / 4 * off_mean**2 * time + np.sqrt(MEASUREMENT / 2) * off_mean * dw_B[:, None]
            psi = np.fft.ifft(drift * np.fft.fft(potential * (psi + change * psi)))
            psi /= np.sqrt((np.abs(psi) ** 2).sum(1, keepdims=True) * grid_step)
        noise = dw.reshape(count, 4, -1).sum(2) / np.sqrt(propagator.time)
        states = physics.control_step(propagator, states, action, noise).amplitudes_BN
    overlap = np.abs((psi.conj() * (states @ basis.functions(x))).sum(1) * grid_step)
    np.testing.assert_allclose(overlap, 1, atol=2e-3)
    x_B = (np.abs(psi) ** 2) @ x * grid_step
    np.testing.assert_allclose(physics.moments(basis, states)[:, 0], x_B, atol=0.02)
    assert np.ptp(x_B) > 1


def test_tilt_of_the_state_is_bayes_rule(basis):
    """Without H₀ (a state of almost no time) the density after a signal s is that before times the likelihood of s."""
    propagator = physics.make_propagator(basis, 1)
    half = np.exp(-0.5j * basis.energy_N * CONTROL_PERIOD)
    state = lively_states(basis, count=1)
    after = physics.control_step(propagator, state, still(1), np.full((1, 1), 1.7))
    before_points = np.abs((state[0] * half) @ basis.to_point_NN) ** 2
    after_points = np.abs((after.amplitudes_BN[0] / half) @ basis.to_point_NN) ** 2
    likelihood = np.exp(-MEASUREMENT * CONTROL_PERIOD * (basis.point_N - after.signal_B[0]) ** 2)
    expected = before_points * likelihood
    np.testing.assert_allclose(after_points, expected / expected.sum(), atol=1e-12)


def replayed_energies(size, substeps, noise, actions=None):
    """Energies of trajectories under LQG, or under given actions, and the actions; noise is (steps, B, 8)."""
    basis = physics.make_basis(size)
    propagator = physics.make_propagator(basis, substeps, FORCES)
    steps, count, fine = noise.shape
    noise = noise.reshape(steps, count, substeps, -1).sum(3) * np.sqrt(substeps / fine)
    states = physics.gaussian_packets(basis, np.linspace(-1.9, 1.9, count))
    energies, played = [], []
    for step in range(steps):
        if actions is None:
            played.append(controllers.nearest_actions(controllers.lqg(physics.moments(basis, states)), FORCES))
        action = played[step] if actions is None else actions[step]
        states = physics.control_step(propagator, states, action, noise[step]).amplitudes_BN
        energies.append(physics.energies(basis, states))
    return np.array(energies), played


def test_halved_step_or_larger_basis_hardly_change_the_energy_of_lqg_trajectories():
    """The same noise, and the actions that LQG took: what is left is the error of the integration."""
    noise = np.random.default_rng(7).standard_normal((360, 48, 8))
    energies, actions = replayed_energies(40, 4, noise)
    assert energies[0].max() > 2 * energies[-90:].mean()  # it was cooled
    for size, substeps, mean, each in ((40, 8, 2e-3, 0.05), (56, 4, 1e-5, 1e-3)):
        other, _ = replayed_energies(size, substeps, noise, actions)
        assert other.mean() == pytest.approx(energies.mean(), rel=mean)
        np.testing.assert_allclose(other, energies, rtol=each)


@pytest.mark.slow
def test_lqg_reaches_the_same_energy_with_half_the_step_or_a_larger_basis():
    """Controlled anew: within 0.5 %, two standard errors included, which the noise in common makes small."""
    noise = np.random.default_rng(8).standard_normal((1080, 384, 8))
    late = {}
    for size, substeps in ((40, 4), (40, 8), (56, 4)):
        late[size, substeps] = replayed_energies(size, substeps, noise)[0][540:].mean(0)
    for other in ((40, 8), (56, 4)):
        difference = late[other] - late[40, 4]
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        assert abs(difference.mean()) + 2 * error < 0.005 * late[40, 4].mean()


def test_rows_of_a_batch_do_not_depend_on_their_neighbours(basis):
    """Bit for bit, as long as batches are multiples of 8: whatever the others hold, and wherever the row stands."""
    states = lively_states(basis, count=64)
    rng = np.random.default_rng(0)
    action, noise = rng.integers(21, size=64), rng.standard_normal((64, 4))
    propagator = physics.make_propagator(basis, 4, FORCES)
    whole = physics.control_step(propagator, states, action, noise)
    whole_moments = physics.moments(basis, whole.amplitudes_BN)
    for rows in (np.arange(8), np.arange(24)[::-1], rng.permutation(64)[:16], rng.permutation(64)):
        part = physics.control_step(propagator, states[rows], action[rows], noise[rows])
        np.testing.assert_array_equal(part.amplitudes_BN, whole.amplitudes_BN[rows])
        np.testing.assert_array_equal(part.signal_B, whole.signal_B[rows])
        np.testing.assert_array_equal(physics.moments(basis, part.amplitudes_BN), whole_moments[rows])
