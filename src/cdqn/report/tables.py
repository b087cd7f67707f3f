"""Numbers to read and to keep: the comparison of algorithms as a table, and curves as CSV."""

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from rich import box
from rich.table import Table

from cdqn.report.palette import appearance
from cdqn.report.runs import Curve, Run, group_by_algorithm
from cdqn.report.statistics import Estimate, FloatArray, bootstrap_interval, interquartile_mean


class ComparisonRow(NamedTuple):
    """One algorithm over its seeds. None: no run has the quantity."""

    algorithm: str
    runs: int
    evaluated_runs: int
    evaluation: Estimate | None
    training_return: float | None
    loss: float | None
    q_over_bound: float | None
    diverged_runs: int


def comparison_table(runs: Iterable[Run], rng: np.random.Generator) -> list[ComparisonRow]:
    """One row per algorithm, in house order.

    Evaluation and training return: interquartile mean over runs of each run's last. Loss: median over runs of
    the last one. Q/bound: median over runs of the largest |Q|/bound. A loss or Q that became NaN counts as
    infinite, so that a diverged run cannot drop out of a median.
    """
    return [_row(algorithm, group, rng) for algorithm, group in group_by_algorithm(runs).items()]


def _row(algorithm: str, runs: Sequence[Run], rng: np.random.Generator) -> ComparisonRow:
    evaluation_N = _last_of_each(run.evaluations() for run in runs)
    return_N = _last_of_each(run.curve("return_mean") for run in runs)
    loss_N = _last_of_each(run.curve("loss") for run in runs)
    ratios = [run.q_over_bound()[1] for run in runs]
    largest_N = [float(np.abs(_nan_as_infinite(ratio_T)).max()) for ratio_T in ratios if ratio_T.size]
    return ComparisonRow(
        algorithm=algorithm,
        runs=len(runs),
        evaluated_runs=len(evaluation_N),
        evaluation=bootstrap_interval(evaluation_N, interquartile_mean, rng) if evaluation_N else None,
        training_return=float(interquartile_mean(return_N)) if return_N else None,
        loss=float(np.median(_nan_as_infinite(loss_N))) if loss_N else None,
        q_over_bound=float(np.median(largest_N)) if largest_N else None,
        diverged_runs=sum(run.diverged for run in runs),
    )


def render(rows: Iterable[ComparisonRow]) -> Table:
    """The comparison for a terminal of 80 columns."""
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        caption="evaluation, return: interquartile mean over runs · [ ]: 95 % bootstrap interval\n"
        "loss: last, median over runs · Q/bound: largest |Q|/bound of a run, median over runs",
        caption_justify="left",
    )
    table.add_column("algorithm", no_wrap=True)
    for heading in ("runs", "final evaluation", "training\nreturn", "loss", "Q/bound", "diverged\nruns"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            appearance(row.algorithm).label,
            str(row.runs),
            _format_evaluation(row),
            format_number(row.training_return),
            format_number(row.loss),
            format_number(row.q_over_bound),
            str(row.diverged_runs),
        )
    return table


def format_number(value: float | None) -> str:
    """Four digits, plain from 0.001 to 100 000 and with an exponent beyond; – for nothing, ∞ for infinity."""
    if value is None:
        return "–"
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 99_999.5:
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    digits_before_point = math.floor(math.log10(abs(value))) + 1
    return f"{value:.{max(0, 4 - digits_before_point)}f}"


def _format_evaluation(row: ComparisonRow) -> str:
    """The estimate with its interval; a single run, or one that was not evaluated, is never left unsaid."""
    if row.evaluation is None:
        return "–"
    value, low, high = map(format_number, row.evaluation)
    if row.evaluated_runs == 1:
        return f"{value} (n=1)"
    count = "" if row.evaluated_runs == row.runs else f" (n={row.evaluated_runs})"
    # The backslash keeps rich from reading the bracket as markup.
    return f"{value} \\[{low}, {high}]{count}"


def write_csv(path: str | Path, rows: Iterable[ComparisonRow]) -> None:
    """The comparison with full precision; an empty field is a quantity that no run has."""
    header = (
        "algorithm",
        "runs",
        "evaluated_runs",
        "evaluation_iqm",
        "evaluation_low",
        "evaluation_high",
        "training_return_iqm",
        "loss_median",
        "q_over_bound_median",
        "diverged_runs",
    )
    _write(path, header, (_flatten(row) for row in rows))


def write_curves_csv(path: str | Path, runs: Iterable[Run]) -> None:
    """Every curve of every run in long form, so that figures can be drawn without the run folders."""
    _write(path, ("algorithm", "setting", "seed", "step", "quantity", "value"), _curve_rows(runs))


def _curve_rows(runs: Iterable[Run]) -> Iterator[tuple[Any, ...]]:
    for run in runs:
        for quantity, (step_T, value_T) in _curves(run):
            for step, value in zip(step_T, value_T, strict=True):
                yield run.algorithm, run.env_id, run.seed, int(step), quantity, float(value)


def _curves(run: Run) -> Iterator[tuple[str, Curve]]:
    for quantity in run.quantities():
        yield quantity, run.curve(quantity)
    yield "episode_return", run.episodes()
    yield "evaluation_mean", run.evaluations()


def _flatten(row: ComparisonRow) -> tuple[Any, ...]:
    evaluation = row.evaluation or (None, None, None)
    return (*row[:3], *evaluation, *row[4:])


def _last_of_each(curves: Iterable[Curve]) -> list[float]:
    return [float(value_T[-1]) for _, value_T in curves if value_T.size]


def _nan_as_infinite(values: ArrayLike) -> FloatArray:
    value_N = np.asarray(values, dtype=np.float64)
    return np.where(np.isnan(value_N), np.inf, value_N)


def _write(path: str | Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
