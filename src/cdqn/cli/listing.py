"""What there is: algorithms, presets, environments, runs."""

from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table

from cdqn.algorithms import ALGORITHMS
from cdqn.envs.atari import usual_name
from cdqn.errors import CheckpointError, MissingPackageError
from cdqn.integrations.optional import ale_roms
from cdqn.presets import PRESETS
from cdqn.report.terminal import cell
from cdqn.storage.checkpoint import newest_step
from cdqn.training.build import readable_bytes
from cdqn.training.run_config import read_run_config


def catalogue(runs: Path) -> Iterator[RenderableType]:
    """The parts of `cdqn list`."""
    algorithms = _table("algorithm", "flag", "")
    for name, algorithm in ALGORITHMS.items():
        algorithms.add_row(algorithm.label, f"--algorithm {name}", (algorithm.__doc__ or "").strip())
    yield Padding(algorithms, (0, 0, 1, 0))
    presets = _table("preset", "kind", "source: games")
    presets.columns[0].no_wrap = True  # a name cut in two cannot be copied
    for name, preset in PRESETS.items():
        games = f": {', '.join(preset.games)}" if preset.games else ""
        presets.add_row(name, preset.kind, preset.source + games)
    yield Padding(presets, (0, 0, 1, 0))
    yield "[bold]Atari games[/]"
    yield Padding(cell(atari_games()), (0, 0, 1, 2))
    yield "[bold]registered environments[/] (those with discrete actions and Box observations can be learned)"
    yield Padding(cell(", ".join(environment_ids())), (0, 0, 1, 2))
    table = _table("run", "environment", "algorithm", "seed", "steps")
    for run in sorted(runs.glob("*/config.json")) + sorted(runs.glob("*/*/config.json")):
        try:
            env_id, config = read_run_config(run.parent)
        except CheckpointError as error:
            table.add_row(cell(run.parent), cell(error, "red"), "", "", "")
            continue
        steps = f"{newest_step(run.parent):,} of {config.steps:,}"
        label = config.algorithm_class.label
        table.add_row(cell(run.parent), cell(env_id or "(object)"), label, str(config.seed), steps)
    yield table if table.row_count else cell(f"no runs in {runs}/")


def figures(console: Console) -> Iterator[RenderableType]:
    """The parts of `cdqn list figures`; what they take is measured, which takes a while itself."""
    from cdqn.experiments.reproduce import FIGURES
    from cdqn.experiments.request import SCALES

    table = _table("figure", "paper", "shows", *SCALES)
    with console.status("measuring how fast this machine is"):
        for name, figure in FIGURES.items():
            costs = [cell(_cost_text(name, scale)) for scale in SCALES]
            table.add_row(name, f"{figure.label}, {figure.section}", figure.title, *costs)
    yield table
    yield "[dim]hours of one core on this machine, estimated; memory of the largest run[/]"


def _cost_text(name: str, scale: str) -> str:
    """Runs, steps, hours and memory; or why it cannot be told."""
    from cdqn.experiments.reproduce import cost

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


def atari_games() -> str:
    """The names of the games, or how to get them."""
    try:
        roms = ale_roms()
    except MissingPackageError as error:
        return str(error)
    return ", ".join(sorted(usual_name(rom) for rom in roms))


def environment_ids() -> list[str]:
    """The newest version of every registered environment that needs no other framework; Atari is listed by itself."""
    newest: dict[str, tuple[int, str]] = {}
    for env_id, spec in gym.registry.items():
        foreign = spec.namespace in ("phys2d", "tabular", "GymV21Environment", "GymV26Environment")
        if not foreign and not str(spec.entry_point).startswith("ale_py"):
            name = f"{spec.namespace}/{spec.name}" if spec.namespace else spec.name
            newest[name] = max(newest.get(name, (-1, "")), (spec.version or 0, env_id))
    return sorted(env_id for _, env_id in newest.values() if not env_id.startswith("GymV"))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
