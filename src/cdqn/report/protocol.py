"""The test protocol of App. B.4 in numbers: one run as a table, several runs as Table 1."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich import box
from rich.table import Table

from cdqn.errors import CheckpointError, ConfigError
from cdqn.report.palette import appearance
from cdqn.report.tables import format_number
from cdqn.report.terminal import cell as foreign


class Table1Cell(NamedTuple):
    """One algorithm on one environment."""

    env_id: str
    algorithm: str
    runs: int
    mean: float
    stderr: float | None
    """Standard error over runs; None for a single run."""


def table1(folders: Iterable[str | Path]) -> list[Table1Cell]:
    """Table 1: mean and standard error over runs of their test scores, from each folder's protocol.json."""
    scores: dict[tuple[str, str], dict[int, float]] = {}
    for folder in folders:
        path = Path(folder) / "protocol.json"
        try:
            content = json.loads(path.read_bytes())
            cell, seed, score = (content["env_id"], content["algorithm"]), content["seed"], content["test"]["mean"]
        except FileNotFoundError as error:
            raise CheckpointError(
                f"{path} does not exist: `cdqn evaluate {folder} --protocol paper` makes it"
            ) from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path} is damaged: {error!r}") from error
        if seed in scores.setdefault(cell, {}):
            raise ConfigError(f"{folder} is a second run of {' '.join(cell)} with seed {seed}: a seed counts once")
        scores[cell][seed] = score
    return [_cell(*cell, list(of_seed.values())) for cell, of_seed in scores.items()]


def render_protocol(content: Mapping[str, Any]) -> Table:
    """The result of one run for a terminal of 80 columns."""
    label = appearance(content["algorithm"]).label
    sticky = content["sticky_actions"]
    played = f"ε = {content['epsilon']:g}" + ("" if sticky is None else f", sticky actions {sticky:g}")
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        min_width=72,  # so that the caption has its lines
        title=foreign(f"{content['env_id']}, {label} after {content['steps']:,} of {content['budget_steps']:,} steps"),
        title_justify="left",
        caption=f"training: mean of the nearest {max(c['training_episodes'] for c in content['candidates'])} episodes"
        f"\nvalidation, test: mean ± standard error, {content['episodes']} episodes, {played}",
        caption_justify="left",
    )
    for heading in ("candidate\nstep", "training", "validation", "test"):
        table.add_column(heading, justify="right", no_wrap=True)
    for candidate in content["candidates"]:
        tested = candidate["step"] == content["winner_step"]
        table.add_row(
            f"{candidate['step']:,}",
            format_number(candidate["training_score"]),
            _mean_and_error(candidate["validation"]),
            _mean_and_error(content["test"]) if tested else "",
        )
    return table


def _mean_and_error(summary: Mapping[str, Any]) -> str:
    error = "" if summary["stderr"] is None else f" ± {format_number(summary['stderr'])}"
    return format_number(summary["mean"]) + error


def _cell(env_id: str, algorithm: str, scores: list[float]) -> Table1Cell:
    count = len(scores)
    stderr = float(np.std(scores, ddof=1) / np.sqrt(count)) if count > 1 else None
    return Table1Cell(env_id, algorithm, count, float(np.mean(scores)), stderr)
