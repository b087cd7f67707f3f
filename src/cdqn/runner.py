"""Runs on disk: a folder, its metrics and checkpoints, and the consumers that keep them while training.

RUN/config.json       the environment and every setting
    metrics.jsonl     one row per event
    checkpoints/      the newest complete state
    candidates/       weights for the final test, where they are kept (`cdqn.candidates`)
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from cdqn.agent import Agent, Restored, load_run, write_run_config
from cdqn.candidates import Candidates
from cdqn.checkpoint import writing
from cdqn.collector import Episode
from cdqn.envs import EnvLike
from cdqn.errors import CheckpointError
from cdqn.evaluation import EvaluationResult
from cdqn.metrics import Progress, Row, Warned, row_of
from cdqn.stopping import Stop, stop_on_signal

try:
    import fcntl
except ImportError:  # Windows has no such lock, and does without
    fcntl = None  # type: ignore[assignment]

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
            path.touch()
            self._file = open(path, "r+", encoding="utf-8")  # noqa: SIM115  closed by __exit__
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
    create_folder(run)
    with writing(run):
        write_run_config(run, agent)
    with locked(run):
        agent.save_checkpoint(run, 0)  # so that a run killed before its first checkpoint resumes too
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
    with locked(run):
        agent, restored = load_run(run, env, allow_import)
        until = steps or agent.trainer.budget_steps or agent.config.steps
        if agent.steps >= until:
            raise CheckpointError(
                f"{run} is complete: it has {agent.steps} of {until} steps; give --steps to train it further"
            )
        consumers = consumers_for(agent, until)
        if restored.notice:
            for consumer in consumers:
                consumer(Warned(agent.steps, restored.notice).row())
        return _train(agent, run, until, restored, consumers, stop)


def create_folder(run: Path) -> None:
    """A new, empty folder for a run."""
    if run.exists() and (not run.is_dir() or any(run.iterdir())):
        raise CheckpointError(f"{run} exists already: `cdqn resume {run}` goes on with it, another --out starts anew")
    with writing(run):
        run.mkdir(parents=True, exist_ok=True)


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """One process at a time; the lock goes with the process, however it ends."""
    if not (run / "config.json").exists():
        raise CheckpointError(f"{run} is not a run folder: it has no config.json")
    with writing(run):
        lock = open(run / ".lock", "w")  # noqa: SIM115
    with lock:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise CheckpointError(f"{run} is being trained by another process: wait for it or stop it") from error
        yield


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

        def evaluate() -> EvaluationResult:
            result = agent.evaluate(config.evaluation_episodes)
            report(evaluation_row(agent.steps, result))
            return result

        def save() -> None:
            agent.save_checkpoint(run, metrics.flush(), candidates.state_dict())
            candidates.prune()

        for event in trainer.run(until, stop.requested):
            report(row_of(event))
            if isinstance(event, Episode):
                candidates.add_episode(event)
            elif isinstance(event, Progress):
                if candidate_due(line(event.step)) and event.update > 0:
                    candidates.add(event.step, agent.weights)
                candidates.settle(event.step)
                if evaluation_due(line(event.step)) and event.step < until:
                    evaluate()
                if checkpoint_due(line(event.step)) and event.step < until:
                    save()
        finished = trainer.steps >= until
        result = evaluate() if finished else None
        save()
    return Outcome(trainer.steps, finished, result)


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
