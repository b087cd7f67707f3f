"""Data sets of Minari's, written by Minari itself into a folder of the test's own."""

import sys
import warnings
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

import cdqn
from cdqn.errors import ConfigError, MissingPackageError
from cdqn.integrations.minari import is_minari, read_minari
from cdqn.runs.fitting import prepare
from cdqn.training.offline.sources import open_source
from offline_data import SMALL, TimedEnv

minari = pytest.importorskip("minari")
pytest.importorskip("h5py")


class Parts(TimedEnv):
    """Shows a Dict: where it is, and how far it has come."""

    observation_space = Dict({"time": Discrete(4), "place": Box(-1, 1, (2,), np.float32)})
    action_space = Discrete(3)
    length = 3

    def _seen(self):
        return {"time": self.time, "place": self.np_random.uniform(-1, 1, 2).astype(np.float32)}


def stacked(rows):
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]} if isinstance(rows[0], dict) else rows


def written(env, name, episodes=12):
    """A data set of random play. Minari's DataCollector needs jax: this is the way without."""
    from minari.data_collector import EpisodeBuffer

    env.action_space.seed(0)
    buffers = []
    for number in range(episodes):
        steps, over = [], False
        seen = [env.reset(seed=number)[0]]
        while not over:
            action = env.action_space.sample()
            observation, reward, terminated, truncated, _ = env.step(action)
            seen.append(observation)
            steps.append((action, reward, terminated, truncated))
            over = terminated or truncated
        actions, rewards, terminations, truncations = map(list, zip(*steps, strict=True))
        buffers.append(
            EpisodeBuffer(
                id=number,
                observations=stacked(seen),
                actions=np.array(actions),
                rewards=rewards,
                terminations=terminations,
                truncations=truncations,
            )
        )
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nobody is named as its author
        made = env if env.spec is not None else None
        return minari.create_dataset_from_buffers(name, buffers, env=made, **spaces)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def test_data_set_trains_an_agent_that_is_evaluated_in_its_environment():
    data = written(gym.make("CartPole-v1", max_episode_steps=40), "cart/random-v0")
    agent = cdqn.CDQN.fit("cart/random-v0", updates=30, **SMALL)
    assert (agent.env_id, agent.data) == ("CartPole-v1", "minari:cart/random-v0")
    assert agent.config.environment_kwargs == {"max_episode_steps": 40}
    assert agent.steps == 30
    assert agent.evaluate(2).lengths.max() <= 40
    loaded = cdqn.CDQN.fit(data, updates=30, **SMALL)
    np.testing.assert_array_equal(agent.weights, loaded.weights)


def test_rows_are_those_of_the_episodes():
    data = written(gym.make("CartPole-v1"), "cart/random-v0", episodes=3)
    columns = open_source("cart/random-v0").columns
    episodes = list(data.iterate_episodes())
    lengths = [len(episode.rewards) for episode in episodes]
    assert len(columns.actions) == sum(lengths)
    np.testing.assert_array_equal(columns.observations[lengths[0]], episodes[1].observations[0])
    np.testing.assert_array_equal(columns.next_observations[lengths[0] - 1], episodes[0].observations[-1])
    np.testing.assert_array_equal(np.flatnonzero(columns.terminations), np.cumsum(lengths) - 1)


def test_parts_of_a_dict_are_joined_as_in_an_environment():
    written(Parts(), "parts/random-v0")
    made = prepare("parts/random-v0", Parts(), 20, given=SMALL | {"n_step": 2})
    assert made.agent.spec.observation_shape == (6,)
    assert made.agent.predict(Parts().reset(seed=0)[0]) in range(3)
    alone = prepare("parts/random-v0", None, 20, given=SMALL)
    assert not alone.agent.has_environment
    assert alone.agent.trainer.replay.state_dict()["store"]["observation"].shape == (36, 6)


def test_environment_that_is_not_registered_is_not_imported(monkeypatch):
    env = gym.make("CartPole-v1")
    env.unwrapped.spec.id = "NobodyRegistersThis-v0"
    env.unwrapped.spec.entry_point = "trap_module:Trap"
    monkeypatch.setattr(type(env), "spec", env.unwrapped.spec)
    written(env, "trap/random-v0", episodes=2)
    source = open_source("trap/random-v0")
    assert (source.env, "trap_module" in sys.modules) == (None, False)


def test_environment_that_does_not_fit_is_left_out_with_a_word():
    written(gym.make("CartPole-v1"), "cart/random-v0", episodes=3)
    source = open_source("cart/random-v0")
    assert source.spaces["actions"] == 2
    data = read_minari("cart/random-v0")
    smaller = [replace(episode, observations=episode.observations[:, :2]) for episode in data.episodes]
    data = data._replace(episodes=smaller, observation_space=Box(-9, 9, (2,), np.float32))
    from cdqn.training.offline import sources

    made = sources._of_minari(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cdqn.runs.fitting.open_source", lambda *_: made)
        fitting = prepare("cart/random-v0", None, 10, given=SMALL)
    assert not fitting.agent.has_environment
    assert any("CartPole-v1, is left out: observations has shape" in notice for notice in fitting.notices)


def test_actions_that_are_not_one_finite_set_are_refused():
    written(gym.make("Pendulum-v1", max_episode_steps=5), "pendulum/random-v0", episodes=2)
    with pytest.raises(ConfigError, match=r"pendulum/random-v0 has actions Box.*needs a finite set"):
        open_source("pendulum/random-v0")
    data = read_minari("pendulum/random-v0")
    from cdqn.training.offline import sources

    with pytest.raises(ConfigError, match="has actions MultiDiscrete"):
        sources._of_minari(data._replace(action_space=MultiDiscrete([2, 2])))


def test_name_that_nobody_knows_is_refused_with_those_there_are():
    written(gym.make("CartPole-v1"), "cart/random-v0", episodes=2)
    with pytest.raises(ConfigError, match=r"no data set 'cart/expert-v0'.*on this machine \(cart/random-v0\)"):
        read_minari("cart/expert-v0")
    assert not is_minari({})


def test_damaged_data_set_is_refused(tmp_path):
    written(gym.make("CartPole-v1"), "cart/random-v0", episodes=2)
    (file,) = (tmp_path / "minari").rglob("*.hdf5")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ConfigError, match="Minari cannot read the data set 'cart/random-v0'"):
        read_minari("cart/random-v0")


def test_missing_package_is_named_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(MissingPackageError, match=r"x-v0 is no file: .* needs minari: pip install 'cdqn\[minari\]'"):
        read_minari("cart/x-v0")
