"""Theorem 2: with exact target copies the C-DQN loss never rises at a copy, and DQN's may grow without end."""

import math

import numpy as np
import pytest
import torch

from cdqn import losses
from cdqn.algorithms import Network, TensorBatch
from cdqn.config import Config
from cdqn.nn.networks import MLP
from cdqn.training.learner import Learner
from helpers import random_batch

COPIES = 200


def make_learner(algorithm, period, loss, seed=0, learning_rate=4e-5):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = MLP(3, 2, (16, 16)).double()
    config = Config(
        algorithm=algorithm,
        loss=loss,
        target_copy="exact",
        target_period_updates=period,
        double_q=False,
        gamma=0.99,
        learning_rate=learning_rate,
        gradient_clip_norm=math.inf,
        compile="off",
    )
    return Learner({"q": Network(network)}, config)


def mean_loss(learner, batch):
    """The objective itself, under the present θ and θ̃."""
    with torch.no_grad():
        return learner.assess(TensorBatch(*(torch.from_numpy(a) for a in batch[:6]))).loss.mean().item()


@pytest.mark.parametrize("loss", ["huber", "mse"])
def test_cdqn_loss_never_rises_at_an_exact_copy_nor_over_a_period(loss):
    """200 fixed random transitions, full batch: θ moves by small steps of Adam, θ̃ by exact copies."""
    batch = random_batch(np.random.default_rng(0), 200, observations=3, dtype=np.float64, weighted=False)
    period = 4
    learner = make_learner("cdqn", period, loss)
    before_copying = make_learner("cdqn", period, loss)  # never trained: holds θ after a period with θ̃ before it
    history = [mean_loss(learner, batch)]
    shares = []
    for _ in range(COPIES):
        before_copying.target.copy_(learner.target)
        shares += [learner.update(batch).statistics["dqn_share"] for _ in range(period)]
        assert torch.equal(learner.target, learner.theta)
        before_copying.theta.copy_(learner.theta)
        before_copy, after_copy = mean_loss(before_copying, batch), mean_loss(learner, batch)
        assert after_copy <= before_copy + 1e-12, "the loss rose at a target update"
        assert after_copy <= history[-1] + 1e-12, "the loss rose over a period"
        history.append(after_copy)
    assert history[-1] < 0.95 * history[0], "nothing was learned: the test would hold of any loss"
    assert 0.1 < np.mean(shares) < 0.9, "only one branch was ever taken"


class Star:
    """Baird's star as data and one-hot features: six states lead to the seventh, and so does the seventh.

    Q is linear, V(i) = 2w_i + w_8 for i ≤ 6, V(7) = w_7 + 2w_8; rewards are 0 and so is the solution.
    """

    def __init__(self):
        self.features = np.zeros((7, 8))
        self.features[np.arange(6), np.arange(6)] = 2
        self.features[:6, 7] = 1
        self.features[6, 6], self.features[6, 7] = 1, 2
        self.features = torch.tensor(self.features)
        self.reward, self.terminated = torch.zeros(7, dtype=torch.float64), torch.zeros(7, dtype=torch.bool)

    def loss(self, algorithm, w, w_target, discount=0.99):
        """The loss of the library's own functions: one action, so max Q is V."""
        value, value_target = self.features @ w, self.features @ w_target
        next_value, next_target = (v[6].expand(7, 1) for v in (value, value_target))
        y_dqn = losses.dqn_target(self.reward, self.terminated, discount, next_target)
        if algorithm == "dqn":
            return losses.dqn_loss(value, y_dqn, huber=False).loss.mean()
        y_msbe = losses.msbe_target(self.reward, self.terminated, discount, next_value)
        return losses.cdqn_loss(value, y_dqn, y_msbe, huber=False).loss.mean()

    def train(self, algorithm, copies, period=10, learning_rate=0.01):
        """Gradient descent with exact copies; returns the loss (before, after) each copy."""
        w = torch.ones(8, dtype=torch.float64)
        w[6] = 10
        w_target, pairs = w.clone(), []
        for _ in range(copies):
            for _ in range(period):
                w.requires_grad_()
                (gradient,) = torch.autograd.grad(self.loss(algorithm, w, w_target), w)
                w = w.detach() - learning_rate * gradient
            before = self.loss(algorithm, w, w_target).item()
            w_target = w.clone()
            pairs.append((before, self.loss(algorithm, w, w_target).item()))
        return np.array(pairs)


def test_dqn_diverges_on_bairds_star():
    after = Star().train("dqn", copies=600)[:, 1]
    assert after[-1] > 1e6 * after[0]


def test_cdqn_does_not_rise_on_bairds_star():
    pairs = Star().train("cdqn", copies=300)
    before, after = pairs.T
    assert (after <= before + 1e-12).all(), "the loss rose at a copy"
    assert after.max() == after[0]  # within a period a step of 0.01 may jump over the kink of the maximum
    assert after[-1] < 0.1 * after[0]
