"""Exploration: when an agent acts at random, and how.

An exploration is given the greedy policy and ε, and chooses an action for each environment. One of your own has
the methods of `Exploration`.
"""

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cdqn.storage.named_code import named

Observations = NDArray[Any]
Actions = NDArray[np.int64]
Greedy = Callable[[Observations], Actions]

ZETA_2 = math.pi**2 / 6
"""Σ n⁻²"""


class Exploration(Protocol):
    """What the trainer asks of an exploration; actions count from 0."""

    def act(self, greedy: Greedy, observation: Observations, epsilon: float, rng: np.random.Generator) -> Actions:
        """An action for each row of `observation`, which always stands for the same environments."""

    def state_dict(self) -> dict[str, Any]:
        """All that changes while acting."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume exactly where `state_dict` was taken."""


class EpsilonGreedy:
    """With probability ε a uniformly random action, else the greedy one, for each row by itself."""

    def __init__(self, num_actions: int, num_envs: int = 1) -> None:
        self.num_actions = num_actions

    def act(self, greedy: Greedy, observation: Observations, epsilon: float, rng: np.random.Generator) -> Actions:
        count = len(observation)
        random = rng.integers(self.num_actions, size=count)
        if epsilon >= 1:
            return random
        explore = rng.random(count) < epsilon
        return np.where(explore, random, greedy(observation))

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


class EpsilonZGreedy:
    """Random actions that are held (Dabney et al. 2021, "Temporally-Extended ε-Greedy Exploration").

    A random action is repeated for a number of steps drawn from a zeta distribution, P(n) ∝ n⁻². One random action
    moves a car, or a pole, hardly at all; ten equal ones do. ε is the share of steps that are random, as in ε-greedy
    (in the paper it is the chance to begin, and the share is larger).
    """

    EXPONENT = 2.0
    LONGEST = 100
    """Steps: without a limit the mean of the distribution is infinite."""

    def __init__(self, num_actions: int, num_envs: int) -> None:
        self.num_actions = num_actions
        self._left = np.zeros(num_envs, dtype=np.int64)
        self._held = np.zeros(num_envs, dtype=np.int64)
        duration_N = np.arange(1, self.LONGEST + 1)
        probability_N = duration_N**-self.EXPONENT / ZETA_2
        probability_N[-1] += 1 - probability_N.sum()  # all that would be longer
        self._mean_duration = float(duration_N @ probability_N)

    def act(self, greedy: Greedy, observation: Observations, epsilon: float, rng: np.random.Generator) -> Actions:
        chance = epsilon / (epsilon + self._mean_duration * (1 - epsilon)) if epsilon else 0.0
        begin = (self._left == 0) & (rng.random(len(observation)) < chance)
        if count := int(begin.sum()):
            self._left[begin] = np.minimum(rng.zipf(self.EXPONENT, count), self.LONGEST)
            self._held[begin] = rng.integers(self.num_actions, size=count)
        holding = self._left > 0
        self._left[holding] -= 1
        if holding.all():
            return self._held.copy()
        return np.where(holding, self._held, greedy(observation))

    def state_dict(self) -> dict[str, Any]:
        return {"left": self._left.copy(), "held": self._held.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._left[:] = state["left"]
        self._held[:] = state["held"]


EXPLORATIONS: dict[str, Callable[[int, int], Exploration]] = {"epsilon": EpsilonGreedy, "epsilon-z": EpsilonZGreedy}
"""By name; each is made from the numbers of actions and of environments."""


def make_exploration(name: str, num_actions: int, num_envs: int) -> Exploration:
    """The exploration of this name, ours or module:Class."""
    make = EXPLORATIONS[name] if name in EXPLORATIONS else named("exploration", name)
    return make(num_actions, num_envs)
