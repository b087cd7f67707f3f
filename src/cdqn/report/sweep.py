"""A sweep as a table, a CSV and a picture: what each trial reached, over time and over each setting."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich import box
from rich.table import Table

from cdqn.report.axes import DASHED, GREY, INK, decorate_plainly, figure_of, save
from cdqn.report.tables import format_number
from cdqn.report.terminal import cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 10
"""Rows of the table: the best."""
COLUMNS = 3
DEFAULTS = 0
"""The number of the trial with the default settings."""
COLOUR, BEST_COLOUR = "#0072B2", "#D55E00"


class TrialResult(NamedTuple):
    """One trial."""

    number: int
    state: str
    """complete, pruned, failed or running"""
    value: float | None
    """What it reached, where it is complete"""
    reached: float | None
    """Its value at its last evaluation, complete or not"""
    steps: int
    settings: Mapping[str, Any]
    """Those that are searched"""


class Setting(NamedTuple):
    """The axis of a setting."""

    name: str
    choices: Sequence[Any] | None
    """In this order; None: a range of numbers"""
    log: bool = False


def best_result(results: Sequence[TrialResult]) -> TrialResult | None:
    """The complete trial of the largest value; of equals the first."""
    complete = [result for result in results if result.value is not None]
    return max(complete, key=lambda result: (result.value, -result.number), default=None)


def render(results: Sequence[TrialResult], settings: Sequence[Setting]) -> Table:
    """The best trials, and the defaults wherever they are."""
    ranked = sorted((r for r in results if r.value is not None), key=lambda r: (-(r.value or 0.0), r.number))
    shown = ranked[:SHOWN] + [result for result in ranked[SHOWN:] if result.number == DEFAULTS]
    counts = [(state, sum(r.state == state for r in results)) for state in ("complete", "pruned", "failed", "running")]
    caption = "trials: " + " · ".join(f"{count} {state}" for state, count in counts if count)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, caption=caption, caption_justify="left")
    for heading in ("trial", "return", *(setting.name.replace("_", "\n") for setting in settings)):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in shown:
        number = f"{result.number} (defaults)" if result.number == DEFAULTS else str(result.number)
        values = (cell(setting_text(result.settings[setting.name])) for setting in settings)
        table.add_row(number, format_number(result.value), *values, style="bold" if result is shown[0] else "")
    return table


def setting_text(value: Any) -> str:
    """A value as one reads it."""
    if isinstance(value, tuple | list):
        return " ".join(str(part) for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def write_csv(path: str | Path, results: Sequence[TrialResult], settings: Sequence[Setting]) -> None:
    """One row per trial with full precision; an empty value is one that was not reached."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["trial", "state", "value", "reached", "steps", *(setting.name for setting in settings)])
        for result in results:
            values = [result.settings[setting.name] for setting in settings]
            texts = [setting_text(value) if isinstance(value, tuple) else value for value in values]
            writer.writerow([result.number, result.state, result.value, result.reached, result.steps, *texts])


def sweep_picture(results: Sequence[TrialResult], settings: Sequence[Setting], title: str, path: str | Path) -> None:
    """Write `draw_sweep` as PNG or PDF, by the suffix of `path`."""
    save(draw_sweep(results, settings, title), path)


def draw_sweep(results: Sequence[TrialResult], settings: Sequence[Setting], title: str) -> Figure:
    """On top the trials in their order with the best so far, below a panel for each setting."""
    rows = -(-len(settings) // COLUMNS)
    figure = figure_of(width=9.0, height=3.2 + 2.4 * rows)
    grid = figure.add_gridspec(1 + rows, COLUMNS, height_ratios=[1.25] + [1.0] * rows)
    figure.suptitle(title, fontsize=13, color=INK)
    order = figure.add_subplot(grid[0, :])
    _draw_order(order, results)
    for place, setting in enumerate(settings):
        axes = figure.add_subplot(grid[1 + place // COLUMNS, place % COLUMNS])
        _draw_setting(axes, results, setting)
        if place % COLUMNS == 0:
            axes.set_ylabel("return", fontsize=11, color=INK)
        axes.set_ylim(order.get_ylim())
    return figure


def _draw_order(axes: Axes, results: Sequence[TrialResult]) -> None:
    from matplotlib.ticker import MaxNLocator

    _scatter(axes, results, [result.number for result in results])
    numbers, bests, so_far = [], [], None
    for result in results:
        if result.value is not None:
            so_far = result.value if so_far is None else max(so_far, result.value)
        if so_far is not None:
            numbers.append(result.number)
            bests.append(so_far)
    axes.step(numbers, bests, where="post", color=BEST_COLOUR, linewidth=1.4, zorder=1.8, label="best so far")
    defaults = next((r.value for r in results if r.number == DEFAULTS and r.value is not None), None)
    if defaults is not None:
        axes.axhline(defaults, label="defaults (trial 0)", **DASHED)
    decorate_plainly(axes)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("trial", fontsize=11, color=INK)
    axes.set_ylabel("return", fontsize=11, color=INK)
    axes.legend(loc="upper left", bbox_to_anchor=(0, 1.14), ncols=4, fontsize=9, frameon=False, borderaxespad=0)


def _draw_setting(axes: Axes, results: Sequence[TrialResult], setting: Setting) -> None:
    from matplotlib.ticker import MaxNLocator

    values = [result.settings[setting.name] for result in results]
    decorate_plainly(axes)
    if setting.choices is None:
        if setting.log:
            axes.set_xscale("log")
        elif all(isinstance(value, int) for value in values):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _scatter(axes, results, values)
    else:
        others = [value for value in dict.fromkeys(values) if value not in setting.choices]
        ticks = sorted([*setting.choices, *others]) if _are_numbers(setting.choices) else [*setting.choices, *others]
        _scatter(axes, results, [ticks.index(value) for value in values])
        axes.set_xticks(range(len(ticks)), [setting_text(value) for value in ticks])
        axes.set_xlim(-0.5, len(ticks) - 0.5)
        if sum(len(setting_text(value)) for value in ticks) > 24:
            axes.tick_params(axis="x", rotation=25)
    defaults = next((r.value for r in results if r.number == DEFAULTS and r.value is not None), None)
    if defaults is not None:
        axes.axhline(defaults, **DASHED)
    axes.set_xlabel(setting.name, fontsize=10.5, color=INK)


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(type(value) in (int, float) for value in values)


def _scatter(axes: Axes, results: Sequence[TrialResult], places: Sequence[float]) -> None:
    """Complete trials as dots, pruned ones as crosses at what they had reached; the best and the defaults stand out."""
    best = best_result(results)
    found = [(x, r) for x, r in zip(places, results, strict=True)]
    complete = [(x, r.value) for x, r in found if r.value is not None]
    pruned = [(x, r.reached) for x, r in found if r.state == "pruned" and r.reached is not None]
    if complete:
        axes.plot(*zip(*complete, strict=True), "o", color=COLOUR, markersize=5, alpha=0.8, mew=0, label="complete")
    if pruned:
        axes.plot(*zip(*pruned, strict=True), "x", color=GREY, markersize=5, label="pruned, return by then")
    for x, result in found:
        if result.value is None:
            continue
        if result is best:
            axes.plot(x, result.value, "o", color=BEST_COLOUR, markersize=8, zorder=4)
        elif result.number == DEFAULTS:
            axes.plot(x, result.value, "D", markersize=6, markerfacecolor="white", markeredgecolor=INK, zorder=4)
