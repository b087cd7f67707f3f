"""How cold a policy keeps the oscillator."""

import numpy as np

from cdqn.envs.oscillator import QuarticOscillatorVectorEnv, late_energies
from cdqn.tasks import controllers


def test_late_energies_fail_at_the_limit_and_do_not_depend_on_the_batch():
    def push(observation):
        return np.full(len(observation), 20)

    env = QuarticOscillatorVectorEnv(5, time_limit=3.0)
    np.testing.assert_array_equal(late_energies(env, push, 7, seed=1), np.full(7, 12.0))
    results = []
    for count in (3, 7):
        env = QuarticOscillatorVectorEnv(count, time_limit=2.0, energy_limit=100.0)
        results.append(late_energies(env, controllers.policy("damping", env.force_A, 0.1), 7, seed=1))
    np.testing.assert_array_equal(results[0], results[1])


def test_late_energies_are_means_from_half_time_on():
    env = QuarticOscillatorVectorEnv(2, time_limit=2.0, energy_limit=100.0)
    act = controllers.policy("damping", env.force_A, env.observation_scale)
    found = late_energies(env, act, 2, seed=3)
    again = QuarticOscillatorVectorEnv(2, time_limit=2.0, energy_limit=100.0)
    observation, infos = again.reset(seed=env._seed_B.tolist())
    energies = [infos["energy"]]
    for _ in range(35):
        observation, _, _, _, infos = again.step(act(observation))
        energies.append(infos["energy"])
    np.testing.assert_allclose(found, np.mean(energies[18:], axis=0))
