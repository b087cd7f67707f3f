"""Watches over a run: is Q beyond what can be true, beyond what was earned, or only creeping towards it?

All of them look at `Progress` rows, in the units of the environment's rewards.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdqn.config import Config
from cdqn.replay import Transitions
from cdqn.training.earned import EarnedReturns
from cdqn.training.events import Progress, Warned

MARGIN = 1.5
"""A learned Q may overshoot a little where the true one is close to its bound (CartPole)."""
UNPAID = 100.0
"""The bound while every reward was 0, which says nothing of their size: that of rewards of 1 and γ 0.99."""


class DivergenceWatch:
    """Warns when values or errors are beyond what any true value function could give.

    |Q| ≤ r_max/(1−γ), and so |δ| ≤ 2 r_max/(1−γ) for a correct Q.
    """

    def __init__(self) -> None:
        self.diverging = False

    def check(self, progress: Progress, unit: float = 1.0) -> str | None:
        """A warning at the first sight of divergence, and again only after it had ceased.

        `unit` is how much of Q one unit of the learned error stands for.
        """
        bound = progress.q_bound
        if bound is None or progress.q_mean is None or progress.loss is None:
            return None
        most = f"and no policy can earn more than {bound:.4g}: the largest reward at every step, r_max/(1−γ)"
        if bound == 0:
            bound, most = UNPAID, "and every reward so far was 0"
        limit = MARGIN * bound
        error = math.sqrt(progress.loss) * unit
        message = None
        if not abs(progress.q_mean) <= limit:
            message = f"Q, the return that the network expects, is {progress.q_mean:.4g} on average, {most}"
        elif not error <= 2 * limit:
            message = f"the typical error of Q is {error:.4g}, {most}"
        was_diverging, self.diverging = self.diverging, message is not None
        if message is None or was_diverging:
            return None
        return f"training is diverging: {message}"


class OverestimationWatch:
    """Warns when Q stays beyond every discounted return that the last episodes had.

    Far tighter than r_max/(1−γ) where a large reward is rare: for LunarLander, ±200 in place of ±10 000. A policy that
    is getting better may expect a little more than it has earned so far, hence the margin and the patience. Episodes
    that earned nothing at all do not say how much a little is: they leave Q to the watch of the bound.
    """

    MIN_EPISODES = 20
    PATIENCE = 3
    """Rows at which Q is beyond the returns and not on its way back."""

    def __init__(self) -> None:
        self.rows = 0
        self.distance = 0.0
        """How far beyond the returns Q was at the last row."""

    def check(self, progress: Progress, episodes: int) -> str | None:
        """A warning once Q has been beyond the returns for some rows; again only after it has come back."""
        low, high, q = progress.earned_low, progress.earned_high, progress.q_mean
        if low is None or high is None or q is None or episodes < self.MIN_EPISODES:
            return None
        if low == high == 0:
            self.rows, self.distance = 0, 0.0
            return None
        slack = (MARGIN - 1) * max(abs(low), abs(high))
        distance = max(q - high - slack, low - slack - q, 0.0)
        leaving, self.distance = distance >= self.distance, distance
        if distance == 0:
            self.rows = 0
        elif leaving:  # a Q that begins at 0 and falls towards −100 is beyond, too, but coming
            self.rows += 1
        if self.rows != self.PATIENCE or not leaving:
            return None
        which = "overestimated" if q > high else "underestimated"
        return (
            f"Q is {which}: the network expects a return of {q:.4g} on average, but the last {episodes} episodes "
            f"earned between {low:.4g} and {high:.4g} (discounted, from any of their states on)"
        )


class SlowModeWatch:
    """Notices a Q that has been moving evenly in one direction for half of the budget, and is not there yet.

    An error common to all states leaves a Bellman residual of only (1−γ) times itself; C-DQN and RG remove it at a
    rate of (1−γ)² between two copies (docs/tuning.md).
    """

    POINTS = 20
    """Over the first and over the second half of the budget."""
    SHARE = 0.3
    """Of the largest |Q|: what it must have moved by in the second half."""
    LINEARITY = 0.97
    """R² of a straight line through the second half."""

    def __init__(self) -> None:
        self.points: list[float] = []

    def check(self, progress: Progress, budget_steps: int) -> str | None:
        """A notice, once, shortly before the end of the budget."""
        due = progress.step * 2 * self.POINTS // budget_steps
        if progress.q_mean is None or due <= len(self.points):
            return None
        before = len(self.points)
        self.points += [progress.q_mean] * (due - before)
        if not before < 2 * self.POINTS - 1 <= due:  # rows may be farther apart than points
            return None
        q_T = np.array(self.points[-self.POINTS :])
        moved = q_T[-1] - q_T[0]
        if not np.isfinite(q_T).all() or abs(moved) <= self.SHARE * np.abs(q_T).max():
            return None
        if np.corrcoef(np.arange(len(q_T)), q_T)[0, 1] ** 2 < self.LINEARITY:
            return None
        direction = "rising" if moved > 0 else "falling"
        return f"Q is still {direction} evenly, from {q_T[0]:.4g} to {q_T[-1]:.4g} over the second half of the budget"


class LagWatch:
    """Warns when V, which stands for the mean of the slow copy's target, does not follow it (docs/denoised.md).

    Looks at the statistic "v_lag", the mean of the target less V, in which noise cancels.
    """

    SHARE = 0.05
    """Of |Q|. On fixed data of CartPole nothing was learned at 0.26, less at 0.042, and nothing was lost at 0.015."""
    PATIENCE = 5_000
    """Updates in sequence: when Q sets out from 0, a V that is on its way may be far from it for a while."""

    def __init__(self) -> None:
        self.behind_since: int | None = None
        """The update from which on V was behind at every row."""
        self.told = False

    def check(self, progress: Progress, unit: float = 1.0) -> str | None:
        """A warning once V has been behind for some time; again only after it has caught up."""
        lag, q = progress.statistics.get("v_lag"), progress.q_mean
        if lag is None or q is None:
            return None
        lag *= unit
        if abs(lag) <= self.SHARE * abs(q):
            self.behind_since, self.told = None, False
            return None
        if self.behind_since is None:
            self.behind_since = progress.update
        if self.told or progress.update - self.behind_since < self.PATIENCE:
            return None
        self.told = True
        side = "below" if lag > 0 else "above"
        return f"V does not follow: it is {abs(lag):.4g} {side} the target that it stands for, and Q is {q:.4g}"


def divergence_advice(config: Config) -> str:
    """Which setting to change, for a run whose Q is beyond what can be true."""
    period, rate = config.target_period_updates, config.learning_rate
    if not config.algorithm_class.convergent:
        short = period is not None and period < 100
        return (f"lengthen target_period_updates (now {period}), or use" if short else "use") + " algorithm cdqn"
    if hasty(config):
        return hasty_advice(config)
    return f"lower learning_rate (now {rate:g}) or raise batch_size (now {config.batch_size})"


def hasty_advice(config: Config) -> str:
    """For a target network that follows too closely."""
    return (
        f"target_period_updates {config.target_period_updates} is very short for learning_rate "
        f"{config.learning_rate:g}, and not even C-DQN is safe then: raise the one or lower the other"
    )


def lag_advice() -> str:
    """For a V that does not follow: larger steps, or a target that moves more slowly."""
    return "use a subclass of DCDQN with larger v_step_size or slow_copy_updates (docs/denoised.md), or algorithm cdqn"


def idle_advice(config: Config, step: int) -> str:
    """For a run whose memory does not fill: nearly all of what it plays is discarded, or cut off before n steps."""
    return (
        f"nothing has been learned by step {step:,}: the memory still holds less than batch_size {config.batch_size} "
        f"transitions; n_step {config.n_step} may be as long as the episodes, which are cut off before it, or "
        f"discard_fraction {config.discard_fraction:g} too large: lower them"
    )


def slow_advice(config: Config) -> str | None:
    """Which setting to change, for a run in the slow mode; None for algorithms without one, such as DQN."""
    if not config.algorithm_class.slow_mode:
        return None
    parts = [f"raise n_step (now {config.n_step})", f"learning_rate (now {config.learning_rate:g}) or steps"]
    if config.target_period_updates is not None and config.target_period_updates > 5:
        parts.insert(0, f"lower target_period_updates (now {config.target_period_updates})")
    return f"{config.algorithm_class.label} learns slowly here: {', or '.join(parts)}"


HASTE = 5e-3
"""Step size per update of the target period from which C-DQN was seen to leave the bound: period 1, step size 0.01."""


def hasty(config: Config) -> bool:
    """Whether the target network follows so closely, in steps so large, that not even C-DQN may stay bounded."""
    period = config.target_period_updates
    return config.algorithm_class.convergent and period is not None and config.learning_rate / period >= HASTE


class Watch:
    """All watches of one run, and their advice."""

    def __init__(self, config: Config, num_envs: int) -> None:
        self.config = config
        self.earned = EarnedReturns(num_envs)
        self._divergence = DivergenceWatch()
        self._overestimation = OverestimationWatch()
        self._slow_mode = SlowModeWatch()
        self._lag = LagWatch()
        self._begun = False
        self._idle_told = False

    def observe(self, transitions: Transitions, ended: NDArray[np.bool_], gamma: float | None) -> None:
        """Take in what was collected in one step."""
        self.earned.observe(transitions, ended, gamma)

    def check(self, progress: Progress, unit: float, budget_steps: int) -> Iterator[Warned]:
        """What the user should know at this row."""
        if not self._begun:
            self._begun = True
            if hasty(self.config):
                yield Warned(progress.step, hasty_advice(self.config), "hasty")
        advice = divergence_advice(self.config)
        if message := self._divergence.check(progress, unit):
            yield Warned(progress.step, f"{message}; {advice}", "diverging")
        if not self._divergence.diverging and (message := self._overestimation.check(progress, len(self.earned))):
            yield Warned(progress.step, f"{message}; {advice}", "misjudged")
        if message := self._lag.check(progress, unit):
            yield Warned(progress.step, f"{message}; {lag_advice()}", "lagging")
        if not self._idle_told and progress.update == 0 and progress.step >= 2 * self.config.warmup_steps:
            self._idle_told = True
            yield Warned(progress.step, idle_advice(self.config, progress.step), "idle")
        slow = slow_advice(self.config)
        if slow and (message := self._slow_mode.check(progress, budget_steps)):
            yield Warned(progress.step, f"{message}: {slow}", "slow")

    def restart(self) -> None:
        """The environments were begun anew."""
        self.earned.restart()

    def state_dict(self) -> dict[str, Any]:
        return {
            "earned": self.earned.state_dict(),
            "diverging": self._divergence.diverging,
            "rows_beyond": self._overestimation.rows,
            "distance_beyond": self._overestimation.distance,
            "q_points": np.array(self._slow_mode.points),
            "behind_since": self._lag.behind_since,
            "lag_told": self._lag.told,
            "begun": self._begun,
            "idle_told": self._idle_told,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if not state:  # a run of an older version: it is watched from here on
            return
        self.earned.load_state_dict(state["earned"])
        self._divergence.diverging = bool(state["diverging"])
        self._overestimation.rows = int(state["rows_beyond"])
        self._overestimation.distance = float(state["distance_beyond"])
        self._slow_mode.points = np.asarray(state["q_points"]).tolist()
        self._lag.behind_since = state.get("behind_since")
        self._lag.told = bool(state.get("lag_told", False))
        self._begun = bool(state["begun"])
        self._idle_told = bool(state.get("idle_told", False))
