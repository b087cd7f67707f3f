"""The actor: the greedy policy of a learner's online networks."""

from collections.abc import Callable

import numpy as np
import torch

from cdqn.algorithms import Algorithm
from cdqn.nn.networks import MLP, Table
from cdqn.training.exploration import Actions, Observations
from cdqn.training.learner import Learner
from cdqn.training.normalizer import ObservationNormalizer


class Actor:
    """Chooses actions, counted from 0, for a batch of observations, which are raw."""

    def __init__(self, learner: Learner, normalizer: ObservationNormalizer | None = None) -> None:
        self._normalizer = normalizer
        self._torch_q = _torch_forward(learner)
        self._q = self._torch_q
        plain = type(learner.algorithm).q_values is Algorithm.q_values
        network = learner.networks["q"] if plain else None
        if isinstance(network, MLP | Table) and learner.theta.device.type == "cpu":
            self._q = network.numpy_forward()  # T of the value transform rises: argmax T(Q) is argmax Q

    def greedy(self, observation: Observations) -> Actions:
        """argmax Q, the first of equals."""
        actions: Actions = self._q(self._seen(observation)).argmax(1)
        return actions

    def q_values(self, observation: Observations) -> Observations:
        """Q of each action, as it is learned."""
        return self._torch_q(self._seen(observation))

    def _seen(self, observation: Observations) -> Observations:
        """What the networks see."""
        return observation if self._normalizer is None else self._normalizer(observation)


def _torch_forward(learner: Learner) -> Callable[[Observations], Observations]:
    device = learner.theta.device

    @torch.inference_mode()
    def forward(observation: Observations) -> Observations:
        tensor = torch.from_numpy(np.ascontiguousarray(observation)).to(device)
        q_BA: Observations = learner.q_values(tensor).cpu().numpy()
        return q_BA

    return forward
