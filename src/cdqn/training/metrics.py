"""Sums and means over the updates and episodes of a run, and the bound that Q cannot exceed."""

from collections import deque
from typing import Any

import numpy as np

from cdqn.training.events import Episode
from cdqn.training.learner import UpdateResult

RETURN_WINDOW = 20
"""Episodes behind the mean training return."""


class Tally:
    """Sums over the updates and episodes since the last `Progress`."""

    def __init__(self) -> None:
        self.episodes = 0
        self.reward_abs_max = 0.0
        self._returns: deque[float] = deque(maxlen=RETURN_WINDOW)
        self._sums: dict[str, float] = {}
        self._updates = 0

    def add_update(self, result: UpdateResult) -> None:
        for name, value in result.statistics.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        self._updates += 1

    def add_episode(self, episode: Episode) -> None:
        self.episodes += 1
        self._returns.append(episode.total_reward)

    def return_mean(self) -> float | None:
        return float(np.mean(self._returns)) if self._returns else None

    def take_means(self) -> dict[str, float]:
        """Means of the statistics over the updates since the last time, by name; none if there were no updates."""
        means = {name: total / self._updates for name, total in self._sums.items()}
        self._sums, self._updates = {}, 0
        return means

    def state_dict(self) -> dict[str, Any]:
        return {
            "episodes": self.episodes,
            "reward_abs_max": self.reward_abs_max,
            "returns": np.array(self._returns),
            "sums": dict(self._sums),
            "updates": self._updates,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.episodes = int(state["episodes"])
        self.reward_abs_max = float(state["reward_abs_max"])
        self._returns = deque(np.asarray(state["returns"]).tolist(), maxlen=RETURN_WINDOW)
        sums = state["sums"]
        if not isinstance(sums, dict):  # of an older run, by position
            sums = dict(zip(("loss", "dqn_share", "q_mean", "gradient_norm"), np.asarray(sums).tolist(), strict=True))
        self._sums = {name: float(total) for name, total in sums.items()}
        self._updates = int(state["updates"])


def value_bound(reward_abs_max: float, discount: float) -> float | None:
    """r_max/(1−γ): no true value exceeds it. None while no reward has been seen, or at γ = 1."""
    if reward_abs_max == 0 or discount == 1:
        return None
    return reward_abs_max / (1 - discount)
