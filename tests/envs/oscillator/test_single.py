"""One trajectory as an environment: Gymnasium's checks, and a row of the vector environment."""

import warnings

import gymnasium as gym
import numpy as np
from gymnasium.utils.env_checker import check_env

from cdqn.envs.oscillator import QuarticOscillatorEnv, QuarticOscillatorVectorEnv

ID = "cdqn/QuarticOscillator-v0"


def gentle(count, steps, seed=0):
    """Actions that do not end an episode soon."""
    return np.random.default_rng(seed).integers(9, 12, (steps, count))


def test_gymnasium_finds_no_fault():
    for observation in ("moments", "wavefunction"):
        env = gym.make(ID, observation=observation, render_mode="rgb_array").unwrapped
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(env)


def test_single_environment_is_a_row_of_the_vector_environment():
    actions = gentle(3, 80)
    vector = QuarticOscillatorVectorEnv(3, energy_limit=100.0)
    single = QuarticOscillatorEnv(energy_limit=100.0)
    rows, row = vector.reset(seed=[5, 6, 7])[0], single.reset(seed=6)[0]
    np.testing.assert_array_equal(row, rows[1])
    for action in actions:
        many, one = vector.step(action), single.step(action[1])
        np.testing.assert_array_equal(one[0], many[0][1])
        assert one[1:4] == (many[1][1], False, bool(many[3][1]))
        assert one[4] == {name: value[1] for name, value in many[4].items()}


def test_state_of_a_single_environment_goes_on():
    env, other = QuarticOscillatorEnv(), QuarticOscillatorEnv()
    env.reset(seed=0)
    env.step(np.int64(12))
    other.load_state_dict(env.state_dict())
    np.testing.assert_array_equal(env.step(np.int64(9))[0], other.step(np.int64(9))[0])
    np.testing.assert_array_equal(env.reset()[0], other.reset()[0])
