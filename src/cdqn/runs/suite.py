"""The suite: every algorithm, with its own default settings, on tasks that users know, over several seeds.

    DIR/suite.json              which runs it is made of
        CartPole/cdqn-seed0/ …  the runs, each a run folder of its own

A folder that exists is continued: finished runs are not repeated. More tasks, algorithms or seeds may be asked for;
runs that are there already must have been begun with the same settings.
"""

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from cdqn.agent import Agent
from cdqn.config import ALGORITHMS, Config
from cdqn.envs import kind_of
from cdqn.errors import CheckpointError, ConfigError, MissingPackageError
from cdqn.presets import default_preset, make_config
from cdqn.runs.run_pool import PlannedRun
from cdqn.runs.runner import locked
from cdqn.storage.files import read_json, require_no_links, write_json, writing
from cdqn.tasks.suite import TASKS, Task

Scale = Literal["smoke", "laptop"]
EVALUATIONS = 10
"""Greedy evaluations, evenly spread over a run."""
EPISODES = 10
"""Episodes of each."""

Plan = dict[str, PlannedRun]


def plan_suite(scale: Scale, tasks: Sequence[str], algorithms: Sequence[str], first_seed: int, seeds: int) -> Plan:
    """The runs, by name, in the order in which they are begun: seed by seed, so that a part of it says something."""
    if scale not in get_args(Scale):
        raise ConfigError(f"there is no scale {scale!r}: choose from {', '.join(get_args(Scale))}")
    if seeds < 1:
        raise ConfigError(f"seeds is {seeds}: a suite needs at least 1")
    chosen = [TASKS[name] for name in _known(tasks, TASKS, "task")]
    names = _known(algorithms, ALGORITHMS, "algorithm")
    return {
        f"{task.name}/{algorithm}-seed{seed}": PlannedRun(task.env_id, _config(scale, task, algorithm, seed))
        for seed in range(first_seed, first_seed + seeds)
        for task in chosen
        for algorithm in names
    }


def is_suite(folder: Path) -> bool:
    return (folder / "suite.json").exists()


def planned_runs(folder: Path) -> Plan:
    """The runs of a suite that was begun, by name."""
    require_no_links(folder)
    path = folder / "suite.json"
    try:
        runs = {name: dict(values) for name, values in read_json(path, "a suite")["runs"].items()}
        ids = {name: settings.pop("env_id") for name, settings in runs.items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged: {error!r}") from error
    known = {task.env_id for task in TASKS.values()}
    if foreign := [name for name, env_id in ids.items() if env_id not in known]:
        raise CheckpointError(f"{path} is damaged: {foreign[0]} is of no task of the suite")
    return {name: PlannedRun(ids[name], Config.from_json(values, str(path))) for name, values in runs.items()}


def open_suite(folder: Path, scale: Scale, plan: Plan) -> None:
    """Make the folder and write down its runs, or check that they continue what is there."""
    _check_environments(plan)
    path = folder / "suite.json"
    runs: dict[str, Any] = {name: {"env_id": run.env_id, **run.config.to_json()} for name, run in plan.items()}
    if path.exists():
        runs = _begun(path, scale) | _unchanged(path, runs)
    elif folder.exists() and any(folder.iterdir()):
        raise CheckpointError(f"{folder} exists and is no suite: choose another --out")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder), writing(folder):
        write_json(path, {"scale": scale, "runs": runs})


def _config(scale: Scale, task: Task, algorithm: str, seed: int) -> Config:
    """The algorithm's own defaults for this kind of environment; the suite adds only when to evaluate."""
    steps = task.steps
    settings: dict[str, Any] = {}
    if scale == "smoke":
        steps = 1_600
        settings = {"warmup_steps": 400, "batch_size": 16, "hidden": (16,), "log_period_steps": 800, "compile": "off"}
    period = steps // (2 if scale == "smoke" else EVALUATIONS)
    settings |= {
        "evaluation_period_steps": period,
        "evaluation_episodes": 2 if scale == "smoke" else EPISODES,
        "checkpoint_period_steps": 5 * period,
    }
    preset = default_preset(kind_of(task.env_id))
    return make_config(algorithm, preset, steps=steps, seed=seed, **settings).resolved()


def _known(names: Sequence[str], known: Iterable[str], noun: str) -> list[str]:
    """`names`, each once and known; or the nearest name to the one that is not."""
    by_lower = {name.lower(): name for name in known}
    for name in names:
        if name.lower() not in by_lower:
            near = difflib.get_close_matches(name.lower(), by_lower, n=1)
            hint = f"did you mean {by_lower[near[0]]}?" if near else f"choose from {', '.join(by_lower.values())}"
            raise ConfigError(f"there is no {noun} {name!r}: {hint}")
    return list(dict.fromkeys(by_lower[name.lower()] for name in names))


def _check_environments(plan: Plan) -> None:
    """What cannot be made is said now, with the line that installs it, and not by every run."""
    first: dict[str, Config] = {}
    for run in plan.values():
        first.setdefault(run.env_id, run.config)
    extras = {task.env_id: task for task in TASKS.values()}
    for env_id, config in first.items():
        try:
            Agent.from_config(env_id, config)
        except MissingPackageError as error:
            task = extras[env_id]
            raise MissingPackageError(
                f"{task.name} needs a package that is not installed: pip install 'cdqn[{task.extra}]', "
                "or leave it out with --tasks"
            ) from error


def _begun(path: Path, scale: Scale) -> dict[str, Any]:
    content = read_json(path, "a suite")
    try:
        begun_scale, runs = content["scale"], dict(content["runs"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: {error!r}") from error
    if begun_scale != scale:
        raise ConfigError(f"{path.parent} was begun with --scale {begun_scale}, not {scale}: choose another --out")
    return runs


def _unchanged(path: Path, runs: dict[str, Any]) -> dict[str, Any]:
    """`runs`, after making sure that those in the file have the same settings."""
    begun = read_json(path, "a suite")["runs"]
    for name in runs.keys() & begun.keys():
        for setting in runs[name].keys() | begun[name].keys():
            there, asked = begun[name].get(setting), runs[name].get(setting)
            if there != asked:
                raise ConfigError(
                    f"{path.parent} holds {name} with {setting} {there!r}, and {asked!r} is asked for: "
                    "choose another --out"
                )
    return runs
