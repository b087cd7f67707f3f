"""`Agent.learn`: training in memory or in a run folder, with a bar where one is wanted.

It stands above the agent, because run folders and screens do, and is plugged into it (`Agent._learn`).
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from cdqn.agent import Agent, Schedules
from cdqn.callbacks import Callback, Evaluations, announce, require_periods
from cdqn.envs import EnvLike, let_go
from cdqn.errors import ConfigError
from cdqn.runs.changes import news_of_schedules, settle_schedules
from cdqn.runs.runner import PERIODS, folder_of, train_on
from cdqn.runs.stopping import stop_on_signal
from cdqn.training.events import Event, Warned

MakeDisplay = Callable[[Agent, int], AbstractContextManager[Callback]]
make_display: MakeDisplay | None = None
"""Makes the bar of a run up to a step; set by the package, whose command line draws it."""


def learn(
    agent: Agent,
    steps: int,
    callbacks: Callback | Sequence[Callback] = (),
    progress: bool = False,
    run_folder: str | Path | None = None,
    evaluation_env: EnvLike | None = None,
    schedules: Schedules | None = None,
) -> None:
    """See `Agent.learn`."""
    _check(agent, steps, run_folder, evaluation_env)
    until = agent.steps + steps
    with ExitStack() as stack:
        run = None if run_folder is None else Path(run_folder)
        restored = None if run is None else stack.enter_context(folder_of(agent, run, until))
        if notice := settle_schedules(agent, until, schedules):
            warn_user(notice)
        everyone: list[Callback] = [_remember, _warn]
        everyone += [callbacks] if callable(callbacks) else callbacks
        if progress:
            everyone.append(stack.enter_context(_display(agent, until)))
        if run is None or restored is None:
            everyone.append(Evaluations(agent, env=evaluation_env))
            for event in agent.trainer.run(until):
                announce(event, agent, everyone)
            return
        stop = stack.enter_context(stop_on_signal())
        news = news_of_schedules(agent, schedules)
        train_on(agent, run, until, restored, everyone, stop, evaluation_env, news)
        if stop.requested():
            raise KeyboardInterrupt(f"stopped at step {agent.steps}, with a checkpoint in {run}")


Agent._learn = learn


def warn_user(message: str) -> None:
    """A Python warning, at the line outside of this package that led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "cdqn":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


def _check(agent: Agent, steps: int, run_folder: str | Path | None, evaluation_env: EnvLike | None) -> None:
    """Refuse what cannot be done, or would not act, before the first step."""
    config = agent.config
    if agent.only_plays:
        raise ConfigError("this agent was loaded with best=True, to play: load it without to learn on")
    if steps < 1:
        raise ConfigError(f"learn was asked for {steps} steps: it must be at least 1")
    if run_folder is None:
        for name in agent.for_run_folders:
            raise ConfigError(f"{name} acts on a run folder: learn({steps}, run_folder='runs/mine')")
    evaluates = config.evaluation_period_steps is not None or run_folder is not None
    if evaluation_env is not None and not evaluates:
        raise ConfigError("evaluation_env is given, and nothing is evaluated: set evaluation_period_steps")
    require_periods(config, *(PERIODS if run_folder is not None else ("evaluation_period_steps",)))
    if evaluates and (agent.has_environment or evaluation_env is not None or config.evaluation_period_steps):
        _require_evaluations(agent, evaluation_env)
    if agent.data is None and agent.steps + steps <= config.warmup_steps:
        warn_user(
            f"learn ends at step {agent.steps + steps}, within warmup_steps {config.warmup_steps}: "
            "nothing is learned yet; learn for longer, or lower warmup_steps"
        )


def _require_evaluations(agent: Agent, env: EnvLike | None) -> None:
    """Whether there is an environment for evaluations is said now, and not thousands of steps later."""
    let_go(agent.evaluation_environments(env), env)


@contextmanager
def _display(agent: Agent, until: int) -> Iterator[Callback]:
    """The bar; what the run warns of is said once, as a Python warning."""
    assert make_display is not None
    with make_display(agent, until) as show:
        yield lambda event, agent: None if isinstance(event, Warned) else show(event, agent)


def _remember(event: Event, agent: Agent) -> None:
    agent.history.append(event.row())


def _warn(event: Event, agent: Agent) -> None:
    if isinstance(event, Warned):
        warn_user(f"step {event.step:,}: {event.message}")
