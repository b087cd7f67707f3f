"""The comparison controllers: by hand, by symmetry, against the physics that they predict, and by what they cool."""

import numpy as np
import pytest

from cdqn.envs.oscillator import QuarticOscillatorVectorEnv, late_energies
from cdqn.errors import ConfigError
from cdqn.tasks import controllers
from cdqn.tasks import oscillator as physics
from cdqn.tasks.oscillator import MASS, QUARTIC

FORCES = np.linspace(-5, 5, 21)


def moments_of(**named):
    """One row of moments, zero where not named."""
    names = ["x", "p", "xx", "xp", "pp", "xxx", "xxp"]
    row = np.zeros((1, 20))
    for name, value in named.items():
        row[0, names.index(name)] = value
    return row


def states_of_many_kinds():
    rng = np.random.default_rng(0)
    basis = physics.make_basis(40)
    propagator = physics.make_propagator(basis, 4, FORCES)
    states = physics.gaussian_packets(basis, rng.uniform(-1, 1, 24))
    for _ in range(30):
        noise = rng.standard_normal((24, 4))
        states = physics.control_step(propagator, states, rng.integers(8, 13, 24), noise).amplitudes_BN
    return basis, states


def test_lqg_by_hand_for_a_particle_at_rest_and_one_in_motion():
    stiffness = np.sqrt(2.8 * QUARTIC * MASS)
    moving = controllers.lqg(moments_of(p=0.1))[0]
    xpx, later_x = 0.0, 0.1 / MASS / 18
    assert moving == pytest.approx(-(stiffness * later_x + 0.1 - 6 * QUARTIC * xpx / MASS / 18**2) * 18)
    at_rest = controllers.lqg(moments_of(x=0.5, xx=0.4))[0]
    cube = 3 * 0.5 * 0.4 + 0.5**3
    later_x, later_p = 0.5 - 2 * QUARTIC * cube / MASS / 18**2, -4 * QUARTIC * cube / 18
    assert at_rest == pytest.approx(-(stiffness * later_x + later_p) * 18)


def test_damping_by_hand():
    assert controllers.damping(moments_of(p=0.3), share=0.5)[0] == pytest.approx(-0.5 * 0.3 * 18)
    assert controllers.damping(moments_of(p=0.3))[0] == pytest.approx(-0.4 * 0.3 * 18)
    # Only the pull of the potential on a resting particle, which the third moment makes.
    assert controllers.damping(moments_of(xxx=0.2))[0] == pytest.approx(0.4 * 4 * QUARTIC * 0.2)


def test_semiclassical_by_hand():
    target = -np.sqrt(2 * MASS * QUARTIC * (6 * 0.5 + 1.2**2)) * 1.2
    force = controllers.semiclassical(moments_of(x=1.2, p=0.7, xx=0.5))[0]
    assert force == pytest.approx((target - 0.7) * 18)


def test_semiclassical_target_just_reaches_the_centre():
    """With the momentum that it aims at, kinetic energy is what ⟨λx⁴⟩ has above that of ⟨x⟩ = 0, at this variance."""
    x, variance = -0.9, 0.6
    target = controllers.semiclassical(moments_of(x=x, xx=variance))[0] / 18
    gauss_x, weight = np.polynomial.hermite_e.hermegauss(8)

    def potential(mean):
        return QUARTIC * (weight @ (mean + np.sqrt(variance) * gauss_x) ** 4) / weight.sum()

    assert target > 0  # towards the centre
    assert target**2 / (2 * MASS) == pytest.approx(potential(x) - potential(0))


@pytest.mark.parametrize("name", controllers.CONTROLLERS)
def test_mirrored_state_gets_the_mirrored_force(name):
    basis, states = states_of_many_kinds()
    mirrored = states * (-1.0) ** np.arange(basis.size)
    controller = controllers.CONTROLLERS[name]
    force, other = (controller(physics.moments(basis, batch)) for batch in (states, mirrored))
    assert np.ptp(force) > 5
    np.testing.assert_allclose(other, -force, atol=1e-8)


def test_prediction_is_the_state_at_the_end_of_the_step():
    basis, states = states_of_many_kinds()
    propagator = physics.make_propagator(basis, 8, measurement=0.0)
    later = physics.control_step(propagator, states, np.zeros(24, np.int64), np.zeros((24, 8))).amplitudes_BN
    before, after = physics.moments(basis, states), physics.moments(basis, later)
    x, p = controllers._predicted(before)
    # What is left is of the third order in τ; the change is of the first.
    assert np.abs(after[:, 0] - before[:, 0]).max() > 0.1
    np.testing.assert_allclose(x, after[:, 0], atol=0.01)
    np.testing.assert_allclose(p, after[:, 1], atol=0.01)


def test_nearest_of_the_forces_is_played():
    force = np.pi * np.array([0.0, 0.2, 0.26, -0.26, 4.9, 5.1, 1e30, -1e30, -4.74])
    np.testing.assert_array_equal(controllers.nearest_actions(force, FORCES), [10, 10, 11, 9, 20, 20, 20, 0, 1])


def test_policy_undoes_the_scale_of_the_observation():
    basis, states = states_of_many_kinds()
    moments = physics.moments(basis, states)
    expected = controllers.nearest_actions(controllers.lqg(moments), FORCES)
    assert len(set(expected.tolist())) > 3
    for scale in (0.1, 1.0):
        act = controllers.policy("lqg", FORCES, scale)
        np.testing.assert_array_equal(act((moments * scale).astype(np.float32)), expected)


@pytest.mark.parametrize("name", controllers.CONTROLLERS)
def test_oscillator_is_cooled(name):
    """Episodes begin at energies of about 3; the ground state has 0.7177."""
    env = QuarticOscillatorVectorEnv(40, energy_limit=100.0, time_limit=60.0)
    energies = late_energies(env, controllers.policy(name, env.force_A, env.observation_scale), 40, seed=0)
    assert energies.shape == (40,)
    assert (energies > 0.7177).all()
    assert np.median(energies) < 0.9
    assert env.edge_count == 0


def test_unknown_controller_and_observations_that_are_no_moments_are_refused_by_name():
    with pytest.raises(ConfigError, match="no controller 'pid': choose lqg, damping, semiclassical"):
        controllers.policy("pid", FORCES, 0.1)
    with pytest.raises(ConfigError, match=r"shape \(3, 80\).*\(trajectories, 20\)"):
        controllers.lqg(np.zeros((3, 80)))
