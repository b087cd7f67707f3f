"""The policy as a module of its own: the same Q, for every kind of observation, and independent of its agent."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete
from torch import nn

import cdqn
from cdqn.algorithms import DQN
from cdqn.errors import ConfigError
from helpers import TINY, small_agent


class Shown(gym.Env):
    """Random observations of a space; rewards of about 50."""

    action_space = Discrete(3, start=1)

    def __init__(self, space):
        self.observation_space = space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.time = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.time += 1
        return self.observation_space.sample(), 50.0 * float(action), False, self.time == 10, {}


SPACES = {
    "vector": (Box(-5, 5, (4,), np.float32), {"normalize_observations": True}),
    "vector, squashed": (Box(-5, 5, (4,), np.float64), {"value_transform": True, "normalize_observations": True}),
    "codes": (Box(0, 9, (3,), np.int64), {"normalize_rewards": True}),
    "table": (Box(-5, 5, (3, 2), np.float32), {"normalize_observations": True}),
    "board": (Box(0, 9, (5, 5, 2), np.uint8), {}),
    "board, channels first": (Box(0, 1, (2, 5, 6), np.float32), {}),
    "image": (Box(0, 255, (40, 36, 3), np.uint8), {"channels": (2, 2, 2)}),
    "images, stacked": (Box(0, 255, (2, 36, 36, 1), np.uint8), {"channels": (2, 2, 2)}),
}


@pytest.fixture(scope="module", params=SPACES)
def agent(request):
    space, settings = SPACES[request.param]
    return cdqn.CDQN(Shown(space), **(TINY | {"memory_size": 500} | settings)).learn(60)


def some(agent, count):
    space = agent._env.observation_space
    space.seed(1)
    return np.stack([space.sample() for _ in range(count)])


def as_input(module, observations):
    return torch.from_numpy(observations).to(module.dtype)


def test_module_gives_the_q_of_the_agent(agent):
    module, x = agent.q_module(), some(agent, 20)
    q_NA = module(as_input(module, x)).numpy()
    assert q_NA.shape == (20, 3)
    assert q_NA.std() > 0
    assert q_NA == pytest.approx(agent.q_values(x), rel=1e-5, abs=1e-5)
    assert np.array_equal(q_NA.argmax(1) + 1, agent.predict(x))
    assert agent.q_values(x[0]) == pytest.approx(q_NA[0], rel=1e-5, abs=1e-5)


def test_exported_torchscript_gives_the_q_of_the_agent_for_batches_of_any_size(agent, tmp_path):
    path = agent.export(tmp_path / "new" / "policy.pt")
    script = torch.jit.load(path)
    for count in (1, 7):
        x = some(agent, count)
        q_NA = script(as_input(agent.q_module(), x)).numpy()
        assert q_NA == pytest.approx(agent.q_values(x), rel=1e-5, abs=1e-5)
    assert [file.name for file in path.parent.iterdir()] == ["policy.pt"]


def test_values_are_in_units_of_the_rewards():
    """Rewards of 50 to 150 a step, γ 0.5: between 100 and 300, whatever the scale in which they are learned."""
    settings = {"gamma": 0.5, "normalize_rewards": True, "n_step": 1, "learning_rate": 1e-2, "update_period_steps": 1}
    agent = cdqn.DQN(Shown(Box(-1, 1, (2,), np.float32)), **(TINY | settings)).learn(400)
    assert agent.trainer.calibrator.unit > 50
    assert 100 < agent.q_values(np.zeros(2)).max() < 400


def test_module_is_independent_of_later_training(agent):
    module = agent.q_module()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    agent.learn(40)
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert not module.training
    assert not any(parameter.requires_grad for parameter in module.parameters())
    assert any(not torch.equal(before[name], value) for name, value in agent.q_module().state_dict().items())


def test_agent_learns_on_after_it_has_handed_out_its_module():
    one, other = small_agent().learn(100), small_agent().learn(100)
    one.q_module()(torch.zeros(2, 4))
    assert np.array_equal(one.learn(100).weights, other.learn(100).weights)


def test_dict_observations_are_given_as_the_vectors_that_the_agent_sees():
    agent = cdqn.CDQN(Shown(Dict(a=Discrete(3), b=Box(-1, 1, (2,), np.float32))), **TINY)
    assert agent.q_module()(torch.zeros(4, 5)).shape == (4, 3)
    one = {"a": 1, "b": np.array([0.5, -0.5], np.float32)}
    vector = torch.tensor([[0, 1, 0, 0.5, -0.5]])
    assert agent.q_values(one) == pytest.approx(agent.q_module()(vector)[0].numpy(), rel=1e-5)


class Halves(DQN):
    """Q is the sum of two outputs for each action."""

    name = "halves"
    label = "Halves"

    def networks(self, spec, build):
        from cdqn.algorithms import Network

        self.num_actions = spec.num_actions
        return {"q": Network(build(spec.num_actions)), "more": Network(build(2 * spec.num_actions, dueling=False))}

    def q_values(self, online, observation):
        more_BA2 = online["more"](observation).view(len(observation), self.num_actions, 2)
        return online["q"](observation) + more_BA2.sum(2)


class Rows(Halves):
    name = "rows"
    label = "Rows"

    def q_values(self, online, observation):
        return online["q"](observation) + online["more"](observation).unflatten(1, (-1, 2)).sum(2)


def test_algorithm_of_ones_own_is_exported_with_all_of_its_networks(tmp_path):
    agent = cdqn.Agent("CartPole-v1", algorithm=Rows, **TINY).learn(80)
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    script = torch.jit.load(agent.export(tmp_path / "a.pt"))
    assert script(torch.from_numpy(x)).numpy() == pytest.approx(agent.q_values(x), rel=1e-5, abs=1e-6)


def test_batch_size_as_a_number_is_told_when_exporting(tmp_path):
    agent = cdqn.Agent("CartPole-v1", algorithm=Halves, **TINY)
    with pytest.warns(torch.jit.TracerWarning), pytest.raises(ConfigError, match=r"use x\.shape\[0\] in place of len"):
        agent.export(tmp_path / "a.pt")
    assert list(tmp_path.iterdir()) == []


def test_network_with_buffers_is_exported_as_it_acts(tmp_path):
    def network(spec):
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, spec.num_actions))

    tiny = {name: value for name, value in TINY.items() if name != "hidden"}
    agent = cdqn.CDQN("CartPole-v1", network=network, **tiny).learn(80)
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    script = torch.jit.load(agent.export(tmp_path / "a.pt"))
    assert script(torch.from_numpy(x)).numpy() == pytest.approx(agent.q_values(x), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", ["policy", "policy.h5", "policy.ONNX"])
def test_other_suffixes_are_refused(tmp_path, name):
    with pytest.raises(ConfigError, match=r"name it \.onnx, or \.pt for TorchScript"):
        small_agent().export(tmp_path / name)


def test_observation_of_another_shape_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"q_values got an observation of shape \(5,\): it must be \(4,\)"):
        small_agent().q_values(np.zeros(5))
