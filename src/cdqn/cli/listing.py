"""What there is: algorithms, presets, tasks, games, runs, figures."""

import difflib
from collections.abc import Callable, Iterator
from pathlib import Path

import gymnasium as gym
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table

from cdqn.errors import CheckpointError, ConfigError, MissingPackageError
from cdqn.report.terminal import cell

FAMILIES = {
    "classic control": "gymnasium.envs.classic_control",
    "toy text": "gymnasium.envs.toy_text",
    "Box2D": "gymnasium.envs.box2d",
}
"""Where the code of tasks is that one knows."""
CONTINUOUS = ("Pendulum", "MountainCarContinuous", "LunarLanderContinuous", "BipedalWalker", "BipedalWalkerHardcore")
"""Names in the families whose actions are no finite set."""
FOREIGN = ("phys2d", "tabular", "GymV21Environment", "GymV26Environment")
"""Namespaces of environments for other frameworks."""
NOTES = {"CarRacing-v3": """CarRacing-v3 (with --env-kwargs '{"continuous": false}')"""}
"""What to add to an id."""

Part = Callable[[Path, Console], Iterator[RenderableType]]


def listing(what: str, runs: Path, console: Console) -> Iterator[RenderableType]:
    """The parts of `cdqn list WHAT`."""
    if what not in LISTS:
        near = difflib.get_close_matches(what, LISTS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(LISTS)}"
        raise ConfigError(f"there is no list {what!r}: {hint}")
    return LISTS[what](runs, console)


def everything(runs: Path, console: Console) -> Iterator[RenderableType]:
    """The most useful of each kind, and where there is more."""
    yield from _algorithms()
    yield from presets(runs, console, general=True)
    table = _table("family", "tasks")
    for family, ids in tasks().items():
        table.add_row(family, cell(", ".join(NOTES.get(env_id, env_id) for env_id in ids)))
    table.add_row("Atari", "any game by its name, Pong or SpaceInvaders: cdqn list atari")
    table.add_row("others", "all that is registered: cdqn list environments")
    yield Padding(table, (0, 0, 1, 0))
    yield from _runs(runs, most=5)


def presets(runs: Path, console: Console, general: bool = False) -> Iterator[RenderableType]:
    """Presets with what they are for; those of the paper all in one line, if only the general ones are wanted."""
    from cdqn.presets import PRESETS

    table = _table("preset", "kind", "source" if general else "source: games")
    table.columns[0].no_wrap = True  # a name cut in two cannot be copied
    papers = [name for name in PRESETS if name.startswith("paper-")]
    for name, preset in PRESETS.items():
        games = f": {', '.join(preset.games)}" if preset.games else ""
        if not (general and name in papers):
            table.add_row(name, preset.kind, preset.source + games)
    if general:
        table.add_row("paper-…", "", f"the paper's own, {len(papers)} of them: cdqn list presets")
    yield Padding(table, (0, 0, 1, 0))


def environments(runs: Path, console: Console) -> Iterator[RenderableType]:
    """Every registered environment by the package it is from, less those known to have continuous actions."""
    yield "those with discrete actions can be learned; whatever else is registered is shown as well"
    table = _table("", "")
    packages: dict[str, list[str]] = {}
    for env_id in environment_ids():
        packages.setdefault(_package(env_id), []).append(env_id)
    packages["MinAtar"] = tasks()["MinAtar"]
    for package, ids in packages.items():
        table.add_row(package, cell(", ".join(ids)))
    yield table


def atari(runs: Path, console: Console) -> Iterator[RenderableType]:
    """The names of the games, or how to get them."""
    from cdqn.envs.atari import usual_name
    from cdqn.integrations.optional import ale_roms

    try:
        yield cell(", ".join(sorted(usual_name(rom) for rom in ale_roms())))
    except MissingPackageError as error:
        yield cell(error)


def all_runs(runs: Path, console: Console) -> Iterator[RenderableType]:
    """Every run in the folder."""
    yield from _runs(runs)


def figures(runs: Path, console: Console) -> Iterator[RenderableType]:
    """What `cdqn reproduce` can do; what it takes is measured, which takes a while itself."""
    from cdqn.experiments.reproduce import FIGURES
    from cdqn.experiments.request import SCALES

    table = _table("figure", "paper", "shows", *SCALES)
    with console.status("measuring how fast this machine is"):
        for name, figure in FIGURES.items():
            costs = [cell(_cost_text(name, scale)) for scale in SCALES]
            table.add_row(name, f"{figure.label}, {figure.section}", figure.title, *costs)
    yield table
    yield "[dim]hours of one core on this machine, estimated; memory of the largest run[/]"


LISTS: dict[str, Part] = {
    "all": everything,
    "presets": presets,
    "environments": environments,
    "atari": atari,
    "runs": all_runs,
    "figures": figures,
}


def tasks() -> dict[str, list[str]]:
    """Tasks that can be learned, by family."""
    from cdqn.tasks.suite import TASKS

    ids = environment_ids()
    own = [env_id for env_id in ids if env_id.startswith("cdqn/")]
    found = {
        family: [i for i in ids if i not in own and str(gym.registry[i].entry_point).startswith(home)]
        for family, home in FAMILIES.items()
    }
    minatar = [task.env_id for task in TASKS.values() if task.extra == "minatar"]
    return found | {"MinAtar": minatar, "cdqn's own": own}


def environment_ids() -> list[str]:
    """The newest version of what is registered and can be learned, less other frameworks' and Atari's."""
    from cdqn.envs import DATA_ENV  # which registers ours, too

    newest: dict[str, tuple[int, str]] = {}
    for env_id, spec in gym.registry.items():
        home = (
            spec.entry_point if isinstance(spec.entry_point, str) else str(getattr(spec.entry_point, "__module__", ""))
        )
        known = spec.namespace in FOREIGN or spec.name in (*CONTINUOUS, *FOREIGN) or home == "gymnasium.envs"
        known = known or env_id == DATA_ENV  # nobody can play it
        if not known and not home.startswith(("ale_py", "gymnasium.envs.mujoco", "minatar")):
            name = f"{spec.namespace}/{spec.name}" if spec.namespace else spec.name
            newest[name] = max(newest.get(name, (-1, "")), (spec.version or 0, env_id))
    return sorted(env_id for _, env_id in newest.values())


def _package(env_id: str) -> str:
    """Where an environment is from."""
    home = gym.registry[env_id].entry_point
    if env_id.startswith("cdqn/"):
        return "cdqn"
    return home.partition(":")[0].partition(".")[0] if isinstance(home, str) else getattr(home, "__module__", "others")


def _algorithms() -> Iterator[RenderableType]:
    from cdqn.algorithms import ALGORITHMS

    table = _table("algorithm", "flag", "")
    for name, algorithm in ALGORITHMS.items():
        table.add_row(algorithm.label, f"--algorithm {name}", (algorithm.__doc__ or "").strip())
    yield Padding(table, (0, 0, 1, 0))


def _runs(runs: Path, most: int | None = None) -> Iterator[RenderableType]:
    """The runs of a folder, the newest `most` of them."""
    found = sorted(runs.glob("*/config.json")) + sorted(runs.glob("*/*/config.json"))
    if not found:
        yield cell(f"no runs in {runs}/")
        return
    newest = sorted(found, key=lambda path: -path.lstat().st_mtime)[:most]
    table = _table("run", "environment", "algorithm", "seed", "steps")
    for path in (path for path in found if path in newest):
        table.add_row(cell(path.parent), *map(cell, _facts(path)))
    yield table
    if len(newest) < len(found):
        yield f"[dim]the newest {len(newest)} of {len(found)} runs (cdqn list runs: all)[/]"


def _facts(path: Path) -> list[str]:
    """Environment, algorithm, seed and steps of a run, as they stand in its config.json; or what is wrong with it."""
    from cdqn.algorithms import ALGORITHMS
    from cdqn.storage.checkpoint import newest_step
    from cdqn.storage.files import read_json, require_no_links

    try:
        require_no_links(path.parent)
        config = read_json(path, "a run folder")["config"]
        name, env_id, steps = config["algorithm"], config["env_id"], int(config["steps"])
        label = ALGORITHMS[name].label if name in ALGORITHMS else str(name)
        return [env_id or "(object)", label, str(config["seed"]), f"{newest_step(path.parent):,} of {steps:,}"]
    except CheckpointError as error:
        return [str(error)]
    except (LookupError, TypeError, ValueError):
        return [f"{path} is not the configuration of a cdqn run"]


def _cost_text(name: str, scale: str) -> str:
    """Runs, steps, hours and memory; or why it cannot be told."""
    from cdqn.experiments.reproduce import cost
    from cdqn.training.build import readable_bytes

    try:
        runs, steps, unit, hours, memory = cost(name, scale)
    except MissingPackageError as error:
        return str(error)
    took = f"{hours:,.1f} h" if hours >= 1 else f"{60 * hours:.0f} min" if hours >= 1 / 60 else "seconds"
    return f"{runs} runs, {_short(steps)} {unit}, {took}" + (f", {readable_bytes(memory)}" if memory else "")


def _short(count: int) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{letter}"
    return str(count)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=any(columns))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
