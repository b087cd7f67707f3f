"""What was really earned: the returns against which a learned Q is held (`cdqn.training.divergence`)."""

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdqn.calibration import discounted_returns
from cdqn.replay import Transitions


class EarnedReturns:
    """The discounted returns that finished episodes really had, from each of their states on.

    An episode that was cut off is continued as if it went on paying its mean reward: its Q would be right to do so.
    """

    EPISODES = 100
    """Older episodes, of older policies, do not count."""

    def __init__(self, num_envs: int) -> None:
        self._open: list[list[float]] = [[] for _ in range(num_envs)]
        self._ranges: deque[tuple[float, float]] = deque(maxlen=self.EPISODES)

    def __len__(self) -> int:
        return len(self._ranges)

    def observe(self, transitions: Transitions, ended: NDArray[np.bool_], gamma: float | None) -> None:
        """Take in what was collected in one step; `ended` says where an episode is over, by a time limit too."""
        columns = (transitions.stream, transitions.reward, transitions.terminated, ended)
        for env, reward, terminated, over in zip(*(column.tolist() for column in columns), strict=True):
            self._open[env].append(reward)
            if terminated or over:
                if gamma is not None:
                    self._ranges.append(_earned_range(self._open[env], gamma, terminated))
                self._open[env] = []

    def restart(self) -> None:
        """The environments were begun anew."""
        self._open = [[] for _ in self._open]

    def range(self) -> tuple[float, float] | None:
        """The least and the largest return; None before the first episode has ended."""
        if not self._ranges:
            return None
        lows, highs = zip(*self._ranges, strict=True)
        return min(lows), max(highs)

    def state_dict(self) -> dict[str, Any]:
        return {
            "rewards": np.array([reward for rewards in self._open for reward in rewards]),
            "counts": np.array([len(rewards) for rewards in self._open], dtype=np.int64),
            "ranges": np.array(self._ranges).reshape(-1, 2),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        ends = np.cumsum(state["counts"])[:-1]
        self._open = [rewards.tolist() for rewards in np.split(np.asarray(state["rewards"]), ends)]
        pairs = np.asarray(state["ranges"]).tolist()
        self._ranges = deque(((low, high) for low, high in pairs), maxlen=self.EPISODES)


def _earned_range(rewards: list[float], gamma: float, terminated: bool) -> tuple[float, float]:
    """The least and the largest discounted return along one episode."""
    reward_T = np.array(rewards)
    return_T = discounted_returns(reward_T, gamma)
    if not terminated and gamma < 1:
        left_T = np.arange(len(rewards), 0, -1)
        return_T = return_T + gamma**left_T * reward_T.mean() / (1 - gamma)
    return float(return_T.min()), float(return_T.max())
