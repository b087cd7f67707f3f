"""The actor: ε-greedy over a borrowed network."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cdqn.networks import MLP

Observations = NDArray[Any]
Actions = NDArray[np.int64]


class Actor:
    """Chooses actions, counted from 0, for a batch of observations."""

    def __init__(self, network: nn.Module, num_actions: int) -> None:
        self.num_actions = num_actions
        self._q: Callable[[Observations], Observations]
        if isinstance(network, MLP) and next(network.parameters()).device.type == "cpu":
            self._q = network.numpy_forward()
        else:
            self._q = _torch_forward(network)

    def greedy(self, observation: Observations) -> Actions:
        """argmax Q, the first of equals."""
        actions: Actions = self._q(observation).argmax(1)
        return actions

    def act(self, observation: Observations, epsilon: float, rng: np.random.Generator) -> Actions:
        """With probability ε a uniformly random action, else the greedy one, for each row by itself."""
        count = len(observation)
        random = rng.integers(self.num_actions, size=count)
        if epsilon >= 1:
            return random
        explore = rng.random(count) < epsilon
        return np.where(explore, random, self.greedy(observation))


def _torch_forward(network: nn.Module) -> Callable[[Observations], Observations]:
    device = next(network.parameters()).device

    @torch.inference_mode()
    def forward(observation: Observations) -> Observations:
        q_BA: Observations = network(torch.from_numpy(np.ascontiguousarray(observation)).to(device)).cpu().numpy()
        return q_BA

    return forward
