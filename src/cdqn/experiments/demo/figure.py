"""The demo's picture, its data as CSV, and its table."""

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from rich import box
from rich.table import Table

from cdqn.report import figures
from cdqn.report.palette import ALGORITHMS
from cdqn.report.tables import format_number

COLUMNS = ("algorithm", "setting", "seed", "step", "quantity", "value")


class DrawnSetting(Protocol):
    """What all runs share: of `cdqn.experiments.demo.runs.DemoSetting`, what is shown."""

    @property
    def env_id(self) -> str: ...
    @property
    def updates(self) -> int: ...
    @property
    def record_every(self) -> int: ...
    @property
    def evaluation_episodes(self) -> int: ...
    @property
    def bound(self) -> float: ...


class DrawnRun(Protocol):
    """As `cdqn.experiments.demo.runs.DemoRun`; its history has the arrays of `offline.History` beside it."""

    @property
    def algorithm(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def history(self) -> Any: ...


class DrawnResult(Protocol):
    """As `cdqn.experiments.demo.runs.DemoResult`: a figure never trains, and knows only its shape."""

    @property
    def setting(self) -> DrawnSetting: ...
    @property
    def runs(self) -> Sequence[DrawnRun]: ...
    def diverged(self, run: Any) -> bool: ...


class Spread(NamedTuple):
    """A number over seeds; one that is not finite counts as infinite, and cannot drop out."""

    median: float
    least: float
    most: float


class DemoRow(NamedTuple):
    """One algorithm over its seeds, at the end of training."""

    algorithm: str
    loss: Spread
    q: Spread
    greedy_return: Spread
    diverged_seeds: int
    seeds: int


def demo_table(result: DrawnResult) -> list[DemoRow]:
    """One row per algorithm, in house order."""
    rows = []
    for algorithm in ALGORITHMS:
        if runs := _of(result, algorithm):
            loss = _spread(runs, lambda run: run.history.loss_T[-1])
            q = _spread(runs, lambda run: run.history.q_T[-1])
            greedy_return = _spread(runs, lambda run: run.history.return_E[-1], missing=0.0)
            diverged = sum(result.diverged(run) for run in runs)
            rows.append(DemoRow(algorithm, loss, q, greedy_return, diverged, len(runs)))
    return rows


def render_demo(result: DrawnResult) -> Table:
    """The table for a terminal of 80 columns."""
    setting = result.setting
    table = Table(
        box=box.SIMPLE_HEAD,
        title=f"{setting.env_id} offline, after {setting.updates} updates on the same data",
        caption=f"median over seeds \\[least … most] · greedy return: {setting.evaluation_episodes} episodes\n"
        f"loss, max Q(s): mean of the last {setting.record_every} updates · diverged: Q > 1.5 × bound",
        caption_justify="left",
    )
    table.add_column("algorithm", no_wrap=True)
    q_heading = f"mean max Q\n(bound {format_bound(setting.bound)})"
    for heading in ("final loss", q_heading, "greedy return", "diverged\nseeds"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in demo_table(result):
        table.add_row(
            ALGORITHMS[row.algorithm].label,
            *(_format_spread(spread) for spread in (row.loss, row.q, row.greedy_return)),
            f"{row.diverged_seeds}/{row.seeds}",
        )
    return table


def write_demo(result: DrawnResult, folder: str | Path) -> list[Path]:
    """Write demo.png and demo.csv, the numbers behind it."""
    picture, numbers = Path(folder) / "demo.png", Path(folder) / "demo.csv"
    figures.divergence(
        demo_histories(result),
        picture,
        bound=result.setting.bound,
        title=_title(result),
        return_label="greedy return",
        q_label="mean max Q(s)",
    )
    with numbers.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(_csv_rows(result))
    return [picture, numbers]


def demo_histories(result: DrawnResult) -> dict[str, dict[str, Any]]:
    """The curves as `figures.draw_divergence` takes them."""
    histories = {}
    for algorithm in ALGORITHMS:
        if runs := [run.history for run in _of(result, algorithm)]:
            histories[algorithm] = {
                "return": (runs[0].evaluation_update_E, np.stack([run.return_E for run in runs])),
                "loss": (runs[0].update_T, np.stack([run.loss_T for run in runs])),
                "q": (runs[0].update_T, np.stack([run.q_T for run in runs])),
            }
    return histories


def _of(result: DrawnResult, algorithm: str) -> list[DrawnRun]:
    return [run for run in result.runs if run.algorithm == algorithm]


def _title(result: DrawnResult) -> str:
    counts = {row.algorithm: f"{row.diverged_seeds} of {row.seeds}" for row in demo_table(result)}
    said = ", ".join(f"{ALGORITHMS[algorithm].label} {count}" for algorithm, count in counts.items())
    return f"{result.setting.env_id} offline, the same data for all · seeds that diverge: {said}"


def _csv_rows(result: DrawnResult) -> Iterator[tuple[Any, ...]]:
    setting = result.setting.env_id
    for run in result.runs:
        history = run.history
        curves = {
            "loss": (history.update_T, history.loss_T),
            "q": (history.update_T, history.q_T),
            "dqn_share": (history.update_T, history.dqn_share_T),
            "greedy_return": (history.evaluation_update_E, history.return_E),
        }
        for quantity, (update_T, value_T) in curves.items():
            if quantity == "dqn_share" and run.algorithm != "cdqn":  # it is 1 or 0
                continue
            for update, value in zip(update_T, value_T, strict=True):
                yield run.algorithm, setting, run.seed, int(update), quantity, f"{value:.6g}"


def _spread(runs: list[DrawnRun], number: Callable[[DrawnRun], float], missing: float = np.inf) -> Spread:
    value_S = np.array([number(run) for run in runs])
    value_S = np.where(np.isnan(value_S), missing, value_S)
    return Spread(float(np.median(value_S)), float(value_S.min()), float(value_S.max()))


def _format_spread(spread: Spread) -> str:
    """On two lines, so that the table fits a terminal of 80 columns."""
    median, least, most = (_short(value) for value in spread)
    return f"{median}\n\\[{least} … {most}]"  # the backslash keeps rich from reading the bracket as markup


def _short(value: float) -> str:
    """Three digits, and two beyond 10 000, where only the order of magnitude matters."""
    if not np.isfinite(value):
        return format_number(value)
    if abs(value) < 1000:
        return f"{value:#.3g}".rstrip(".")
    if abs(value) < 10_000:
        return f"{value:.0f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def format_bound(bound: float) -> str:
    """1/(1−0.99) is 99.99999999999991 in floats."""
    return f"{bound:.6g}"
