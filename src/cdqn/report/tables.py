"""Numbers to read and to keep: the tables of a comparison, and curves as CSV."""

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from cdqn.report.comparison import ComparisonRow, DifferenceRow, SummaryRow
from cdqn.report.groups import Group
from cdqn.report.runs import Curve, Run
from cdqn.report.statistics import FEWEST, Estimate
from cdqn.report.terminal import cell, harmless

_INTERVAL = "[ ]: 95 % interval, Student's t"


def render(rows: Sequence[ComparisonRow], title: str = "") -> Table:
    """What each group reached, for a terminal of 80 columns."""
    caption = [
        "final evaluation: greedy return at the end of a run",
        *_how([row.finals for row in rows]),
        "return: last in training, mean over runs · loss: last, geometric mean",
        "Q/bound: the largest of any run",
    ]
    headings = ("runs", "final evaluation", "training\nreturn", "loss", "Q/bound", "diverged\nruns")
    table = _table(title, caption, "", headings)
    for row in rows:
        missing = "" if len(row.finals) == row.runs or not row.finals else f" (n={len(row.finals)})"
        table.add_row(
            cell(row.label),
            str(row.runs),
            cell(_format_values(row.finals, row.final) + missing),
            format_number(row.training_return),
            format_number(row.loss),
            format_number(row.q_over_bound),
            str(row.diverged_runs),
        )
    return table


def render_differences(rows: Sequence[DifferenceRow], first: str) -> Table:
    """How far each group is above the first one."""
    caption = [
        "difference: of final evaluations with the same seed",
        *_how([row.differences for row in rows]),
        "above: how often a run of it is above a run of the first row, a tie counting one half",
    ]
    table = _table("", caption, f"less {harmless(first)}", ("seeds", "difference", "above"))
    for row in rows:
        values = _format_values(row.differences, row.mean, signed=True)
        table.add_row(cell(row.label), str(len(row.differences)), cell(values), _share(row.improvement))
    return table


def render_summary(rows: Sequence[SummaryRow]) -> Table:
    """All environments together."""
    scaled = rows[0].normalized is not None
    caption = [
        "better, worse: environments where the interval of the difference excludes 0",
        "above: how often a run of it is above one of the first row on the same environment",
    ]
    if scaled:
        caption.append("normalised: mean over environments; 0 is random play, 1 the suite's reference")
        caption += [_INTERVAL] * any(row.normalized is not None and _is_claimed(row.normalized) for row in rows)
    headings = ("environments", *(["normalised"] if scaled else []), "better", "worse", "above", "diverged\nruns")
    table = _table("", caption, "all environments", headings)
    for row in rows:
        normalized = [cell(_format_estimate(row.normalized))] if scaled else []
        counts = ("–" if count is None else str(count) for count in (row.above, row.below))
        share = _share(row.improvement)
        table.add_row(cell(row.label), str(row.tasks), *normalized, *counts, share, str(row.diverged_runs))
    return table


def _table(title: str, caption: Iterable[str], first: str, headings: Iterable[str]) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        title=cell(title, "bold") if title else None,
        title_justify="left",
        caption=Text("\n".join(caption)),
        caption_justify="left",
    )
    table.add_column(cell(first), overflow="fold", min_width=8)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _how(values: Iterable[Sequence[float]]) -> list[str]:
    """What stands in a column of means: intervals, or the values one by one where they are too few for them."""
    enough = {len(value) >= FEWEST for value in values if value}
    claimed = [f"mean over runs, {_INTERVAL}"] if True in enough else []
    return claimed + (
        [f"below {FEWEST} runs: each run by itself, and no interval is claimed"] if False in enough else []
    )


def _format_values(values: Sequence[float], mean: Estimate | None, signed: bool = False) -> str:
    """The mean with its interval, or few values as they are; a dash for none."""
    if len(values) < FEWEST:
        return ", ".join(_signed(value, signed) for value in values) or "–"
    return _format_estimate(mean, signed)


def _format_estimate(estimate: Estimate | None, signed: bool = False) -> str:
    if estimate is None:
        return "–"
    value, low, high = (_signed(number, signed) for number in estimate)
    return f"{value} [{low}, {high}]" if _is_claimed(estimate) else value


def _is_claimed(estimate: Estimate) -> bool:
    return not (math.isnan(estimate.low) or math.isnan(estimate.high))


def _signed(value: float, signed: bool) -> str:
    return ("+" if signed and value > 0 else "") + format_number(value)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


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


def write_csv(path: str | Path, rows: Iterable[ComparisonRow]) -> None:
    """The comparison with full precision; an empty field is a quantity that no run has, or an interval not claimed."""
    header = (
        "row",
        "algorithm",
        "runs",
        "evaluated_runs",
        "evaluation_mean",
        "evaluation_low",
        "evaluation_high",
        "training_return_mean",
        "loss_geometric_mean",
        "q_over_bound_largest",
        "diverged_runs",
    )
    _write(path, header, ((*row[:3], len(row.finals), *_fields(row.final), *row[4:]) for row in rows))


def write_differences_csv(path: str | Path, rows: Iterable[DifferenceRow], first: str) -> None:
    """The differences from the first group with full precision."""
    header = ("row", "less", "seeds", "difference_mean", "difference_low", "difference_high", "probability_above")
    _write(path, header, ((r.label, first, len(r.differences), *_fields(r.mean), r.improvement) for r in rows))


def write_summary_csv(path: str | Path, rows: Iterable[SummaryRow]) -> None:
    """All environments together with full precision."""
    header = (
        "row",
        "environments",
        "runs",
        "normalized_mean",
        "normalized_low",
        "normalized_high",
        "better",
        "worse",
        "probability_above",
        "diverged_runs",
    )
    _write(path, header, ((*row[:3], *_fields(row.normalized), *row[4:]) for row in rows))


def _fields(estimate: Estimate | None) -> tuple[float | None, ...]:
    """Three fields of a table, empty where nothing is claimed."""
    if estimate is None:
        return (None, None, None)
    return estimate if _is_claimed(estimate) else (estimate.value, None, None)


def write_curves_csv(path: str | Path, groups: Iterable[Group]) -> None:
    """Every curve of every run in long form, so that figures can be drawn without the run folders."""
    _write(path, ("algorithm", "setting", "seed", "step", "quantity", "value"), _curve_rows(groups))


def _curve_rows(groups: Iterable[Group]) -> Iterator[tuple[Any, ...]]:
    for group in groups:
        for run in group.runs:
            setting = ", ".join([run.env_id, *group.variant_labels])
            for quantity, (step_T, value_T) in _curves(run):
                for step, value in zip(step_T, value_T, strict=True):
                    yield run.algorithm, setting, run.seed, int(step), quantity, float(value)


def _curves(run: Run) -> Iterator[tuple[str, Curve]]:
    for quantity in run.quantities():
        yield quantity, run.curve(quantity)
    yield "episode_return", run.episodes()
    yield "evaluation_mean", run.evaluations()


def _write(path: str | Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
