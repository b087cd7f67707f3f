"""Evaluation: whole episodes in fixed shares, and nothing of the training is touched."""

from functools import partial

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cdqn
from cdqn.envs import describe
from cdqn.errors import StoppedError, UnsupportedEnvironmentError
from cdqn.training.evaluation import evaluate
from helpers import CountingEnv, WalkEnv, assert_same_state


def test_evaluation_leaves_the_held_actions_of_training_alone():
    settings = {"hidden": (8,), "batch_size": 8, "warmup_steps": 60, "memory_size": 100, "compile": "off"}
    agent = cdqn.CDQN(WalkEnv(), exploration="epsilon-z", **settings)
    agent.learn(20)
    held = {"left": np.array([30]), "held": np.array([1])}
    agent.trainer.exploration.load_state_dict(held)
    rng = agent.trainer.state_dict()["rng"]
    agent.evaluate(2, epsilon=0.5)
    assert_same_state(agent.trainer.exploration.state_dict(), held)
    assert agent.trainer.state_dict()["rng"] == rng


class Nobody:
    """A policy that always takes the first action."""

    def greedy(self, observation):
        return np.zeros(len(observation), np.int64)


def evaluated(episodes, *lengths, **settings):
    """Of environments whose episodes all have these lengths, one environment for each length."""
    makers = [partial(CountingEnv, name, (length,)) for name, length in enumerate(lengths)]
    env = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.DISABLED)
    return evaluate(Nobody(), env, describe(env), episodes, seed=0, **settings)


def test_each_environment_plays_its_share_however_short_its_episodes_are():
    result = evaluated(5, 2, 10)
    assert sorted(result.lengths.tolist()) == [2, 2, 2, 10, 10]
    assert sorted(result.returns.tolist()) == [3, 3, 3, 55, 55]  # rewards are 1, 2, 3 …
    assert result.epsilon == 0


def test_every_episode_that_counts_is_told_once():
    told = []
    evaluated(5, 2, 10, on_episode=lambda: told.append(1))
    assert len(told) == 5


def test_wish_to_stop_is_heeded_between_two_steps():
    asked = []

    def third_time():
        asked.append(1)
        return len(asked) == 3

    with pytest.raises(StoppedError, match="after 1 of 5 episodes"):
        evaluated(5, 2, 10, should_stop=third_time)


def test_episode_that_does_not_end_is_given_up(monkeypatch):
    monkeypatch.setattr("cdqn.training.evaluation.MAX_EPISODE_STEPS", 20)
    with pytest.raises(UnsupportedEnvironmentError, match="has lasted 20 steps"):
        evaluated(1, 1000)
