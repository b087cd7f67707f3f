"""Runs on disk: a folder, its metrics and checkpoints, and the consumers that keep them while training.

RUN/config.json       the environment and every setting
    metrics.jsonl     one row per event
    checkpoints/      the newest complete state
    candidates/       weights for the final test, where they are kept (`cdqn.runs.candidates`)
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from cdqn.agent import Agent, Restored, load_run, new_agent_of, read_run_config, write_run_config
from cdqn.envs import EnvLike
from cdqn.errors import CheckpointError, StoppedError
from cdqn.runs.candidates import Candidates
from cdqn.runs.stopping import Stop, stop_on_signal
from cdqn.storage.checkpoint import has_checkpoint, load_checkpoint_values, newest_step
from cdqn.storage.files import require_no_links, writing
from cdqn.training.collector import Episode
from cdqn.training.evaluation import EvaluationResult
from cdqn.training.metrics import Progress, Row, Warned, row_of

try:
    import fcntl
except ImportError:  # Windows has no such lock, and does without
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
"""Refuse to open a file through a symbolic link; Windows has no such flag."""

Consumer = Callable[[Row], None]


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    steps: int
    finished: bool
    """False when it was interrupted."""
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

    def write(self, row: Row) -> None:
        with writing(self.path):
            self._file.write(json.dumps(row) + "\n")

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


def train_run(
    agent: Agent, run: Path, consumers: Sequence[Consumer] = (), until: int | None = None, stop: Stop | None = None
) -> Outcome:
    """Train a new agent for its budget, or `until` a step of it, in a new run folder.

    It ends early, with a checkpoint, at a signal or, where `stop` is given, at that alone.
    """
    with new_folder(run):
        with writing(run):
            write_run_config(run, agent)
        agent.save_checkpoint(run, 0)  # so that a run killed before its first checkpoint resumes exactly
        return _train(agent, run, until or agent.config.steps, Restored(0), consumers, stop)


def resume_run(
    run: Path,
    steps: int | None = None,
    env: EnvLike | None = None,
    consumers_for: Callable[[Agent, int], Sequence[Consumer]] = lambda agent, until: (),
    stop: Stop | None = None,
    allow_import: str | Iterable[str] = (),
) -> Outcome:
    """Go on with a run where its checkpoint left it, to its budget or to `steps`.

    `consumers_for` is given the agent and the step at which training will end. `allow_import`: as in `cdqn.load`.
    """
    with locked_run(run):
        if has_checkpoint(run) or has_rows(run):
            agent, restored = load_run(run, env, allow_import)
        else:  # killed between config.json and the first checkpoint
            agent, restored = new_agent_of(run, env, allow_import), Restored(0)
            agent.save_checkpoint(run, 0)
        until = steps or agent.trainer.budget_steps or agent.config.steps
        if agent.steps >= until and not restored.evaluation_pending:
            raise CheckpointError(
                f"{run} is complete: it has {agent.steps} of {until} steps; give --steps to train it further"
            )
        consumers = consumers_for(agent, until)
        for notice in filter(None, (restored.damage, restored.notice)):
            for consumer in consumers:
                consumer(Warned(agent.steps, notice).row())
        return _train(agent, run, until, restored, consumers, stop)


@contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """A new, empty folder, locked before the first byte is written to it: of two who begin together one is refused."""
    _require_new(folder)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        _require_new(folder)
        yield


def _require_new(folder: Path) -> None:
    with writing(folder):
        taken = folder.exists() and (not folder.is_dir() or any(not _is_debris(path) for path in folder.iterdir()))
    if taken:
        raise CheckpointError(
            f"{folder} exists already: `cdqn resume {folder}` continues it, another --out starts a new run"
        )


def _is_debris(path: Path) -> bool:
    """What a process leaves that is killed before it has written its first file."""
    return path.name == LOCK or (path.name.startswith(".") and path.name.endswith(".writing"))


def has_rows(run: Path) -> bool:
    """Whether anything has been logged."""
    metrics = run / "metrics.jsonl"
    return metrics.exists() and metrics.stat().st_size > 0


@contextmanager
def locked_run(run: Path) -> Iterator[None]:
    """`locked`, for what is a run folder."""
    if not (run / "config.json").exists():
        raise CheckpointError(f"{run} is not a run folder: it has no config.json")
    with locked(run):
        yield


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time; the lock goes with the process, however it ends."""
    require_no_links(folder)
    with writing(folder):  # never emptied, never another file than the folder's own
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | NO_LINKS, 0o666)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise CheckpointError(
                    f"{folder} is being trained by another process: wait for it or stop it"
                ) from error
        yield
    finally:
        os.close(lock)


def _train(
    agent: Agent, run: Path, until: int, restored: Restored, consumers: Sequence[Consumer], stop: Stop | None
) -> Outcome:
    config, trainer = agent.config, agent.trainer

    def line(step: int) -> int:
        """The step that a line of metrics stands for: with N environments it may be written up to N - 1 later."""
        return step // config.log_period_steps * config.log_period_steps

    evaluation_due = _Every(config.evaluation_period_steps, line(trainer.steps))
    checkpoint_due = _Every(config.checkpoint_period_steps, line(trainer.steps))
    candidate_due = _Every(config.candidate_period_steps, line(trainer.steps))
    candidates = Candidates(run, trainer.collector.env.num_envs)
    if restored.candidates is not None:
        candidates.load_state_dict(restored.candidates)
    stopping = stop_on_signal() if stop is None else nullcontext(stop)
    with MetricsFile(run / "metrics.jsonl", restored.metrics_bytes) as metrics, stopping as stop:

        def report(row: Row) -> None:
            metrics.write(row)
            for consumer in consumers:
                consumer(row)

        def evaluate() -> EvaluationResult | None:
            """The result; None after a wish to stop: `resume` does it then."""
            try:
                result = agent.evaluate(config.evaluation_episodes, should_stop=stop.requested)
            except StoppedError:
                return None
            report(evaluation_row(agent.steps, result))
            return result

        def save(evaluation_pending: bool, prune: bool = True) -> None:
            agent.save_checkpoint(run, metrics.flush(), candidates.state_dict(), evaluation_pending)
            if prune:
                candidates.prune()

        pending, result = restored.evaluation_pending, None
        if pending:
            result = evaluate()
            pending = result is None
        if trainer.steps < until and not pending:
            for event in trainer.run(until, stop.requested):
                report(row_of(event))
                if isinstance(event, Episode):
                    candidates.add_episode(event)
                elif isinstance(event, Progress):
                    if candidate_due(line(event.step)) and event.update > 0:
                        candidates.add(event.step, agent.weights)
                    candidates.settle(event.step)
                    if evaluation_due(line(event.step)) and event.step < until:
                        pending = evaluate() is None
                    if checkpoint_due(line(event.step)) and event.step < until:
                        save(pending)
            if trainer.steps >= until:
                # An evaluation that hangs or fails must not cost the training. The next save takes the place of this
                # one, so the one before stays, and with it the candidates that it counts on.
                save(evaluation_pending=True, prune=False)
                result = evaluate()
                pending = result is None
        save(pending)
    return Outcome(trainer.steps, trainer.steps >= until and not pending, result)


def is_complete(run: Path) -> bool:
    """Whether a run has come to the end of its budget, the final evaluation included."""
    if newest_step(run) < read_run_config(run)[1].steps:
        return False
    return not load_checkpoint_values(run).get("evaluation_pending", False)


def evaluation_row(step: int, result: EvaluationResult) -> Row:
    """An evaluation as it stands in metrics.jsonl."""
    return {
        "kind": "evaluation",
        "step": step,
        "episodes": len(result.returns),
        "epsilon": result.epsilon,
        "mean": result.mean,
        "stderr": result.stderr,
        "returns": result.returns.tolist(),
        "lengths": result.lengths.tolist(),
    }


class _Every:
    """True once for each period that a step has completed; never, without a period."""

    def __init__(self, period: int | None, step: int) -> None:
        self._period = period
        self._count = step // period if period else 0

    def __call__(self, step: int) -> bool:
        if not self._period or step // self._period == self._count:
            return False
        self._count = step // self._period
        return True
