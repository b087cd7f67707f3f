"""Own pieces: networks, replay memories and explorations of users in a run."""

import numpy as np
import pytest
import torch

import cdqn
import own_pieces
from cdqn.errors import ConfigError
from cdqn.training.build import choose_device
from helpers import assert_same_state

SMALL = {"warmup_steps": 50, "batch_size": 8, "log_period_steps": 50, "memory_size": 500, "seed": 3, "compile": "off"}


def agent_with(**pieces):
    return cdqn.CDQN("CartPole-v1", steps=300, **(SMALL | pieces))


def test_own_network_is_learned_and_acted_upon():
    agent = agent_with(network=own_pieces.small_network).learn(120)
    network = agent.trainer.learner.networks["q"]
    assert [type(layer).__name__ for layer in network] == ["Flatten", "Linear", "ReLU", "Linear"]
    observation = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    assert np.array_equal(agent.predict(observation), network(torch.from_numpy(observation)).argmax(1).numpy())


def test_own_network_starts_from_the_seed_and_leaves_the_callers_random_numbers_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    one, same, other = (agent_with(network=own_pieces.small_network, seed=seed).weights for seed in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_buffers_are_learned_copied_to_the_target_and_saved(tmp_path):
    agent = agent_with(network=own_pieces.NormalizedNetwork, target_period_updates=10_000)
    learner = agent.trainer.learner
    agent.learn(100)
    mean, frozen = (networks["q"].body[1].running_mean for networks in (learner.networks, learner.target_networks))
    assert mean.abs().max() > 0
    assert frozen.abs().max() == 0, "no copy was due"
    copying = agent_with(network=own_pieces.NormalizedNetwork, target_period_updates=1).learn(100).trainer.learner
    buffers = zip(copying.networks.buffers(), copying.target_networks.buffers(), strict=True)
    assert all(torch.equal(one, other) for one, other in buffers)


def test_run_with_buffers_and_dropout_resumes_exactly(tmp_path):
    straight = agent_with(network=own_pieces.NormalizedNetwork).learn(200)
    agent_with(network=own_pieces.NormalizedNetwork).learn(120).save(tmp_path / "run")
    torch.manual_seed(99)
    resumed = cdqn.load(tmp_path / "run").learn(80)
    assert_same_state(resumed.trainer.learner.state_dict(), straight.trainer.learner.state_dict())


def test_acting_is_not_training():
    agent = agent_with(network=own_pieces.NormalizedNetwork).learn(100)
    observation = np.ones((5, 4), dtype=np.float32)
    actions = {tuple(agent.predict(observation)) for _ in range(20)}
    assert len(actions) == 1, "dropout is on while acting"


def test_network_with_buffers_is_never_compiled():
    agent = agent_with(network=own_pieces.NormalizedNetwork, compile="on")
    assert agent.trainer.learner.choose_backend(10**6) == "eager"


@pytest.mark.parametrize(
    ("network", "sentence"),
    [
        (own_pieces.wrong_shape, r"returns shape \(2, 3\) for 2 observations: it must be \(2, 2\)"),
        (own_pieces.no_module, "it must make an nn.Module"),
        (own_pieces.double_precision, "torch.float64: all of its parameters must be torch.float32"),
        (own_pieces.fails, r"fails on observations of shape \(2, 4\)"),
    ],
)
def test_network_that_does_not_fit_is_refused(network, sentence):
    with pytest.raises(ConfigError, match=sentence):
        agent_with(network=network)


def test_own_replay_is_drawn_from_and_resumes_exactly(tmp_path):
    straight = agent_with(replay=own_pieces.NewestFirst).learn(200)
    assert straight.trainer.replay.draws == 150
    agent_with(replay=own_pieces.NewestFirst).learn(120).save(tmp_path / "run")
    resumed = cdqn.load(tmp_path / "run").learn(80)
    assert_same_state(resumed.trainer.learner.state_dict(), straight.trainer.learner.state_dict())


def test_own_exploration_acts_and_resumes_exactly(tmp_path):
    straight = agent_with(exploration=own_pieces.AlwaysFirst).learn(200)
    assert straight.trainer.exploration.calls == 50
    agent_with(exploration=own_pieces.AlwaysFirst).learn(120).save(tmp_path / "run")
    resumed = cdqn.load(tmp_path / "run").learn(80)
    assert resumed.trainer.exploration.calls == 50
    assert_same_state(resumed.trainer.learner.state_dict(), straight.trainer.learner.state_dict())


def test_numbered_states_are_learned_as_a_table_or_with_the_widths_that_are_given():
    table = cdqn.CDQN("FrozenLake-v1", **SMALL)
    assert len(table.weights) == 16 * 4
    assert table.learn(80).predict(3) in range(4)
    layered = cdqn.CDQN("FrozenLake-v1", hidden=(8,), **SMALL)
    assert len(layered.weights) == 16 * 8 + 8 + 8 * 4 + 4
    with pytest.raises(ConfigError, match="a table has first values of its own; drop it"):
        cdqn.CDQN("FrozenLake-v1", initial_weights="pytorch", **SMALL)
    with pytest.raises(ConfigError, match="a table is for numbered states: this environment has vector observations"):
        cdqn.CDQN("CartPole-v1", hidden=(), dueling=False, **SMALL)


def test_network_can_be_named_in_python_too():
    assert agent_with(network="own_pieces:small_network").config.network == "own_pieces:small_network"


@pytest.mark.parametrize("setting", [{"hidden": (8,)}, {"dueling": False}, {"initial_weights": "pytorch"}])
def test_settings_of_the_built_in_networks_are_refused_beside_an_own_one(setting):
    with pytest.raises(
        ConfigError, match=f"{next(iter(setting))}: of the built-in networks, and network is own_pieces"
    ):
        agent_with(network=own_pieces.small_network, **setting)


def test_channels_are_refused_where_there_are_no_images():
    with pytest.raises(ConfigError, match="channels is for images, this environment has vector observations: drop it"):
        agent_with(channels=(4, 4, 4))


def gpus(monkeypatch, cuda=0, mps=False):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(
    ("wanted", "cuda", "mps", "found"),
    [
        ("cpu", 2, True, "cpu"),
        ("cuda", 1, False, "cuda"),
        ("cuda:0", 1, False, "cuda:0"),
        ("cuda:1", 2, False, "cuda:1"),
        ("mps", 0, True, "mps"),
    ],
)
def test_device_that_is_there_is_taken(monkeypatch, wanted, cuda, mps, found):
    gpus(monkeypatch, cuda, mps)
    assert choose_device(wanted, large_network=False) == torch.device(found)


def test_device_is_by_default_a_gpu_for_images_alone(monkeypatch):
    gpus(monkeypatch, 1)
    assert [choose_device("auto", large).type for large in (True, False)] == ["cuda", "cpu"]
    gpus(monkeypatch, 0)
    assert choose_device("auto", True).type == "cpu"


@pytest.mark.parametrize(
    ("wanted", "cuda", "words"),
    [
        ("cuda", 0, "device is 'cuda', but PyTorch finds no GPU: use cpu"),
        ("cuda:1", 0, "device is 'cuda:1', but PyTorch finds no GPU: use cpu"),
        ("cuda:2", 2, "device is 'cuda:2', but PyTorch finds cuda:0, cuda:1: use one of them, or cpu"),
        ("mps", 2, "device is 'mps', but PyTorch finds no GPU of Apple's: use cpu"),
    ],
)
def test_device_that_is_not_there_is_named_with_what_there_is(monkeypatch, wanted, cuda, words):
    gpus(monkeypatch, cuda)
    with pytest.raises(ConfigError, match=words):
        agent_with(device=wanted)


@pytest.mark.parametrize("wanted", ["gpu", "cuda:", "cuda:x", "cuda:-1", "mps:0", "", 0, None])
def test_device_that_is_none_is_refused(wanted):
    with pytest.raises(ConfigError, match="device is"):
        agent_with(device=wanted)
