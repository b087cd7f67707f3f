"""The actor: the greedy policy of a learner's online networks."""

from collections.abc import Callable

import numpy as np
import torch

from cdqn.algorithms import Algorithm
from cdqn.nn.networks import MLP, Table
from cdqn.training.exploration import Actions, Observations
from cdqn.training.learner import Learner


class Actor:
    """Chooses actions, counted from 0, for a batch of observations."""

    def __init__(self, learner: Learner) -> None:
        self._q: Callable[[Observations], Observations]
        plain = type(learner.algorithm).q_values is Algorithm.q_values
        network = learner.networks["q"] if plain else None
        if isinstance(network, MLP | Table) and learner.theta.device.type == "cpu":
            self._q = network.numpy_forward()  # T of the value transform rises: argmax T(Q) is argmax Q
        else:
            self._q = _torch_forward(learner)

    def greedy(self, observation: Observations) -> Actions:
        """argmax Q, the first of equals."""
        actions: Actions = self._q(observation).argmax(1)
        return actions


def _torch_forward(learner: Learner) -> Callable[[Observations], Observations]:
    device = learner.theta.device

    @torch.inference_mode()
    def forward(observation: Observations) -> Observations:
        tensor = torch.from_numpy(np.ascontiguousarray(observation)).to(device)
        q_BA: Observations = learner.q_values(tensor).cpu().numpy()
        return q_BA

    return forward
