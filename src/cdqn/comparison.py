"""Several algorithms and seeds on one environment, in parallel processes, in one folder.

    DIR/comparison.json     which runs it is made of
        cdqn-seed0/ …       the runs, each a run folder of its own

`run_comparison` does what is left to do: it starts, and after a crash it goes on.
"""

import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdqn.agent import Agent, read_run_config
from cdqn.checkpoint import newest_step, read_json, write_json, writing
from cdqn.config import Config
from cdqn.errors import CheckpointError, NonFiniteError
from cdqn.metrics import Row, Warned
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
    rows = context.Queue()
    with ProcessPoolExecutor(
        jobs or os.cpu_count(), mp_context=context, initializer=_begin, initargs=(rows, os.getpid())
    ) as pool:
        futures = {pool.submit(_run, folder / name, env_id, config): name for name, config in configs.items()}
        pending = set(futures)
        try:
            while pending:
                pending = {future for future in pending if not future.done()}
                _drain(rows, on_row, wait=bool(pending))
            for future, name in futures.items():
                problem, finished = future.result()
                outcomes.append(RunOutcome(name, finished, problem))
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)  # the runs have seen Ctrl-C too, and write their checkpoints
            raise
    return outcomes


def _drain(rows: Any, on_row: OnRow | None, wait: bool) -> None:
    """Hand on what the processes have to say."""
    try:
        while True:
            name, row = rows.get(timeout=0.2 if wait else 0.01)
            if on_row:
                on_row(name, row)
    except queue.Empty:
        pass


class _Worker:
    """What a worker process knows: where its rows go, and whether a run is under way."""

    rows: Any = None
    busy = threading.Lock()


def _begin(rows: Any, parent: int) -> None:
    # Ctrl-C reaches every process of the terminal; a worker between two runs must not die of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _Worker.rows = rows
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _leave_with(parent: int) -> None:
    """If the command is killed its workers follow: a run under way stops as at Ctrl-C, with a checkpoint."""
    while os.getppid() == parent:
        time.sleep(0.2)
    if _Worker.busy.locked():
        os.kill(os.getpid(), signal.SIGINT)
    with _Worker.busy:
        os._exit(1)


def _run(run: Path, env_id: str, config: Config) -> tuple[str | None, bool]:
    """In a process of its own: train, go on, or find that nothing is left to do."""
    with _Worker.busy:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return None, _train_or_resume(run, env_id, config)
        except NonFiniteError as error:
            _Worker.rows.put((run.name, Warned(0, str(error)).row()))
            return str(error), False
        except KeyboardInterrupt:
            return "interrupted", False
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _train_or_resume(run: Path, env_id: str, config: Config) -> bool:
    """Whether the run came to its end."""

    def consumer(row: Row) -> None:
        if row["kind"] in ("progress", "warning", "evaluation"):
            _Worker.rows.put((run.name, row))

    def consumers_for(agent: Agent, until: int) -> list[Callable[[Row], None]]:
        tune_process()
        return [consumer]

    if not (run / "config.json").exists():
        agent = Agent.from_config(env_id, config)
        return train_run(agent, run, consumers_for(agent, config.steps)).finished
    complete = newest_step(run) >= read_run_config(run)[1].steps
    return complete or resume_run(run, consumers_for=consumers_for).finished
