"""Runs on disk: a folder, its metrics and checkpoints, and the callbacks that keep them while training.

RUN/config.json       the environment and every setting
    metrics.jsonl     one row per event
    checkpoints/      the newest complete states
    candidates/       weights for the final test, where they are kept (`cdqn.runs.candidates`)
    best/             those of the best evaluation, where there are several (`cdqn.runs.best`)
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cdqn.agent import Agent, Schedules
from cdqn.callbacks import Callback, Evaluations, Every, announce, require_periods
from cdqn.config import Config
from cdqn.envs import EnvLike
from cdqn.errors import CheckpointError, ConfigError
from cdqn.runs.best import Best
from cdqn.runs.candidates import Candidates, KeepCandidates
from cdqn.runs.changes import change_setting, news_of_schedules, settle_schedules
from cdqn.runs.folders import NO_LINKS, locked_run, new_folder
from cdqn.runs.loading import Restored, load_run, new_agent_of
from cdqn.runs.stopping import Stop, stop_on_signal
from cdqn.storage.checkpoint import has_checkpoint, load_checkpoint_values, newest_step
from cdqn.storage.files import writing
from cdqn.training.events import EvaluationResult, Event, Progress, Warned
from cdqn.training.run_config import read_data_name, read_run_config, write_run_config


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    steps: int
    finished: bool
    """False when it was interrupted, or stopped by a callback."""
    evaluation: EvaluationResult | None


class MetricsFile:
    """metrics.jsonl, opened at the length it had at the checkpoint: what came after is done again."""

    def __init__(self, path: Path, length: int = 0) -> None:
        self.path = path
        with writing(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | NO_LINKS, 0o666)
            self._file = open(descriptor, "r+", encoding="utf-8")  # noqa: SIM115  closed by __exit__
            if length > path.stat().st_size:
                raise CheckpointError(f"{path} is shorter than its checkpoint says: it is damaged")
            self._file.truncate(length)
            self._file.seek(length)

    def __call__(self, event: Event, agent: Agent) -> None:
        with writing(self.path):
            self._file.write(json.dumps(event.row()) + "\n")

    def flush(self) -> int:
        """Hand all rows to the system and return the length of the file."""
        with writing(self.path):
            self._file.flush()
            return self._file.tell()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, _: TracebackType | None) -> None:
        try:
            self._file.close()
        except OSError:
            if value is None:  # else the first error tells more
                raise


class Checkpoints:
    """Complete states in the run folder, at regular steps before `until`."""

    def __init__(
        self,
        agent: Agent,
        run: Path,
        until: int,
        metrics: MetricsFile,
        candidates: Candidates,
        best: Best,
        evaluations: Evaluations,
    ) -> None:
        self._due = Every(agent.config.checkpoint_period_steps, agent)
        self._run = run
        self._until = until
        self._metrics = metrics
        self._candidates = candidates
        self._best = best
        self._evaluations = evaluations

    def __call__(self, event: Event, agent: Agent) -> None:
        if isinstance(event, Progress) and self._due(event.step) and event.step < self._until:
            self.save(agent, self._evaluations.pending)

    def save(self, agent: Agent, evaluation_pending: bool, prune: bool = True) -> None:
        """Add a checkpoint; `prune` deletes the policies that no checkpoint counts on any more."""
        beside = {"candidates": self._candidates.state_dict(), "best": self._best.state_dict()}
        agent.save_checkpoint(self._run, self._metrics.flush(), evaluation_pending, **beside)
        if prune:
            self._candidates.prune()
            self._best.prune()


def train_run(
    agent: Agent,
    run: str | Path,
    callbacks: Sequence[Callback] = (),
    until: int | None = None,
    stop: Stop | None = None,
    evaluation_env: EnvLike | None = None,
) -> Outcome:
    """Train a new agent for its budget, or `until` a step of it, in a new run folder, and say how it ended.

    What `agent.learn(steps, run_folder=run)` does, for who wants the outcome. It ends early, with a checkpoint, at a
    signal or, where `stop` is given, at that alone.
    """
    run = Path(run)
    with new_folder(run):
        restored = begin(agent, run)
        return train_on(agent, run, until or agent.config.steps, restored, callbacks, stop, evaluation_env)


@contextmanager
def folder_of(agent: Agent, run: Path, until: int) -> Iterator[Restored]:
    """The folder of an agent, locked: a new one, or the one in which it was trained so far, or loaded from.

    Where `until` is the end of the first training, it is the budget, and is recorded.
    """
    first = agent.trainer.budget_steps is None
    if not (run / "config.json").exists():
        with new_folder(run):
            if first:
                agent.settle_budget(until)
            yield begin(agent, run)
        return
    with locked_run(run):
        agent.require_own(run)
        if (step := newest_step(run)) != agent.steps:
            raise CheckpointError(
                f"{run} is at step {step}, the agent at {agent.steps}: go on with the one of the folder, "
                "cdqn.load(path), or choose another folder"
            )
        if first:
            agent.settle_budget(until)
            with writing(run):
                write_run_config(run, agent)
        yield Restored.from_state(load_checkpoint_values(run))


def begin(agent: Agent, run: Path) -> Restored:
    """Write what an agent is and has said so far, so that a run killed before its first checkpoint resumes exactly."""
    return Restored(agent.write_to(run))


def resume_run(
    run: str | Path,
    steps: int | None = None,
    env: EnvLike | None = None,
    callbacks: Sequence[Callback] | Callable[[Agent, int], Sequence[Callback]] = (),
    stop: Stop | None = None,
    allow_import: str | Iterable[str] = (),
    schedules: Schedules | None = None,
    learning_rate: float | None = None,
    making: Mapping[str, Any] | None = None,
    evaluation_env: EnvLike | None = None,
) -> Outcome:
    """Go on with a run where its checkpoint left it, to its budget or to `steps`.

    `callbacks` may be a function that makes them, from the agent and the step at which training will end.
    `allow_import`: as in `cdqn.load`; `schedules`, `evaluation_env`: as in `Agent.learn`. `learning_rate` is another
    one from here on. `making`: the settings env_kwargs and wrapper of `env`, where it is an id.
    """
    run = Path(run)
    changes = dict(making or {}) | ({} if learning_rate is None else {"learning_rate": learning_rate})
    with locked_run(run):
        if has_checkpoint(run) or has_rows(run):
            agent, restored = load_run(run, env, allow_import, **changes)
        elif (data := read_data_name(run)) is not None:
            raise CheckpointError(f"{run} was killed before {data} was saved with it: remove it, and begin anew")
        else:  # killed between config.json and the first checkpoint
            agent, restored = new_agent_of(run, env, allow_import, **changes), Restored(0)
            agent.save_checkpoint(run, 0)
        until = steps or agent.trainer.budget_steps or agent.config.steps
        if agent.steps >= until and not restored.evaluation_pending:
            raise CheckpointError(
                f"{run} is complete: it has {agent.steps} of {until} steps; give --steps to train it further"
            )
        made = callbacks(agent, until) if callable(callbacks) else callbacks
        ended = settle_schedules(agent, until, schedules)
        for notice in filter(None, (restored.damage, restored.notice, ended)):
            announce(Warned(agent.steps, notice, "resumed"), agent, made)
        news = news_of_schedules(agent, schedules)
        if learning_rate is not None:
            news += change_setting(run, "learning_rate", agent.config.learning_rate)
        return train_on(agent, run, until, restored, made, stop, evaluation_env, news)


def train_on(
    agent: Agent,
    run: Path,
    until: int,
    restored: Restored,
    callbacks: Sequence[Callback],
    stop: Stop | None = None,
    evaluation_env: EnvLike | None = None,
    news: Sequence[str] = (),
) -> Outcome:
    """Train in a folder that is locked, up to a step. `news`: what has been changed, which a checkpoint must hold."""
    trainer, result = agent.trainer, None
    candidates, best = Candidates(run, trainer.collector.env.num_envs), Best(run, agent)
    if restored.candidates is not None:
        candidates.load_state_dict(restored.candidates)
    best.load_state_dict(restored.best)
    stopping = stop_on_signal() if stop is None else nullcontext(stop)
    with MetricsFile(run / "metrics.jsonl", restored.metrics_bytes) as metrics, stopping as stop:
        evaluations = Evaluations(agent, until, stop.requested, evaluation_env)
        checkpoints = Checkpoints(agent, run, until, metrics, candidates, best, evaluations)
        keep = KeepCandidates(agent, candidates)
        # Checkpoints last: they hold what the others have seen and said of the event.
        everyone: tuple[Callback, ...] = (metrics, keep, best, *callbacks, evaluations, checkpoints)
        for message in news:
            announce(Warned(agent.steps, message, "resumed"), agent, everyone)
        if news:
            checkpoints.save(agent, restored.evaluation_pending, prune=False)
        if restored.evaluation_pending:
            result = _evaluate(agent, evaluations, everyone)
        if trainer.steps < until and not evaluations.pending:
            for event in trainer.run(until, stop.requested):
                announce(event, agent, everyone)
            if trainer.steps >= until:
                # An evaluation that hangs or fails must not cost the training. The next save takes the place of this
                # one, so the one before stays, and with it the candidates that it counts on.
                checkpoints.save(agent, evaluation_pending=True, prune=False)
                result = _evaluate(agent, evaluations, everyone)
        checkpoints.save(agent, evaluations.pending)
    return Outcome(trainer.steps, trainer.steps >= until and not evaluations.pending, result)


def _evaluate(agent: Agent, evaluations: Evaluations, everyone: Sequence[Callback]) -> EvaluationResult | None:
    """The result, after all have heard of it; None after a wish to stop: `resume` does it then."""
    evaluated = evaluations.evaluate(agent)
    if evaluated is None:
        return None
    announce(evaluated, agent, everyone)
    return evaluated.result


def require_learning(config: Config) -> None:
    """Refuse a run in which nothing would be learned, or saved when it was asked for."""
    if config.steps <= config.warmup_steps:
        raise ConfigError(
            f"steps is {config.steps}, {'below' if config.steps < config.warmup_steps else 'as many as'} warmup_steps "
            f"{config.warmup_steps}: nothing would be learned; raise --steps or lower --warmup-steps"
        )
    if config.steps < config.warmup_steps + config.update_period_steps:
        raise ConfigError(
            f"update_period_steps is {config.update_period_steps}: after warmup_steps {config.warmup_steps} the first "
            f"update would come beyond steps {config.steps}, and nothing would be learned; lower it or raise --steps"
        )
    if config.n_step >= config.steps:
        raise ConfigError(
            f"n_step is {config.n_step}, and the run has {config.steps} steps: no return would ever be complete; "
            "lower --n-step"
        )
    require_periods(config, *PERIODS)


PERIODS = ("checkpoint_period_steps", "evaluation_period_steps", "candidate_period_steps")
"""Of what happens in a run folder."""


def has_rows(run: Path) -> bool:
    """Whether anything has been logged."""
    metrics = run / "metrics.jsonl"
    return metrics.exists() and metrics.stat().st_size > 0


def is_complete(run: Path) -> bool:
    """Whether a run has come to the end of its budget, the final evaluation included."""
    if newest_step(run) < read_run_config(run)[1].steps:
        return False
    return not load_checkpoint_values(run).get("evaluation_pending", False)
