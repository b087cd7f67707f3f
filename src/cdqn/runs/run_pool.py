"""Runs in parallel processes, each in a folder of its own: `run_all` does what is left to do.

It starts, and after a crash, a signal or a death it goes on. What ends one run, an error of its environment or the
death of its process, leaves the others alone.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from cdqn.agent import Agent
from cdqn.config import Config
from cdqn.envs import module_of
from cdqn.errors import CheckpointError
from cdqn.runs.process import tune_process
from cdqn.runs.runner import is_complete, resume_run, train_run
from cdqn.runs.stopping import Stop, stop_on_signal
from cdqn.runs.workers import perform_all
from cdqn.storage.checkpoint import newest_step
from cdqn.storage.named_code import import_pieces
from cdqn.training.events import Evaluated, Event, Progress, Row, Warned

OnRow = Callable[[str, Row], None]
ATTEMPTS = 2
"""A process that dies twice in one run will do so again: an environment that crashes, a memory too large."""


class PlannedRun(NamedTuple):
    """What a run is made of."""

    env_id: str
    config: Config


@dataclass(frozen=True)
class RunOutcome:
    """How one of several runs ended."""

    name: str
    finished: bool
    problem: str | None
    """Why it stopped before its end, if it did."""


def run_all(
    folder: Path, runs: Mapping[str, PlannedRun], jobs: int | None = None, on_row: OnRow | None = None
) -> list[RunOutcome]:
    """Train every run that is not complete, `jobs` at a time, in the folders FOLDER/NAME.

    A run whose process dies is begun again once, from its checkpoint. KeyboardInterrupt after Ctrl-C, SIGTERM or
    SIGHUP, when the runs under way have written their checkpoints.
    """
    if outside := [name for name in runs if ".." in Path(name).parts or Path(name).is_absolute()]:
        raise CheckpointError(f"{folder} names a run {outside[0]!r}, which would lie outside of it: it is not ours")
    tasks = {name: (folder / name, planned) for name, planned in runs.items()}
    outcomes: dict[str, RunOutcome] = {}
    tell = on_row or (lambda name, row: None)
    at_once = os.cpu_count() or 1 if jobs is None else jobs
    with stop_on_signal() as stop, closing(perform_all(tasks, _train_or_resume, at_once, stop, ATTEMPTS)) as events:
        for name, kind, value in events:
            if kind == "said":
                tell(name, value)
            elif kind == "returned":
                outcomes[name] = RunOutcome(name, value, None)
            else:
                again = kind == "died" and name not in outcomes
                advice = "; it resumes from its checkpoint" if again else ""
                outcomes[name] = RunOutcome(name, False, value)
                tell(name, Warned(newest_step(folder / name), value + advice, "died").row())
        if stop.requested():
            raise KeyboardInterrupt
    return [outcomes[name] for name in runs]


def _train_or_resume(task: tuple[Path, PlannedRun], tell: Callable[[Row], None], stop: Stop) -> bool:
    """In a worker: train, go on, or find that nothing is left to do. Whether the run came to its end."""
    run, (env_id, config) = task
    callbacks = [partial(_pass_on, tell)]
    tune_process()
    import_pieces(vars(config))  # whoever planned the run has named them
    if not (run / "config.json").exists():
        return train_run(Agent.from_config(env_id, config), run, callbacks, stop=stop).finished
    allowed = module_of(env_id) or ()  # whoever planned the run has named it
    return is_complete(run) or resume_run(run, callbacks=callbacks, stop=stop, allow_import=allowed).finished


def _pass_on(tell: Callable[[Any], None], event: Event, agent: Agent) -> None:
    if isinstance(event, Progress | Warned | Evaluated):
        tell(event.row())
