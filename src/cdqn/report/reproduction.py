"""What the reproduction of a figure yields: its data, and the paper's sentences with a verdict on each."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from rich.table import Table


class Row(NamedTuple):
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
    rows: list[Row]
    claims: list[Claim]


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """The data as CSV, a column for each field."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Row._fields)
        writer.writerows((*row[:4], f"{row.value:.8g}", f"{row.stderr:.4g}") for row in rows)


def render_claims(reproduction: Reproduction) -> Table:
    """The claims as a table for the terminal."""
    table = Table(title=f"{reproduction.name}: {reproduction.about}", title_justify="left")
    for column in ("claim", "paper", "here", ""):
        table.add_column(column, overflow="fold")
    for claim in reproduction.claims:
        verdict = "reported" if claim.holds is None else "[green]holds[/]" if claim.holds else "[red]does not hold[/]"
        table.add_row(claim.text, claim.expected, claim.found, verdict)
    return table
