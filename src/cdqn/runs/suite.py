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
from cdqn.algorithms import ALGORITHMS, find_algorithm
from cdqn.config import Config
from cdqn.envs import kind_of
from cdqn.errors import CheckpointError, ConfigError, MissingPackageError
from cdqn.presets import default_preset, make_config
from cdqn.runs.comparison import run_name
from cdqn.runs.run_pool import Plan, PlannedRun, open_plan, read_plan
from cdqn.storage.files import require_no_links
from cdqn.storage.named_code import import_allowed, import_pieces, is_code_name
from cdqn.tasks.suite import TASKS, Task

Scale = Literal["smoke", "laptop"]
EVALUATIONS = 10
"""Greedy evaluations, evenly spread over a run."""
EPISODES = 10
"""Episodes of each."""


def plan_suite(scale: Scale, tasks: Sequence[str], algorithms: Sequence[str], first_seed: int, seeds: int) -> Plan:
    """The runs, by name, in the order in which they are begun: seed by seed, so that a part of it says something."""
    if scale not in get_args(Scale):
        raise ConfigError(f"there is no scale {scale!r}: choose from {', '.join(get_args(Scale))}")
    if seeds < 1:
        raise ConfigError(f"seeds is {seeds}: a suite needs at least 1")
    chosen = [TASKS[name] for name in _known(tasks, TASKS, "task")]
    names = list(dict.fromkeys(_algorithm(name) for name in algorithms))
    plan: Plan = {}
    for seed in range(first_seed, first_seed + seeds):
        for task in chosen:
            for algorithm in names:
                config = _config(scale, task, algorithm, seed)
                plan[f"{task.name}/{run_name(config)}"] = PlannedRun(task.env_id, config)
    if len({name.lower() for name in plan}) < seeds * len(chosen) * len(names):
        raise ConfigError(f"two algorithms of {', '.join(names)} have the same name for a folder: rename one of them")
    return plan


def is_suite(folder: Path) -> bool:
    return (folder / "suite.json").exists()


def planned_runs(folder: Path, allow_import: Iterable[str] = ()) -> Plan:
    """The runs of a suite that was begun, by name. `allow_import`: as in `cdqn.load`."""
    require_no_links(folder)
    path = folder / "suite.json"
    _, runs = read_plan(path, "a suite")
    known = {task.env_id for task in TASKS.values()}
    plan = {}
    for name, settings in runs.items():
        env_id = settings.pop("env_id", None)
        if env_id not in known:
            raise CheckpointError(f"{path} is damaged: {name} is of no task of the suite")
        import_allowed(folder, settings, allow_import)
        plan[name] = PlannedRun(env_id, Config.from_json(settings, str(path)))
    return plan


def open_suite(folder: Path, scale: Scale, plan: Plan) -> None:
    """Make the folder and write down its runs, or check that they continue what is there."""
    _check_environments(plan)
    open_plan(folder / "suite.json", {"scale": scale}, plan)


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


def _algorithm(name: str) -> str:
    """One of ours, whatever its case, or module:Class, which is imported: the user has typed it."""
    if not is_code_name(name):
        return _known([name], ALGORITHMS, "algorithm")[0]
    import_pieces({"algorithm": name})
    find_algorithm(name)
    return name


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
