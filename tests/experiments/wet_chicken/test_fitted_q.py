"""Fitted Q iteration of several repeats: each batched update against autograd on `losses.py`."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from cdqn import losses
from cdqn.algorithms import DCDQN
from cdqn.errors import ConfigError
from cdqn.experiments.wet_chicken.fitted_q import Data, FittedQ, StackedMLP, draw_parameters

GAMMA, BATCH, SAMPLES, REPEATS = 0.97, 10, 40, 3

WIDTHS = (1, 16, 16, 16, 3)


def make_learner(algorithm, dtype=torch.float64, seed=0):
    rng = np.random.default_rng(seed)
    network = StackedMLP([draw_parameters(rng, WIDTHS) for _ in range(REPEATS)], dtype)
    x = torch.from_numpy(rng.random((REPEATS, SAMPLES + 1))).to(dtype)
    action = torch.from_numpy(rng.integers(3, size=(REPEATS, SAMPLES)))
    following = x[:, 1:].contiguous()
    mean = StackedMLP([draw_parameters(rng, WIDTHS) for _ in range(REPEATS)], dtype) if algorithm == "dcdqn" else None
    data = Data(x[:, :-1].contiguous(), action, following, following)
    return FittedQ(algorithm, network, data, GAMMA, BATCH, mean_network=mean)


def module_of(network, repeat):
    """One of the networks as an ordinary module."""
    layers = []
    for weight, bias in zip(network.weights, network.biases, strict=True):
        layer = nn.Linear(weight.shape[2], weight.shape[1], dtype=weight.dtype)
        layer.weight.data, layer.bias.data = weight[repeat].clone(), bias[repeat].clone()
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def slow_epochs(algorithm, module, data, repeat, orders, rates, mean=None):
    """The slow twin: one repeat, autograd, a target network that is copied as in the authors' code."""
    target, slow, average = copy.deepcopy(module), copy.deepcopy(module), copy.deepcopy(mean)
    groups = [{"params": module.parameters()}] + ([] if mean is None else [{"params": mean.parameters()}])
    adam = torch.optim.Adam(groups, eps=1e-8)
    on_dqn = []
    for order_RN, rate in zip(orders, rates, strict=True):
        for group, factor in zip(adam.param_groups, (1, DCDQN.v_step_size), strict=False):
            group["lr"] = factor * rate
        at_start = copy.deepcopy(module)
        for number, index_B in enumerate(order_RN[repeat].split(BATCH)):
            if number == 1:
                target = at_start
            state, action, reward, following = (column[repeat][index_B] for column in data)
            ends = (torch.zeros(BATCH, dtype=torch.bool), GAMMA)
            q_B = losses.action_value(module(state.unsqueeze(1)), action)
            if mean is not None:
                y_slow_B = losses.dqn_target(reward, *ends, slow(following.unsqueeze(1)))
                v_B = losses.action_value(mean(state.unsqueeze(1)), action)
                average_B = losses.action_value(average(state.unsqueeze(1)), action)
                reward = losses.denoised_reward(reward, average_B, y_slow_B)
            y_dqn_B = losses.dqn_target(reward, *ends, target(following.unsqueeze(1)))
            y_msbe_B = losses.msbe_target(reward, *ends, module(following.unsqueeze(1)))
            terms = {
                "dqn": losses.dqn_loss(q_B, y_dqn_B, huber=False),
                "rg": losses.msbe_loss(q_B, y_msbe_B, huber=False),
                "cdqn": losses.cdqn_loss(q_B, y_dqn_B, y_msbe_B, huber=False),
            }[algorithm.removeprefix("d" if mean else "")]
            adam.zero_grad()
            fit_B = 0 if mean is None else losses.dqn_loss(v_B, y_slow_B, huber=False).loss
            (terms.loss + fit_B).mean().backward()
            adam.step()
            if mean is not None:
                approach(average, mean, 1 / DCDQN.v_average_updates)
            on_dqn.append(terms.on_dqn_branch.double().mean().item())
        approach(slow, module, SAMPLES // BATCH / DCDQN.slow_copy_updates)
    return np.mean(on_dqn)


def approach(old, new, share):
    for mine, theirs in zip(old.parameters(), new.parameters(), strict=True):
        mine.data += (theirs.data - mine.data) * share


@pytest.mark.parametrize("algorithm", ["cdqn", "dqn", "rg", "dcdqn"])
def test_epochs_equal_autograd_on_the_losses_with_torch_adam(algorithm, monkeypatch):
    monkeypatch.setattr(DCDQN, "slow_copy_updates", 4)  # so that θ̄ is not where it began
    monkeypatch.setattr(DCDQN, "v_average_updates", 3)
    learner = make_learner(algorithm)
    modules = [module_of(learner.network, repeat) for repeat in range(REPEATS)]
    means = [learner.mean_network and module_of(learner.mean_network, repeat) for repeat in range(REPEATS)]
    torch.manual_seed(0)
    orders = [torch.stack([torch.randperm(SAMPLES) for _ in range(REPEATS)]) for _ in range(3)]
    rates = [1e-2, 1e-2, 1e-3]
    for order_RN, rate in zip(orders, rates, strict=True):
        learner.epoch(order_RN, rate)
    for repeat, module in enumerate(modules):
        share = slow_epochs(algorithm, module, learner.data, repeat, orders, rates, means[repeat])
        if "cdqn" in algorithm:
            assert 0.05 < share < 0.95  # both branches are under test
        found = module_of(learner.network, repeat)
        for mine, theirs in zip(found.parameters(), module.parameters(), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-11)
        if means[repeat]:
            found = module_of(learner.mean_network, repeat)
            for mine, theirs in zip(found.parameters(), means[repeat].parameters(), strict=True):
                torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-11)


def test_a_network_of_means_is_for_dcdqn_alone():
    learner = make_learner("dcdqn")
    with pytest.raises(ConfigError, match="DC-DQN has one, no other does"):
        FittedQ("cdqn", learner.network, learner.data, GAMMA, BATCH, mean_network=learner.mean_network)
    with pytest.raises(ConfigError, match="DC-DQN has one, no other does"):
        FittedQ("dcdqn", learner.network, learner.data, GAMMA, BATCH)


def test_cdqn_with_every_sample_on_the_dqn_branch_is_dqn():
    """No row of s′ is left to go back through."""
    learners = [make_learner(algorithm) for algorithm in ("cdqn", "dqn")]
    order_RN = torch.stack([torch.randperm(SAMPLES) for _ in range(REPEATS)])
    for learner in learners:
        learner.data = learner.data._replace(reward_RN=learner.data.reward_RN + 100)
        learner._next_values = lambda: torch.full((REPEATS, SAMPLES), 1e4, dtype=torch.float64)
        learner._next_value_RN = learner._next_values()
        learner.epoch(order_RN, 1e-3)
    torch.testing.assert_close(learners[0].network.theta, learners[1].network.theta, rtol=1e-12, atol=1e-14)


def test_weights_and_biases_are_drawn_as_by_the_authors():
    weight_1, bias_1, weight_2, bias_2, *_ = draw_parameters(np.random.default_rng(0), (1, 128, 128, 3))
    assert weight_2.shape == (128, 128)
    for values, bound in ((weight_1, 6**0.5), (bias_1, 1.0), (weight_2, (6 / 128) ** 0.5), (bias_2, 128**-0.5)):
        assert 0.9 * bound < np.abs(values).max() <= bound
        assert np.std(values) == pytest.approx(bound / 3**0.5, rel=0.2)
