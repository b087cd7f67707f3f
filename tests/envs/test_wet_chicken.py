"""Wet chicken: the river by hand, its noise, and Gymnasium's own checks."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import cdqn
from cdqn.envs.wet_chicken import TURBULENCE, WATERFALL, WetChickenEnv, next_position
from cdqn.errors import ConfigError


@pytest.mark.parametrize(
    ("x", "action", "noise", "expected"),
    [
        (5.0, 0, 0.5, 4.5),  # paddle back
        (5.0, 1, 0.5, 5.5),  # hold
        (5.0, 2, 0.5, 6.5),  # drift
        (0.5, 0, -1.0, 0.0),  # the bank
        (18.0, 2, 1.0, 0.0),  # exactly at the waterfall is a fall
        (18.0, 2, 0.9, 19.9),
        (19.9, 2, 2.5, 0.0),
        (0.0, 1, 0.0, 0.0),
    ],
)
def test_position_after_a_step(x, action, noise, expected):
    assert next_position(x, action, noise) == pytest.approx(expected)


def test_reward_is_the_position_after_the_fall():
    env = WetChickenEnv()
    env.reset(seed=0)
    falls = 0
    for _ in range(2000):
        x = env._x
        observation, reward, terminated, truncated, _ = env.step(np.int64(2))
        assert observation[0] == np.float32(reward)
        assert not terminated
        assert not truncated
        if reward < x - TURBULENCE:
            assert reward == 0
            falls += 1
    assert falls > 50  # drifting takes about 20 steps to the waterfall


def test_noise_is_uniform_on_its_interval():
    env = WetChickenEnv()
    env.reset(seed=1)
    noise = []
    for _ in range(20_000):
        env._x = 10.0
        noise.append(env.step(np.int64(1))[1] - 10.0)
    counts, _ = np.histogram(noise, bins=20, range=(-TURBULENCE, TURBULENCE))
    assert counts.sum() == 20_000
    chi_square = ((counts - 1000) ** 2 / 1000).sum()
    assert chi_square < 43.8  # 19 degrees of freedom, p = 0.001


def test_same_seed_same_river():
    env = WetChickenEnv()
    rivers = []
    for _ in range(2):
        env.reset(seed=3)
        rivers.append([env.step(np.int64(2))[1] for _ in range(50)])
    assert rivers[0] == rivers[1]


def test_position_just_below_the_waterfall_is_observed_below_it():
    """20 − 1e-9 is 20.0 in float32, which is outside the observation space."""
    env = WetChickenEnv()
    env.reset(seed=0)
    env._x = WATERFALL - 1e-9
    assert env.observation_space.contains(env._observation())


def test_gymnasium_finds_no_fault():
    env = gym.make("cdqn/WetChicken-v0").unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env, skip_render_check=True)


def test_registered_with_the_time_limit_of_the_paper():
    env = gym.make("cdqn/WetChicken-v0")
    env.reset(seed=0)
    ends = [env.step(1)[2:4] for _ in range(300)]
    assert ends == [(False, False)] * 299 + [(False, True)]


def test_rendered_as_text():
    env = WetChickenEnv(render_mode="ansi")
    env.reset(seed=0)
    env._x = 3.7
    assert env.render() == "~~~o~~~~~~~~~~~~~~~~| 3.70"
    with pytest.raises(ConfigError, match="ansi"):
        WetChickenEnv(render_mode="human")


def test_an_agent_trains_on_it_by_name():
    agent = cdqn.CDQN("cdqn/WetChicken-v0", seed=0, hidden=(8,), warmup_steps=50, batch_size=8, compile="off")
    agent.learn(120)
    assert agent.evaluate(episodes=1).lengths[0] == 300
