"""What a run says of itself: events, and their rows in metrics.jsonl.

A row is a flat JSON object with a `kind` and the `step` it was written at. `steps_per_second` is the only
value that depends on the clock: all others of a resumed run are those of the uninterrupted one.
"""

from collections import deque
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cdqn.calibration import Calibration
from cdqn.training.collector import Episode
from cdqn.training.learner import UpdateResult

RETURN_WINDOW = 20
"""Episodes behind the mean training return."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Progress:
    """The state of a run, at regular steps; means are over the updates since the last one.

    Q and its bounds are in units of the environment's rewards, the loss in those of the learned Q.
    """

    step: int
    update: int
    episodes: int
    return_mean: float | None
    loss: float | None
    q_mean: float | None
    """Mean of max Q(s) of the online network"""
    q_bound: float | None
    """r_max/(1−γ), with the largest reward so far"""
    earned_low: float | None
    """Least and largest discounted return from any state of the last 100 episodes"""
    earned_high: float | None
    gradient_norm: float | None
    epsilon: float
    beta: float | None
    steps_per_second: float
    statistics: dict[str, float]
    """What else the algorithm reports: for C-DQN "dqn_share", the share of samples on DQN's branch"""

    def row(self) -> Row:
        values = asdict(self)
        return {"kind": "progress", **values.pop("statistics"), **values}


@dataclass(frozen=True)
class Warned:
    """Something the user should know, while the run goes on."""

    step: int
    message: str

    def row(self) -> Row:
        return {"kind": "warning", "step": self.step, "message": self.message}


@dataclass(frozen=True)
class Calibrated:
    """The discount and the normalisation found from the warm-up (App. E.3)."""

    step: int
    found: Calibration

    def row(self) -> Row:
        return {"kind": "calibration", "step": self.step, **self.found._asdict()}


Event = Episode | Progress | Warned | Calibrated


def episode_row(episode: Episode) -> Row:
    """An episode as it stands in metrics.jsonl."""
    values = asdict(episode)
    return {"kind": "episode", "step": values.pop("step"), "return": values.pop("total_reward"), **values}


def row_of(event: Event) -> Row:
    """Any event as a row."""
    return episode_row(event) if isinstance(event, Episode) else event.row()


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
