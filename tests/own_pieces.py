"""What a user might write: an algorithm, networks, a memory and an exploration of their own."""

import numpy as np
import torch
from torch import nn

from cdqn import losses
from cdqn.algorithms import DQN, Algorithm, Network
from cdqn.replay import UniformReplay
from cdqn.replay.arrays import ArrayStore


class Expected(DQN):
    """DQN's target less a learned baseline b(s) of the reward: nonsense, but with a second network."""

    name = "expected"
    label = "Expected"
    colour = "#000000"

    def networks(self, spec, build):
        return {**super().networks(spec, build), "baseline": Network(build(1, dueling=False), False, 10.0)}

    def assess(self, batch, online, target, discount):
        assert set(target) == {"q"}, "the baseline has no target network"
        whole = super().assess(batch, online, target, discount)
        error_B = online["baseline"](batch.observation).squeeze(1) - batch.reward
        statistics = {**whole.statistics, "baseline_error": error_B.detach().abs().mean()}
        return whole._replace(loss=whole.loss + losses.half_squared(error_B), statistics=statistics)


class Abstract:
    """Not an algorithm."""


def small_network(spec):
    return nn.Sequential(
        nn.Flatten(), nn.Linear(int(np.prod(spec.observation_shape)), 8), nn.ReLU(), nn.Linear(8, spec.num_actions)
    )


class NormalizedNetwork(nn.Module):
    """With buffers, which are neither parameters nor constant, and with dropout."""

    def __init__(self, spec):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(spec.observation_shape[0], 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2)
        )
        self.head = nn.Linear(16, spec.num_actions)

    def forward(self, observation):
        return self.head(self.body(observation.float()))


def wrong_shape(spec):
    return nn.Linear(spec.observation_shape[0], spec.num_actions + 1)


def no_module(spec):
    return "a network"


def double_precision(spec):
    return nn.Linear(spec.observation_shape[0], spec.num_actions).double()


def fails(spec):
    return nn.Linear(spec.observation_shape[0] + 1, spec.num_actions)


class NewestFirst(UniformReplay):
    """Draws from all, and counts how often."""

    def __init__(self, spec, config, rng):
        store = ArrayStore(config.memory_size, spec.observation_shape, spec.observation_dtype)
        super().__init__(store, rng=rng)
        self.draws = 0

    def sample(self, batch_size, beta):
        self.draws += 1
        return super().sample(batch_size, beta)


class AlwaysFirst:
    """Explores with action 0 alone."""

    def __init__(self, num_actions, num_envs):
        self.calls = 0

    def act(self, greedy, observation, epsilon, rng):
        self.calls += 1
        return np.where(rng.random(len(observation)) < epsilon, 0, greedy(observation))

    def state_dict(self):
        return {"calls": self.calls}

    def load_state_dict(self, state):
        self.calls = state["calls"]


class Distributional(Algorithm):
    """Quantiles of the return in place of its mean (Dabney et al. 2018)."""

    name = "quantiles"
    label = "QR-DQN"
    colour = "#CC79A7"
    idle_settings = ("value_transform",)
    QUANTILES = 8

    def networks(self, spec, build):
        self.num_actions = spec.num_actions  # the algorithm that learns is the one that made the networks
        return {"quantiles": Network(build(spec.num_actions * self.QUANTILES, dueling=False))}

    def _quantiles(self, networks, observation):
        return networks["quantiles"](observation).view(len(observation), self.num_actions, self.QUANTILES)

    def q_values(self, online, observation):
        return self._quantiles(online, observation).mean(2)

    def assess(self, batch, online, target, discount):
        from cdqn.algorithms import Assessment

        quantiles_BAK = self._quantiles(online, batch.observation)
        index = batch.action.view(-1, 1, 1).expand(-1, 1, self.QUANTILES)
        mine_BK = quantiles_BAK.gather(1, index).squeeze(1)
        next_BAK = self._quantiles(target, batch.next_observation)
        best = next_BAK.mean(2).argmax(1).view(-1, 1, 1).expand(-1, 1, self.QUANTILES)
        next_BK = next_BAK.gather(1, best).squeeze(1)
        alive_B1 = (~batch.terminated).unsqueeze(1)
        target_BK = (batch.reward.unsqueeze(1) + discount * alive_B1 * next_BK).detach()
        delta_BKK = target_BK.unsqueeze(1) - mine_BK.unsqueeze(2)
        levels_K = (torch.arange(self.QUANTILES) + 0.5) / self.QUANTILES
        weight = (levels_K.view(1, -1, 1) - (delta_BKK.detach() < 0).float()).abs()
        loss_B = (weight * losses.huber(delta_BKK)).sum(1).mean(1)
        error_B = (target_BK.mean(1) - mine_BK.mean(1)).detach().abs()
        statistics = {
            "loss": losses.logged_loss(error_B, batch.weight),
            "q_mean": quantiles_BAK.detach().mean(2).amax(1).mean(),
        }
        return Assessment(batch.weight * loss_B, error_B, statistics)


class Forgetful(Distributional):
    """Has no Q to act on."""

    q_values = Algorithm.q_values


class Scalar(DQN):
    def assess(self, *arguments):
        whole = super().assess(*arguments)
        return whole._replace(loss=whole.loss.mean())


class Silent(DQN):
    def assess(self, *arguments):
        return super().assess(*arguments)._replace(statistics={"loss": torch.zeros(())})


class Misspelled(DQN):
    idle_settings = ("los",)


class Branching(DQN):
    """Looks at values, which a compiled program cannot."""

    def assess(self, batch, online, target, discount):
        whole = super().assess(batch, online, target, discount)
        return whole._replace(loss=whole.loss * 2) if whole.loss.mean() > 1 else whole
