"""Environments that normalise by themselves: an evaluation has the statistics of the training."""

import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import NormalizeObservation, NormalizeReward
from gymnasium.wrappers.vector import NormalizeObservation as NormalizeAll

import cdqn
from cdqn.cli.main import main
from cdqn.envs.evaluation import evaluating, statistics_of
from cdqn.errors import ConfigError
from cdqn.training.actor import Actor
from helpers import TINY, WalkEnv, assert_same_state

NAME = "gymnasium.wrappers:NormalizeObservation"


def cart_pole():
    return NormalizeObservation(gym.make("CartPole-v1"))


def trained(env, **settings):
    return cdqn.CDQN(env, **(TINY | settings)).learn(200)


def training_env(agent):
    return agent.trainer.collector.env


def seen_in_evaluation(agent, **arguments):
    """What the policy was shown."""
    seen = []
    greedy = agent.trainer.actor.greedy
    agent.trainer.actor.greedy = lambda x: seen.append(x) or greedy(x)
    try:
        agent.evaluate(2, num_envs=1, **arguments)
    finally:
        del agent.trainer.actor.greedy
    return np.concatenate(seen)


def first_observation(env, seed):
    return env.reset(seed=seed)[0]


@pytest.mark.parametrize("env", [cart_pole, lambda: NormalizeObservation(WalkEnv())], ids=["of an id", "copied"])
def test_evaluation_has_the_statistics_of_the_training_frozen(env):
    env = env()
    agent = trained(env)
    learned = (env.obs_rms.mean.copy(), env.obs_rms.var.copy())
    seen = seen_in_evaluation(agent)
    raw = seen * np.sqrt(learned[1] + env.epsilon) + learned[0]
    plain = gym.make("CartPole-v1") if env.spec else WalkEnv()
    assert raw[0] == pytest.approx(first_observation(plain, agent_seed(agent)), abs=1e-5)
    assert np.array_equal(env.obs_rms.mean, learned[0])
    assert env.update_running_mean


def agent_seed(agent):
    """Of the first episode of an evaluation."""
    from cdqn.training.seeding import EVALUATION, derived_seed

    return derived_seed(derived_seed(agent.config.seed, EVALUATION), (0, 0))


def test_each_environment_of_an_evaluation_borrows_from_its_own():
    agent = trained("CartPole-v1", wrapper=NormalizeObservation, num_envs=2)
    learned = statistics_of(training_env(agent))
    assert not np.array_equal(learned["0"]["0"]["mean"], learned["1"]["0"]["mean"])
    env = SyncVectorEnv([cart_pole] * 3, autoreset_mode=AutoresetMode.DISABLED)
    with evaluating(env, learned):
        means = [single.obs_rms.mean for single in env.envs]
        assert not any(single.update_running_mean for single in env.envs)
        for mean, of in zip(means, ("0", "1", "0"), strict=True):
            assert np.array_equal(mean, learned[of]["0"]["mean"])
    assert not env.envs[0].obs_rms.mean.any()
    assert all(single.update_running_mean for single in env.envs)


@pytest.mark.parametrize("saved_at", [20, 172])
def test_run_behind_the_wrappers_resumes_exactly(tmp_path, saved_at):
    """What is played again on resumption gives the observations of before, and teaches the wrappers nothing."""
    settings = {"wrapper": [NormalizeObservation, NormalizeReward], "num_envs": 2} | TINY

    def agent():
        with pytest.warns(UserWarning, match="NormalizeReward scales its rewards"):
            return cdqn.CDQN("CartPole-v1", **settings)

    straight = agent().learn(saved_at)
    straight.save(tmp_path / "run")
    with pytest.warns(UserWarning, match="NormalizeReward"):
        resumed = cdqn.load(tmp_path / "run", allow_import="gymnasium.wrappers")
    assert_same_state(statistics_of(training_env(resumed)), statistics_of(training_env(straight)))
    for one in (straight, resumed):
        one.learn(100)
    assert np.array_equal(straight.weights, resumed.weights)
    assert_same_state(straight.trainer.state_dict()["wrappers"], resumed.trainer.state_dict()["wrappers"])


def test_saved_agent_is_evaluated_with_its_statistics(tmp_path):
    env = cart_pole()
    agent = trained(env)
    agent.save(tmp_path / "run")
    loaded = cdqn.load(tmp_path / "run", env=cart_pole())
    assert np.array_equal(seen_in_evaluation(loaded), seen_in_evaluation(agent))


def test_rewards_of_an_evaluation_are_the_environments_own():
    with pytest.warns(UserWarning, match="NormalizeReward scales its rewards"):
        agent = trained(NormalizeReward(gym.make("CartPole-v1")))
    result = agent.evaluate(3)
    assert result.returns.tolist() == result.lengths.tolist()


def test_environment_given_to_evaluate_is_lent_the_statistics_and_given_back_as_it_was():
    agent = trained(SyncVectorEnv([WalkEnv] * 2, autoreset_mode=AutoresetMode.NEXT_STEP) | Normalized())
    other = SyncVectorEnv([WalkEnv] * 2, autoreset_mode=AutoresetMode.NEXT_STEP) | Normalized()
    untouched = statistics_of(other)
    agent.evaluate(2, env=other)
    assert_same_state(statistics_of(other), untouched)
    with pytest.raises(ConfigError, match="cannot make another"):
        agent.evaluate(2)


class Normalized:
    def __ror__(self, env):
        return NormalizeAll(env)


@pytest.mark.parametrize(("training", "other"), [(cart_pole, "CartPole-v1"), (lambda: "CartPole-v1", cart_pole)])
def test_evaluation_in_an_environment_that_is_wrapped_otherwise_is_refused(training, other):
    agent = trained(training())
    with pytest.raises(ConfigError, match="normalize_observations=True"):
        agent.evaluate(2, env=other() if callable(other) else other)


def test_run_of_an_older_version_without_the_statistics_is_refused(tmp_path, monkeypatch):
    from cdqn.training.trainer import Trainer

    now = Trainer.state_dict
    monkeypatch.setattr(Trainer, "state_dict", lambda self: {k: v for k, v in now(self).items() if k != "wrappers"})
    trained(cart_pole()).save(tmp_path / "run")
    with pytest.raises(ConfigError, match="statistics of none are known"):
        cdqn.load(tmp_path / "run", env=cart_pole())


def test_shell_evaluates_and_plays_with_the_statistics_of_the_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    agent = trained("CartPole-v1", wrapper=NAME, num_envs=2)
    agent.save("run")
    allowed = ["--allow-import", "gymnasium.wrappers"]
    assert main(["evaluate", "run", "--episodes", "2", "--json", *allowed]) == 0
    assert json.loads(capsys.readouterr().out)["returns"] == agent.evaluate(2).returns.tolist()
    seen = []
    monkeypatch.setattr(Actor, "greedy", lambda self, x: seen.append(x) or np.zeros(len(x), np.int64))
    assert main(["play", "run", "--video", "a.gif", "--max-steps", "3", *allowed]) == 0
    learned = statistics_of(training_env(agent))["0"]["0"]
    raw = seen[0] * np.sqrt(learned["var"] + 1e-8) + learned["mean"]
    assert raw[0] == pytest.approx(first_observation(gym.make("CartPole-v1"), 0), abs=1e-5)
