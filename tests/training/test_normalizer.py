"""Normalised observations: right statistics, seen by every network, gathered in training alone, resumed bit for bit."""

import copy
import json

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import TransformObservation

import cdqn
from cdqn.errors import ConfigError
from cdqn.training.normalizer import CLIP, ObservationNormalizer
from helpers import TINY, WalkEnv, assert_same_state, make_trainer
from helpers import run_trainer as run


def far_and_small():
    """A walk whose three features are far from 0, of very different sizes."""
    factor, shift = np.array([1e-4, 1.0, 1e3], np.float32), np.array([0.5, -7.0, 1e4], np.float32)
    env = WalkEnv()
    return TransformObservation(env, lambda x: (factor * x + shift).astype(np.float32), env.observation_space)


class IntegerEnv(gym.Env):
    """Whole numbers far from 0; the parity of the last says which action pays."""

    observation_space = Box(0, 10_000, (2,), np.int32)
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._observation(), {}

    def step(self, action):
        self.time += 1
        return self._observation(), float(action), False, self.time == 9, {}

    def _observation(self):
        return np.array([5_000 + self.time, self.np_random.integers(3)], np.int32)


def filled(x, pieces=7):
    normalizer = ObservationNormalizer(x.shape[1])
    for piece in np.array_split(x, pieces):
        normalizer.observe(piece)
    return normalizer


def test_statistics_of_pieces_are_those_of_the_whole():
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(500, 4)) * [1e-3, 1, 50, 2] + [0, 3, -1e4, 1e3]).astype(np.float32)
    normalizer = filled(x)
    assert normalizer.mean_F == pytest.approx(x.astype(np.float64).mean(0), rel=1e-6, abs=1e-9)
    assert 1 / normalizer.factor_F == pytest.approx(x.astype(np.float64).std(0), rel=1e-6)
    seen = normalizer(x)
    assert seen.dtype == np.float32
    assert np.abs(seen.mean(0)).max() < 1e-3
    assert seen.std(0) == pytest.approx(np.ones(4), rel=1e-3)


def test_observations_of_a_large_offset_keep_their_variance():
    """Sums of squares less the square of the sum would leave nothing of it."""
    x = 1e6 + np.random.default_rng(0).integers(0, 2, (1000, 1))
    assert 1 / filled(x, 100).factor_F == pytest.approx([x.std()], rel=1e-6)


def test_units_of_an_observation_do_not_matter():
    x = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    kilometres, millimetres = filled(x), filled(x * 2.0**20)
    assert np.array_equal(kilometres(x), millimetres(x * 2.0**20))


def test_what_never_changed_is_zero_and_its_first_change_is_clipped():
    normalizer = filled(np.tile(np.array([0.1, 0, 7], np.float32), (100, 1)))
    assert not normalizer(np.array([[0.1, 0, 7]], np.float32)).any()
    assert normalizer(np.array([[0.2, 1e30, -1e38]], np.float32)).tolist() == [[CLIP, CLIP, -CLIP]]


def test_rounding_of_a_constant_is_not_blown_up():
    x = (1 + 6e-8 * np.random.default_rng(0).integers(-1, 2, (100, 1))).astype(np.float32)
    assert np.abs(filled(x)(x)).max() < 0.5


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8, np.bool_])
def test_every_type_of_number_is_seen_in_32_bits(dtype):
    x = np.random.default_rng(0).integers(0, 2, (50, 2)).astype(dtype)
    seen = filled(x)(x)
    assert seen.dtype == np.float32
    assert seen.std(0) == pytest.approx([1, 1], rel=1e-3)


def test_nothing_is_changed_but_clipped_before_the_first_observation():
    normalizer = ObservationNormalizer(2)
    normalizer.observe(np.zeros((0, 2), np.float32))  # environments that only reset themselves
    assert normalizer(np.array([[3, 50]], np.float32)).tolist() == [[3, CLIP]]


def test_statistics_are_of_every_observation_acted_upon_once():
    trainer = make_trainer(env=far_and_small, normalize_observations=True, memory_size=400)
    run(trainer, 300)
    rows = trainer.replay.read(np.arange(len(trainer.replay)), np.ones(len(trainer.replay)))
    assert len(rows.observation) == 300
    assert rows.observation[:, 2].mean() > 5e3  # the memory is raw
    state = trainer.normalizer.state_dict()
    assert state["count"] == 300
    assert state["mean"] == pytest.approx(rows.observation.astype(np.float64).mean(0), rel=1e-9)


@pytest.mark.parametrize("algorithm", ["cdqn", "dqn", "rg"])
def test_every_network_sees_normalized_observations(algorithm, monkeypatch):
    trainer = make_trainer(env=far_and_small, algorithm=algorithm, normalize_observations=True)
    largest = []
    for networks in (trainer.learner.networks, trainer.learner.target_networks):
        networks["q"].register_forward_pre_hook(lambda _, inputs: largest.append(float(inputs[0].abs().max())))
    run(trainer, 200)
    assert len(largest) >= 40
    assert max(largest) <= CLIP


def test_policy_of_the_actor_is_that_of_the_network_on_normalized_observations():
    trainer = make_trainer(env=far_and_small, normalize_observations=True)
    run(trainer, 200)
    raw = trainer.collector.observation
    q_BA = trainer.learner.networks["q"](torch.from_numpy(trainer.normalizer(raw))).detach().numpy()
    assert np.array_equal(trainer.actor.greedy(raw), q_BA.argmax(1))
    assert not np.allclose(q_BA, trainer.learner.networks["q"](torch.from_numpy(raw)).detach().numpy(), rtol=0.1)


def test_normalized_run_does_not_depend_on_the_units_of_its_observations():
    def metres(factor):
        env = WalkEnv()
        return TransformObservation(env, lambda x: np.float32(factor) * x, env.observation_space)

    one, other = (
        make_trainer(env=lambda factor=factor: metres(factor), normalize_observations=True) for factor in (1, 2.0**12)
    )
    for trainer in (one, other):
        run(trainer, 300)
    assert torch.equal(one.learner.theta, other.learner.theta)


@pytest.mark.parametrize("saved_at", [20, 200])
def test_normalized_run_resumes_exactly(saved_at):
    settings = {"normalize_observations": True, "normalize_rewards": True, "n_step": 3}
    straight, resumed = (make_trainer(env=far_and_small, **settings) for _ in range(2))
    for trainer in (straight, resumed):
        trainer.settle_budget(400)
    run(straight, saved_at)
    assert resumed.load_state_dict(copy.deepcopy(straight.state_dict())) is None
    run(straight, 400)
    run(resumed, 400)
    assert_same_state(straight.state_dict(), resumed.state_dict())
    assert straight.state_dict()["normalizer"]["count"] == 400


@pytest.mark.parametrize("settings", [{}, {"normalize_rewards": False, "value_transform": True, "loss": "mse"}])
def test_saved_agent_acts_values_and_learns_as_before(tmp_path, settings):
    agents = [cdqn.CDQN("CartPole-v1", normalize_observations=True, **(TINY | settings)) for _ in range(2)]
    straight, saved = (agent.learn(200) for agent in agents)
    saved.save(tmp_path / "run")
    loaded = cdqn.load(tmp_path / "run")
    x = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    assert np.array_equal(loaded.q_values(x), straight.q_values(x))
    assert loaded.evaluate(3).returns.tolist() == straight.evaluate(3).returns.tolist()
    loaded.learn(100)
    straight.learn(100)
    assert np.array_equal(loaded.weights, straight.weights)
    assert_same_state(loaded.trainer.normalizer.state_dict(), straight.trainer.normalizer.state_dict())


def test_acting_outside_of_training_leaves_the_statistics_alone():
    agent = cdqn.CDQN("CartPole-v1", normalize_observations=True, **TINY).learn(200)
    before = agent.trainer.normalizer.state_dict()
    agent.evaluate(3)
    agent.predict(np.full(4, 100.0))
    agent.q_values(np.full((3, 4), 100.0))
    assert_same_state(before, agent.trainer.normalizer.state_dict())


def test_evaluation_sees_what_training_saw():
    """The return of a policy that was trained on normalised observations falls apart on raw ones."""
    agent = cdqn.CDQN(far_and_small(), normalize_observations=True, **TINY).learn(200)
    seen = []
    greedy = agent.trainer.actor._q
    agent.trainer.actor._q = lambda x: seen.append(np.abs(x).max()) or greedy(x)
    agent.evaluate(2)
    assert 0 < max(seen) <= CLIP


def test_integers_are_learned_from():
    agent = cdqn.CDQN(IntegerEnv(), normalize_observations=True, **TINY).learn(300)
    assert agent.trainer.replay.read(np.arange(3), np.ones(3)).observation.dtype == np.int32
    assert agent.predict(np.array([5_003, 1])) in (0, 1)
    assert agent.q_values(np.array([[5_003, 1], [5_004, 2]])).shape == (2, 2)


def test_network_of_ones_own_is_given_32_bits():
    def network(spec):
        assert spec.observation_dtype == np.float32
        return torch.nn.Linear(2, spec.num_actions)  # which takes no integers

    tiny = {name: value for name, value in TINY.items() if name != "hidden"}
    agent = cdqn.CDQN(IntegerEnv(), network=network, normalize_observations=True, **tiny).learn(100)
    assert agent.trainer.learner.updates > 0


def test_it_is_refused_where_it_cannot_act():
    class Board(IntegerEnv):
        observation_space = Box(0, 1, (5, 5, 2), np.float32)

        def _observation(self):
            return np.zeros((5, 5, 2), np.float32)

    with pytest.raises(ConfigError, match="normalize_observations is for vectors, and this environment shows boards"):
        cdqn.CDQN(Board(), normalize_observations=True, **TINY)
    with pytest.raises(ConfigError, match="NormalizeObservation too: drop the latter"):
        cdqn.CDQN("CartPole-v1", wrapper=gym.wrappers.NormalizeObservation, normalize_observations=True, **TINY)
    with pytest.raises(ConfigError, match="candidate_period_steps 100 keeps weights alone"):
        cdqn.CDQN("CartPole-v1", candidate_period_steps=100, normalize_observations=True, **TINY)


def test_run_folder_of_before_the_setting_is_loaded(tmp_path, monkeypatch):
    from cdqn.training.trainer import Trainer

    now = Trainer.state_dict
    older = {"normalizer", "wrappers"}
    monkeypatch.setattr(Trainer, "state_dict", lambda self: {k: v for k, v in now(self).items() if k not in older})
    agent = cdqn.CDQN("CartPole-v1", **TINY).learn(100)
    agent.save(tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    content = json.loads(path.read_text())
    del content["config"]["normalize_observations"]
    path.write_text(json.dumps(content))
    loaded = cdqn.load(tmp_path / "run")
    assert loaded.trainer.normalizer is None
    assert np.array_equal(loaded.learn(50).weights, agent.learn(50).weights)


def test_policy_of_an_earlier_step_is_played_with_the_statistics_of_that_step():
    """As `RUN/best` keeps it: weights of one step with statistics of another are a policy that never was."""
    agent = cdqn.CDQN(WalkEnv(), normalize_observations=True, **TINY).learn(120)
    kept, observation = agent.trainer.policy_state(), np.array([[0.5], [3.0]], np.float32)
    observation = np.broadcast_to(observation, (2, *agent.spec.observation_shape))
    before = agent.q_values(observation)
    agent.learn(120)
    after = agent.q_values(observation)
    agent.trainer.load_policy_state(kept)
    np.testing.assert_array_equal(agent.q_values(observation), before)
    assert (after != before).any()
