"""The actor: the greedy policy of a borrowed network."""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from cdqn.exploration import Actions, Observations
from cdqn.nn.networks import MLP


class Actor:
    """Chooses actions, counted from 0, for a batch of observations."""

    def __init__(self, network: nn.Module) -> None:
        self._q: Callable[[Observations], Observations]
        if isinstance(network, MLP) and next(network.parameters()).device.type == "cpu":
            self._q = network.numpy_forward()
        else:
            self._q = _torch_forward(network)

    def greedy(self, observation: Observations) -> Actions:
        """argmax Q, the first of equals."""
        actions: Actions = self._q(observation).argmax(1)
        return actions


def _torch_forward(network: nn.Module) -> Callable[[Observations], Observations]:
    device = next(network.parameters()).device

    @torch.inference_mode()
    def forward(observation: Observations) -> Observations:
        q_BA: Observations = network(torch.from_numpy(np.ascontiguousarray(observation)).to(device)).cpu().numpy()
        return q_BA

    return forward
