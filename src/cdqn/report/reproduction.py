"""What the reproduction of a figure yields: its data, and the paper's sentences with a verdict on each."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from cdqn.storage.files import write_json


class Point(NamedTuple):
    """One point of a curve: the mean over runs."""

    algorithm: str
    setting: str
    step: float
    quantity: str
    value: float
    stderr: float
    """Standard error of the mean over runs; NaN for a single run."""


class Claim(NamedTuple):
    """A sentence of the paper, or a number of the authors' curves, and what came out here."""

    text: str
    expected: str
    found: str
    holds: bool | None
    """None where nothing is claimed: the number is only reported."""


class Reproduction(NamedTuple):
    """A figure of the paper, done again."""

    name: str
    """As on the command line: fig1."""
    about: str
    """What was run: runs, seed, scale."""
    rows: list[Point]
    claims: list[Claim]
    published: Sequence[Point] = ()
    """The authors' own curves, where they are known, under the names of ours."""
    settings: Mapping[str, Any] = {}
    """With what it was run, where that says more than the scale."""


def write_rows(path: Path, rows: Iterable[Point]) -> None:
    """The data as CSV, a column for each field."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Point._fields)
        for row in rows:
            numbers = (f"{row.value:.8g}", f"{row.stderr:.4g}")
            writer.writerow((row.algorithm, row.setting, f"{row.step:.10g}", row.quantity, *numbers))


def write_claims(path: Path, reproduction: Reproduction) -> None:
    """The claims as CSV, a column for each field; the verdict is True, False, or empty where none is given."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Claim._fields)
        writer.writerows(reproduction.claims)


def write_about(path: Path, reproduction: Reproduction, **circumstances: Any) -> None:
    """What was run, as JSON, for the report, with the circumstances that the caller knows."""
    content = {"name": reproduction.name, "about": reproduction.about, "settings": dict(reproduction.settings)}
    write_json(path, content | circumstances)


def select(
    reproduction: Reproduction, algorithm: str, setting: str, quantity: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """One curve of the data: steps, means, standard errors; empty where there is none."""
    rows = [
        row for row in reproduction.rows if (row.algorithm, row.setting, row.quantity) == (algorithm, setting, quantity)
    ]
    step_T, value_T, stderr_T = np.array([(row.step, row.value, row.stderr) for row in rows]).reshape(-1, 3).T
    return step_T, value_T, stderr_T


def render_claims(reproduction: Reproduction) -> Table:
    """The claims as a table for the terminal."""
    table = Table(title=f"{reproduction.name}: {reproduction.about}", title_justify="left")
    for column in ("claim", "paper", "here", ""):
        table.add_column(column, overflow="fold")
    if any("±" in claim.found for claim in reproduction.claims):
        table.caption = "±: standard error"
    for claim in reproduction.claims:
        verdict = "reported" if claim.holds is None else "[green]holds[/]" if claim.holds else "[red]does not hold[/]"
        table.add_row(claim.text, claim.expected, claim.found, verdict)
    return table
