"""Several algorithms, variants of settings and seeds, on one environment or several, in one folder.

    DIR/comparison.json     which runs it is made of
        cdqn-seed0/ …       the runs, each a run folder of its own
        CartPole-v1/cdqn-seed0/ …                   with a level for the environment where there are several
        cdqn-target_period_updates=5-seed0/ …       and with the settings that are varied

`cdqn.runs.run_pool.run_all` trains what `planned_runs` gives, and after a crash what is left of it.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cdqn.agent import Agent
from cdqn.config import Config
from cdqn.errors import CheckpointError
from cdqn.runs.folders import new_folder
from cdqn.runs.loading import require_import_allowed
from cdqn.runs.run_pool import Plan, PlannedRun
from cdqn.storage.files import read_json, require_no_links, write_json, writing
from cdqn.storage.named_code import import_allowed

LONGEST_VALUE = 40
"""Letters of a value in the name of a folder."""


def plan_comparison(configs: Mapping[str, Sequence[Config]], varied: Sequence[str] = ()) -> Plan:
    """The runs by name; `configs`: those of each environment, `varied`: the settings that are part of the names."""
    plan: Plan = {}
    taken: set[str] = set()
    levels: set[str] = set()
    for env_id, own in configs.items():
        level = f"{_free(_plain(env_id), levels)}/" if len(configs) > 1 else ""
        for config in own:
            plan[_free(level + run_name(config, varied), taken)] = PlannedRun(env_id, config)
    return plan


def create_comparison(
    folder: Path, plan: Plan, varied: Sequence[str] = (), presets: Mapping[str, str | None] | None = None
) -> None:
    """A new folder, and in it the list of runs; `presets`: of each environment."""
    tried: set[tuple[str, Config]] = set()
    for env_id, config in plan.values():  # what cannot work is said now, and not by every process
        kind = env_id, dataclasses.replace(config, seed=0)
        if kind not in tried:
            tried.add(kind)
            Agent.from_config(env_id, config, (presets or {}).get(env_id))
    runs = {name: {"env_id": run.env_id, **run.config.to_json()} for name, run in plan.items()}
    with new_folder(folder), writing(folder):
        write_json(folder / "comparison.json", {"varied": list(varied), "runs": runs})


def is_comparison(folder: Path) -> bool:
    return (folder / "comparison.json").exists()


def run_name(config: Config, varied: Sequence[str] = ()) -> str:
    """One folder, with the settings that were varied and act on the algorithm."""
    values = {name: getattr(config, name) for name in varied}
    parts = [f"{name}={_plain(_short(value))}" for name, value in values.items() if value is not None]
    return "-".join([_plain(config.algorithm), *parts, f"seed{config.seed}"])


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        return "x".join(map(_short, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _plain(text: str) -> str:
    """Letters that mean nothing in a path or a shell."""
    return re.sub(r"[^A-Za-z0-9_.+-]+", "-", text).strip("-.")[:LONGEST_VALUE] or "unnamed"


def _free(name: str, taken: set[str]) -> str:
    """The name, or with a number where another run has it: on some systems case makes no difference."""
    number, free = 1, name
    while free.lower() in taken:
        number += 1
        free = f"{name}-{number}"
    taken.add(free.lower())
    return free


def planned_runs(folder: Path, allow_import: Iterable[str] = ()) -> Plan:
    """The runs of a comparison, by name. `allow_import`: as in `cdqn.load`."""
    require_no_links(folder)
    path = folder / "comparison.json"
    content = read_json(path, "a comparison")
    plan = {}
    try:
        for name, settings in content["runs"].items():
            # Before there were several environments, the one stood for all runs.
            env_id = settings.get("env_id", content.get("env_id"))
            own = {key: value for key, value in settings.items() if key != "env_id"}
            if not isinstance(env_id, str):
                raise TypeError(f"{name} is of no environment")
            import_allowed(folder, own, allow_import)
            require_import_allowed(folder, env_id, allow_import)
            plan[name] = PlannedRun(env_id, Config.from_json(own, str(path)))
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged: {error!r}") from error
    return plan


def varied_settings(folder: Path) -> list[str]:
    """The settings by which the runs of a comparison are told apart, beside algorithm and seed."""
    path = folder / "comparison.json"
    varied = read_json(path, "a comparison").get("varied", [])
    known = Config.__dataclass_fields__
    if not isinstance(varied, list) or not all(isinstance(name, str) and name in known for name in varied):
        raise CheckpointError(f"{path} is damaged: it names settings that there are not, {str(varied)[:60]}")
    return varied
