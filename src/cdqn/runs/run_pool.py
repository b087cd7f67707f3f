"""Runs in parallel processes, each in a folder of its own: `run_all` does what is left to do.

It starts, and after a crash, a signal or a death it goes on. What ends one run, an error of its environment or the
death of its process, leaves the others alone. `open_plan` writes down which runs a folder is made of, or checks that
they continue what is there.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from cdqn.agent import Agent
from cdqn.callbacks import Callback
from cdqn.config import Config
from cdqn.envs import module_of
from cdqn.errors import CheckpointError, ConfigError
from cdqn.runs.folders import locked
from cdqn.runs.process import tune_process
from cdqn.runs.runner import is_complete, resume_run, train_run
from cdqn.runs.stopping import Stop, stop_on_signal
from cdqn.runs.workers.local import LocalPool
from cdqn.runs.workers.tasks import Pool, perform_all
from cdqn.storage.checkpoint import newest_step
from cdqn.storage.files import read_json, write_json, writing
from cdqn.storage.named_code import import_pieces
from cdqn.training.events import Evaluated, Event, Progress, Row, Warned

OnRow = Callable[[str, Row], None]
ATTEMPTS = 2
"""A process that dies twice in one run will do so again: an environment that crashes, a memory too large."""


NOT_SHARED = "{folder} is not the same folder on all machines: on a cluster --out must lie on a disk that they share"


class PlannedRun(NamedTuple):
    """What a run is made of."""

    env_id: str
    config: Config


Plan = dict[str, PlannedRun]
"""The runs of a folder, by name."""
Settings = dict[str, dict[str, Any]]
"""Environment and settings of each run, as they stand in the file."""


@dataclass(frozen=True)
class RunOutcome:
    """How one of several runs ended."""

    name: str
    finished: bool
    problem: str | None
    """Why it stopped before its end, if it did."""


def run_all(
    folder: Path, runs: Mapping[str, PlannedRun], pool: Pool | None = None, on_row: OnRow | None = None
) -> list[RunOutcome]:
    """Train every run that is not complete, in the folders FOLDER/NAME; `pool`: where (unset: on all cores).

    A run whose process dies is begun again once, from its checkpoint. KeyboardInterrupt after Ctrl-C, SIGTERM or
    SIGHUP, when the runs under way have written their checkpoints.
    """
    if outside := [name for name in runs if ".." in Path(name).parts or Path(name).is_absolute()]:
        raise CheckpointError(f"{folder} names a run {outside[0]!r}, which would lie outside of it: it is not ours")
    there = folder.absolute()  # a worker may be elsewhere
    tasks = {name: (there, name, planned) for name, planned in runs.items()}
    outcomes: dict[str, RunOutcome] = {}
    tell = on_row or (lambda name, row: None)
    pool = pool or LocalPool()
    with stop_on_signal() as stop, closing(perform_all(tasks, _train_or_resume, pool, stop, ATTEMPTS)) as events:
        for name, kind, value in events:
            if kind == "said":
                tell(name, value)
            elif kind == "returned":
                lost = None if (folder / name / "config.json").exists() else NOT_SHARED.format(folder=there)
                outcomes[name] = RunOutcome(name, value and lost is None, lost)
            else:
                again = kind == "died" and name not in outcomes
                advice = "; it resumes from its checkpoint" if again else ""
                outcomes[name] = RunOutcome(name, False, value)
                tell(name, Warned(newest_step(folder / name), value + advice, "died").row())
        if stop.requested():
            raise KeyboardInterrupt
    return [outcomes[name] for name in runs]


def open_plan(path: Path, about: Mapping[str, str], plan: Plan) -> None:
    """Make the folder and write down its runs; where it is there already, more runs may be asked for.

    Runs that have been begun must have the same settings, and `about`, which stands for all of them, must be the same.
    """
    folder = path.parent
    runs = {name: {"env_id": run.env_id, **run.config.to_json()} for name, run in plan.items()}
    if path.exists():
        begun_about, begun = read_plan(path, "a plan of runs")
        for name, value in about.items():
            if begun_about.get(name) != value:
                there = begun_about.get(name)
                raise ConfigError(f"{folder} was begun with --{name} {there}, not {value}: choose another --out")
        _require_unchanged(folder, begun, runs)
        runs = begun | runs
    elif folder.exists() and any(folder.iterdir()):
        raise CheckpointError(f"{folder} exists and has no {path.name}: choose another --out")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder), writing(folder):
        write_json(path, {**about, "runs": runs})


def read_plan(path: Path, what: str) -> tuple[dict[str, Any], Settings]:
    """What stands for all runs of a plan, and the settings of each."""
    content = read_json(path, what)
    try:
        about = {name: value for name, value in content.items() if name != "runs"}
        return about, {name: dict(settings) for name, settings in content["runs"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged: {error!r}") from error


def _require_unchanged(folder: Path, begun: Settings, asked: Settings) -> None:
    """What has been begun and is asked for again must have the same settings."""
    for name in begun.keys() & asked.keys():
        for setting in begun[name].keys() | asked[name].keys():
            there, wanted = begun[name].get(setting), asked[name].get(setting)
            if there != wanted:
                raise ConfigError(
                    f"{folder} holds {name} with {setting} {there!r}, and {wanted!r} is asked for: choose another --out"
                )


def _train_or_resume(task: tuple[Path, str, PlannedRun], tell: Callable[[Row], None], stop: Stop) -> bool:
    """In a worker: train, go on, or find that nothing is left to do. Whether the run came to its end."""
    folder, name, planned = task
    return train_or_resume(folder, name, planned, tell, stop)


def train_or_resume(
    folder: Path, name: str, planned: PlannedRun, tell: Callable[[Row], None], stop: Stop | None, *more: Callback
) -> bool:
    """Train the run FOLDER/NAME, go on with it, or find it complete. Whether it came to its end.

    Its parent is told of its events, and then the callbacks `more` are.
    """
    if not folder.is_dir():
        raise CheckpointError(NOT_SHARED.format(folder=folder))
    run = folder / name
    env_id, config = planned
    callbacks = partial(_callbacks, tell, more)
    tune_process()
    import_pieces(vars(config))  # whoever planned the run has named them
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module="cdqn")  # said once, where the run was planned
        if not (run / "config.json").exists():
            agent = Agent.from_config(env_id, config)
            return train_run(agent, run, callbacks(agent, config.steps), stop=stop).finished
        allowed = module_of(env_id) or ()  # whoever planned the run has named it
        return is_complete(run) or resume_run(run, callbacks=callbacks, stop=stop, allow_import=allowed).finished


def _callbacks(tell: Callable[[Row], None], more: tuple[Callback, ...], agent: Agent, until: int) -> list[Callback]:
    """What passes on the events of a run, and says when its update is compiled."""

    @contextmanager
    def compiling() -> Iterator[None]:
        tell({"kind": "compiling", "step": agent.steps})
        yield

    agent.trainer.learner.while_compiling = compiling
    return [partial(_pass_on, tell), *more]


def _pass_on(tell: Callable[[Any], None], event: Event, agent: Agent) -> None:
    """A callback, in a worker: what its parent shows."""
    if isinstance(event, Progress | Warned | Evaluated):
        tell(event.row())
