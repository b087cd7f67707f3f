"""What a run says while it trains: events, and their rows in metrics.jsonl.

A row is a flat JSON object with a `kind` and the `step` it was written at. `steps_per_second` is the only
value that depends on the clock: all others of a resumed run are those of the uninterrupted one.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cdqn.training.warmup import Calibration

Row = dict[str, Any]
Topic = Literal["diverging", "misjudged", "slow", "lagging", "hasty", "idle", "resumed", "died", "pruned"]


@dataclass(frozen=True)
class Episode:
    """A finished training episode, with its return in raw scores."""

    step: int
    """The run's step at which it ended."""
    env: int
    total_reward: float
    length: int
    ended: Literal["terminated", "truncated"]

    def row(self) -> Row:
        values = asdict(self)
        return {"kind": "episode", "step": values.pop("step"), "return": values.pop("total_reward"), **values}


@dataclass(frozen=True)
class Progress:
    """The state of a run, at regular steps; means are over the updates since the last one.

    Q and its bounds are in units of the environment's rewards, the loss in those of the learned Q.
    """

    step: int
    update: int
    episodes: int
    return_mean: float | None
    """Over the last 20 training episodes"""
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
    topic: Topic

    def row(self) -> Row:
        return {"kind": "warning", **asdict(self)}


@dataclass(frozen=True)
class Calibrated:
    """The discount and the normalisation found from the warm-up (App. E.3)."""

    step: int
    found: Calibration

    def row(self) -> Row:
        return {"kind": "calibration", "step": self.step, **self.found._asdict()}


@dataclass(frozen=True)
class EvaluationResult:
    """Returns of complete episodes."""

    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    epsilon: float

    @property
    def mean(self) -> float:
        return float(self.returns.mean())

    @property
    def stderr(self) -> float:
        """Standard error of the mean; NaN for a single episode."""
        count = len(self.returns)
        return float(self.returns.std(ddof=1) / np.sqrt(count)) if count > 1 else float("nan")

    def __str__(self) -> str:
        error = f" ± {self.stderr:.3g}" if len(self.returns) > 1 else ""
        return f"{self.mean:.5g}{error} (mean ± standard error, {len(self.returns)} episodes, ε = {self.epsilon:g})"


@dataclass(frozen=True)
class Evaluated:
    """The greedy policy was evaluated, in environments of its own."""

    step: int
    result: EvaluationResult

    def row(self) -> Row:
        result = self.result
        return {
            "kind": "evaluation",
            "step": self.step,
            "episodes": len(result.returns),
            "epsilon": result.epsilon,
            "mean": result.mean,
            "stderr": result.stderr,
            "returns": result.returns.tolist(),
            "lengths": result.lengths.tolist(),
        }


Event = Episode | Progress | Warned | Calibrated | Evaluated
EVENTS: tuple[type[Event], ...] = get_args(Event)
