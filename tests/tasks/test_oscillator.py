"""The quartic oscillator's physics: against fine grids, conservation laws and the master equation."""

from math import erf

import numpy as np
import pytest

from cdqn.errors import ConfigError
from cdqn.tasks import controllers
from cdqn.tasks import oscillator as physics
from cdqn.tasks.oscillator import CONTROL_PERIOD, FORCE_UNIT, MASS, MEASUREMENT, QUARTIC

FORCES = np.linspace(-5, 5, 21)
HEATING = MEASUREMENT / (4 * MASS)
"""dE/dt: the double commutator −(γ/4)[x, [x, ρ]] gives d⟨p²⟩/dt = γ/2 in every state, and nothing to functions of x."""


@pytest.fixture(scope="module")
def basis():
    return physics.make_basis(40)


def still(count):
    """The action of no force, for a propagator made without actions."""
    return np.zeros(count, np.int64)


def lively_states(basis, count=32, steps=40, seed=0):
    """States far from Gaussian: packets, pushed about and measured."""
    rng = np.random.default_rng(seed)
    propagator = physics.make_propagator(basis, 4, FORCES)
    states = physics.gaussian_packets(basis, rng.uniform(-1.9, 1.9, count))
    for _ in range(steps):
        noise = rng.standard_normal((count, 4))
        states = physics.control_step(propagator, states, rng.integers(5, 16, count), noise).amplitudes_BN
    return states


def test_constants_are_those_of_the_paper():
    np.testing.assert_allclose([MASS, QUARTIC, MEASUREMENT], [1 / np.pi, np.pi / 25, 0.01 * np.pi], rtol=1e-15)
    np.testing.assert_allclose([FORCE_UNIT, CONTROL_PERIOD, physics.NUM_ACTIONS], [np.pi, 1 / 18, 21], rtol=1e-15)


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


def test_edge_population_is_the_probability_of_the_highest_states():
    amplitudes = np.zeros((2, 40), np.complex128)
    amplitudes[:, 0] = 1
    amplitudes[1, [35, 36, 39]] = [0.5, 0.1j, 0.2]
    np.testing.assert_allclose(physics.edge_population(amplitudes), [0, 0.05])


def test_basis_too_small_for_the_energy_is_answered_with_a_size_that_is_enough(basis):
    physics.require_room(basis, 100)
    with pytest.raises(ConfigError, match=r"basis_size 12 .*energy_limit 12: raise basis_size to 16") as caught:
        physics.require_room(physics.make_basis(12), 12)
    assert "lower energy_limit" in str(caught.value)
    physics.require_room(physics.make_basis(16), 12)
    with pytest.raises(ConfigError, match="basis_size 40 is too small for energy_limit 200"):
        physics.require_room(basis, 200)
    with pytest.raises(ConfigError, match="basis_size is 4"):
        physics.make_basis(4)


def test_step_too_coarse_for_the_force_is_answered_with_a_number_that_is_enough(basis):
    physics.require_fine_steps(physics.make_propagator(basis, 4, FORCES), 5.0)
    with pytest.raises(ConfigError, match="substeps 1 is too coarse for max_force 5: raise substeps to 2"):
        physics.require_fine_steps(physics.make_propagator(basis, 1, FORCES), 5.0)
    physics.require_fine_steps(physics.make_propagator(basis, 2, FORCES), 5.0)
    with pytest.raises(ConfigError, match="substeps is 0"):
        physics.make_propagator(basis, 0)


def test_error_of_a_step_falls_with_the_fourth_power_of_its_length(basis):
    """A symmetric split: amplitudes are wrong by the second power, and the infidelity by its square."""
    errors = [physics.step_error(physics.make_propagator(basis, substeps), 5.0) for substeps in (1, 2, 4)]
    np.testing.assert_allclose(np.array(errors[:-1]) / errors[1:], 16, rtol=0.1)
