"""A second head: on what the first one is given, and nothing of its gradient goes below."""

import numpy as np
import pytest
import torch

import cdqn
from cdqn.algorithms import DCDQN
from cdqn.errors import ConfigError
from cdqn.nn.features import Features, second_head
from cdqn.nn.networks import MLP, BoardCNN, DuelingCNN, Table, parameter_count
from helpers import random_batch

NETWORKS = {
    "vectors": (MLP(4, 3, (8, 6)), torch.randn(5, 4)),
    "boards": (BoardCNN((10, 10, 4), 3, width=6), torch.randint(2, (5, 10, 10, 4)).bool()),
    "frames": (DuelingCNN((2, 42, 40), 3, width=6, channels=(4, 4, 4)), torch.randint(256, (5, 2, 42, 40)).byte()),
}


@pytest.mark.parametrize("kind", NETWORKS)
def test_head_of_a_network_on_its_features_is_the_network(kind):
    network, observation = NETWORKS[kind]
    torch.testing.assert_close(network.head(network.features(observation)), network(observation))
    assert second_head(network, 7)(Features(network)(observation)).shape == (5, 7)


def test_features_of_frames_do_not_depend_on_how_they_are_computed():
    network, observation = NETWORKS["frames"]
    fast = network.features(observation)
    network.fast = False
    torch.testing.assert_close(fast, network.features(observation))
    network.fast = True


def test_first_weights_are_as_the_setting_says():
    torch.manual_seed(0)
    he, pytorch = (second_head(MLP(4, 3, (64, 64)), 3, False, name) for name in ("he", "pytorch"))
    assert he.hidden.bias.eq(0).all()
    assert pytorch.hidden.bias.ne(0).any()
    assert he.value is None


@pytest.mark.parametrize("network", [Table(4, 2), torch.nn.Linear(4, 2)])
def test_network_without_features_is_refused(network):
    with pytest.raises(ConfigError, match=f"a {type(network).__name__} has no features"):
        second_head(network, 2)


class OnFeatures(DCDQN):
    name, v_shares_torso = "on-features", True


@pytest.mark.usefixtures("quick_compile")
@pytest.mark.parametrize("compile", ["off", "on"])
def test_v_on_the_features_of_q_learns_and_leaves_the_gradient_of_q_alone(compile):
    """Two DC-DQN with the same Q and the same V, whose torso is Q's or a copy of it: Q has the same gradient."""
    learners = []
    for algorithm in ("dcdqn", OnFeatures):
        agent = cdqn.Agent("CartPole-v1", algorithm=algorithm, hidden=(8, 8), compile=compile)
        learners.append(agent.trainer.learner)
        learners[-1].choose_backend(1)
    (own, on_features), count = learners, parameter_count(learners[0].networks["q"])
    own.networks["q"].load_state_dict(on_features.networks["q"].state_dict())
    own.networks["v"].torso.load_state_dict(on_features.networks["q"].torso.state_dict())
    own.networks["v"].head.load_state_dict(on_features.networks["v"].state_dict())
    for learner, head in zip(learners, (own.slow_networks["v"].head, on_features.slow_networks["v"]), strict=True):
        learner.target.copy_(learner.theta).mul_(0.5)
        learner.slow.copy_(learner.theta)
        for parameter in (*head.parameters(), *learner.slow_networks["q"].parameters()):
            parameter.mul_(0.7)  # the average has a head of its own, on the features of today
        learner.update(random_batch(np.random.default_rng(0)))
    torch.testing.assert_close(on_features.first_moment[:count], own.first_moment[:count])
    head = parameter_count(on_features.networks["v"])
    torch.testing.assert_close(on_features.first_moment[-head:], own.first_moment[-head:])
    assert on_features.first_moment[-head:].ne(0).any(), "V does not learn"
