"""Callbacks: who is called with every event of a run, in Python and in the command alike.

A callback is called as `callback(event, agent)`, between two steps; the events are those of `cdqn.training.events`. It
may read the agent, evaluate or save it. What it returns is None or True; False, which ends the training as
`agent.stop()` does; or an event, which all callbacks then see.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cdqn.config import Config
from cdqn.envs import EnvLike
from cdqn.errors import ConfigError, StoppedError
from cdqn.training.events import EVENTS, Evaluated, Event, Progress, Warned

if TYPE_CHECKING:
    from cdqn.agent import Agent

Callback = Callable[[Event, Any], Event | bool | None]
"""Called with an event and the agent."""


def announce(event: Event, agent: "Agent", callbacks: Sequence[Callback]) -> None:
    """Every callback sees the event; what one of them answers is seen by all before the next is called."""
    for callback in callbacks:
        answer = callback(event, agent)
        if isinstance(answer, bool | np.bool_):
            if not answer:
                agent.stop()
        elif isinstance(answer, EVENTS):
            announce(answer, agent, callbacks)
        elif answer is not None:
            raise ConfigError(
                f"the callback {callback!r} returned {answer!r}: a callback returns None or True, False to end the "
                "training, or an event for all to see"
            )


def require_periods(config: Config, *names: str) -> None:
    """Refuse periods that would pass unseen."""
    for name in names:
        period = getattr(config, name)
        if period is not None and period < config.log_period_steps:
            raise ConfigError(
                f"{name} is {period}, below log_period_steps {config.log_period_steps}: it is looked at only when a "
                "line is logged; raise it, or lower log_period_steps"
            )


class Every:
    """True once for each period of steps that a line of metrics completes; never, without a period."""

    def __init__(self, period: int | None, agent: "Agent") -> None:
        self._line = agent.config.log_period_steps
        self._period = period
        self._count = self._periods(agent.steps)

    def __call__(self, step: int) -> bool:
        before, self._count = self._count, self._periods(step)
        return self._count != before

    def _periods(self, step: int) -> int:
        # With N environments a line may be written up to N − 1 steps after the one that it stands for.
        return step // self._line * self._line // self._period if self._period else 0


class Evaluations:
    """Greedy evaluations at regular steps before `until`: what `evaluation_period_steps` asks for.

    They are played in `env`, by default in one like that of the training.
    """

    def __init__(
        self,
        agent: "Agent",
        until: float = float("inf"),
        should_stop: Callable[[], bool] = lambda: False,
        env: EnvLike | None = None,
    ) -> None:
        self._due = Every(agent.config.evaluation_period_steps, agent)
        self._until = until
        self._should_stop = should_stop
        self._env = env
        self.pending = False
        """Whether one was due, and somebody asked for an end before it was done."""

    def __call__(self, event: Event, agent: "Agent") -> Event | None:
        due = isinstance(event, Progress) and self._due(event.step)
        return self.evaluate(agent) if due and event.step < self._until else None

    def evaluate(self, agent: "Agent") -> Evaluated | None:
        """The evaluation at the present step; None if it was stopped, or if there is nothing to play."""
        if self._env is None and not agent.has_environment:
            return None
        try:
            result = agent.evaluate(agent.config.evaluation_episodes, env=self._env, should_stop=self._should_stop)
        except StoppedError:
            self.pending = True
            return None
        self.pending = False
        return Evaluated(agent.steps, result)


class StopAtReturn:
    """Ends training once the mean return of an evaluation reaches a threshold.

    It needs the setting `evaluation_period_steps`; with `training=True` the mean return of the last 20 training
    episodes counts instead.
    """

    def __init__(self, threshold: float, training: bool = False) -> None:
        self.threshold = threshold
        self.training = training

    def __call__(self, event: Event, agent: "Agent") -> None:
        if not self.training and agent.config.evaluation_period_steps is None:
            raise ConfigError("StopAtReturn looks at evaluations: set evaluation_period_steps, or use training=True")
        if isinstance(event, Progress) and self.training:
            reached = event.return_mean is not None and event.return_mean >= self.threshold
        else:
            reached = isinstance(event, Evaluated) and not self.training and event.result.mean >= self.threshold
        if reached:
            agent.stop()


class StopWhenDiverging:
    """Ends training when the run warns that it is diverging."""

    def __call__(self, event: Event, agent: "Agent") -> None:
        if isinstance(event, Warned) and event.topic == "diverging":
            agent.stop()


class KeepBest:
    """Saves the agent to a folder whenever an evaluation is better than all before; `cdqn.load` reads it.

    It needs the setting `evaluation_period_steps`. The folder holds everything, the replay memory too.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.best: float | None = None
        """The best mean return so far."""

    def __call__(self, event: Event, agent: "Agent") -> None:
        if agent.config.evaluation_period_steps is None:
            raise ConfigError("KeepBest looks at evaluations: set evaluation_period_steps")
        if isinstance(event, Evaluated) and (self.best is None or event.result.mean > self.best):
            self.best = event.result.mean
            agent.save(self.folder)
