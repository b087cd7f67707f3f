"""Several algorithms and seeds on one environment, in parallel processes, in one folder.

    DIR/comparison.json     which runs it is made of
        cdqn-seed0/ …       the runs, each a run folder of its own

`run_comparison` does what is left to do: it starts, and after a crash it goes on.
"""

import multiprocessing
import os
import queue
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdqn.agent import Agent, read_run_config
from cdqn.checkpoint import read_json, write_json, writing
from cdqn.config import Config
from cdqn.errors import CheckpointError, NonFiniteError
from cdqn.metrics import Row
from cdqn.runner import create_folder, resume_run, train_run
from cdqn.runtime import tune_process

OnRow = Callable[[str, Row], None]


@dataclass(frozen=True)
class RunOutcome:
    """How one run of a comparison ended."""

    name: str
    finished: bool
    problem: str | None
    """Why it stopped before its end, if it did."""


def create_comparison(folder: Path, env_id: str, configs: Sequence[Config], preset: str | None = None) -> None:
    """A new folder, and in it the list of runs."""
    Agent.from_config(env_id, configs[0], preset)  # what cannot work is said now, and not by every process
    create_folder(folder)
    content = {"env_id": env_id, "runs": {run_name(config): config.to_json() for config in configs}}
    with writing(folder):
        write_json(folder / "comparison.json", content)


def is_comparison(folder: Path) -> bool:
    return (folder / "comparison.json").exists()


def run_name(config: Config) -> str:
    return f"{config.algorithm}-seed{config.seed}"


def run_comparison(folder: Path, jobs: int | None = None, on_row: OnRow | None = None) -> list[RunOutcome]:
    """Train every run that is not complete, `jobs` at a time."""
    path = folder / "comparison.json"
    content = read_json(path, "a comparison")
    try:
        env_id = content["env_id"]
        configs = {name: Config.from_json(values, str(path)) for name, values in content["runs"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged: {error!r}") from error
    context = multiprocessing.get_context("spawn")
    outcomes: list[RunOutcome] = []
    with context.Manager() as manager:
        rows = manager.Queue()
        with ProcessPoolExecutor(jobs or os.cpu_count(), mp_context=context, initializer=_begin) as pool:
            futures = {pool.submit(_run, folder / name, env_id, config, rows): name for name, config in configs.items()}
            pending = set(futures)
            try:
                while pending:
                    done = [future for future in pending if future.done()]
                    pending.difference_update(done)
                    _drain(rows, on_row, wait=bool(pending))
                for future in as_completed(futures):
                    problem, finished = future.result()
                    outcomes.append(RunOutcome(futures[future], finished, problem))
            except KeyboardInterrupt:
                pool.shutdown(cancel_futures=True)  # the runs themselves have seen Ctrl-C and write their checkpoints
                raise
    return sorted(outcomes, key=lambda outcome: list(configs).index(outcome.name))


def _drain(rows: Any, on_row: OnRow | None, wait: bool) -> None:
    """Hand on what the processes have to say."""
    try:
        while True:
            name, row = rows.get(timeout=0.2 if wait else 0.01)
            if on_row:
                on_row(name, row)
    except queue.Empty:
        pass


def _begin() -> None:
    # Ctrl-C reaches every process of the terminal; a worker between two runs must not die of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(run: Path, env_id: str, config: Config, rows: Any) -> tuple[str | None, bool]:
    """In a process of its own: train, go on, or find that nothing is left to do."""

    def consumer(row: Row) -> None:
        if row["kind"] in ("progress", "warning", "evaluation"):
            rows.put((run.name, row))

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if not (run / "config.json").exists():
            agent = Agent.from_config(env_id, config)
            tune_process(agent.spec.kind)
            return None, train_run(agent, run, [consumer]).finished
        if _is_complete(run):
            return None, True

        def consumers_for(agent: Agent) -> list[Callable[[Row], None]]:
            tune_process(agent.spec.kind)
            return [consumer]

        return None, resume_run(run, consumers_for=consumers_for).finished
    except NonFiniteError as error:
        rows.put((run.name, {"kind": "warning", "step": 0, "message": str(error)}))
        return str(error), False
    except KeyboardInterrupt:
        return "interrupted", False
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _is_complete(run: Path) -> bool:
    _, config = read_run_config(run)
    newest = max((run / "checkpoints").glob("step-*"), default=None)
    return newest is not None and int(newest.name.removeprefix("step-")) >= config.steps
