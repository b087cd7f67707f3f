"""The suite as a table and a picture: returns on the scale where random play is 0 and the reference 1."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Group
from rich.table import Table

from cdqn.report.axes import decorate, figure_of, save
from cdqn.report.figures import draw_curves
from cdqn.report.groups import Look
from cdqn.report.palette import appearance, in_order
from cdqn.report.runs import Run, read_run
from cdqn.report.statistics import (
    Estimate,
    align_curves,
    interquartile_mean,
    probability_of_improvement,
    stratified_interval,
)
from cdqn.report.tables import format_number
from cdqn.tasks.suite import TASKS, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LAST = 3
"""Evaluations whose mean is the final performance."""
SOLVED = 0.9
"""Share of the reference that counts as reached."""


class Score(NamedTuple):
    """One run of the suite."""

    task: str
    algorithm: str
    seed: int
    final: float
    """Mean return of the last three evaluations"""
    final_normalized: float
    area: float
    """Mean of all evaluations, normalised: the area under the curve"""
    reached: int | None
    """The step of the first evaluation at 90 % of the reference, or None"""
    diverged: bool


Results = Mapping[str, Mapping[str, Sequence[Score]]]
"""Task → algorithm → a score for each seed."""


def read_suite(folder: str | Path) -> list[Run]:
    """Every run in the folder that has been evaluated, by task, algorithm and seed."""
    folder = Path(folder)
    runs = [read_run(path.parent) for task in TASKS for path in sorted((folder / task).glob("*/config.json"))]
    names = list(TASKS)
    runs = [run for run in runs if run.evaluations()[0].size]
    order = in_order(run.algorithm for run in runs)
    return sorted(runs, key=lambda run: (names.index(task_of(run).name), order.index(run.algorithm), run.seed))


def task_of(run: Run) -> Task:
    """The task that a run of the suite is of."""
    return TASKS[run.path.parent.name]


def score_of(run: Run) -> Score:
    """What a run reached."""
    task = task_of(run)
    step_T, return_T = run.evaluations()
    normalized_T = np.array([task.normalized(value) for value in return_T])
    final = float(return_T[-LAST:].mean())
    reached = step_T[normalized_T >= SOLVED]
    return Score(
        task.name,
        run.algorithm,
        run.seed,
        final,
        float(normalized_T[-LAST:].mean()),
        float(normalized_T.mean()),
        int(reached[0]) if reached.size else None,
        run.diverged,
    )


def results_of(runs: Iterable[Run]) -> dict[str, dict[str, list[Score]]]:
    """Scores by task and algorithm."""
    results: dict[str, dict[str, list[Score]]] = {}
    for run in runs:
        score = score_of(run)
        results.setdefault(score.task, {}).setdefault(score.algorithm, []).append(score)
    return results


def algorithms_in(results: Results) -> list[str]:
    """In house order."""
    return in_order(name for task in results.values() for name in task)


QUANTITIES: dict[str, Callable[[Score], float]] = {
    "area under the curve": lambda score: score.area,
    "final performance": lambda score: score.final_normalized,
}


def aggregate(
    results: Results, algorithm: str, quantity: Callable[[Score], float], rng: np.random.Generator
) -> Estimate:
    """Interquartile mean over all runs, seeds resampled within each task; tasks count alike."""
    groups = [
        np.array([quantity(score) for score in task[algorithm]]) for task in results.values() if algorithm in task
    ]
    weight_N = _task_weights(groups)
    return stratified_interval([groups], lambda parts: interquartile_mean(parts[0], weight_N), rng)


def _task_weights(groups: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Of each run: its part of its task."""
    return np.concatenate([np.full(len(group), 1 / len(group)) for group in groups])


def difference(
    results: Results, algorithms: tuple[str, str], quantity: Callable[[Score], float], rng: np.random.Generator
) -> Estimate:
    """How far the first algorithm's interquartile mean is above the second's, over the tasks that both have."""
    shared = [task for task in results.values() if all(name in task for name in algorithms)]
    samples = [[np.array([quantity(score) for score in task[name]]) for task in shared] for name in algorithms]
    weights = [_task_weights(groups) for groups in samples]

    def statistic(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        one, other = (interquartile_mean(part, weight_N) for part, weight_N in zip(parts, weights, strict=True))
        return one - other

    return stratified_interval(samples, statistic, rng)


def render(results: Results, rng: np.random.Generator) -> Group:
    """The suite for a terminal of 80 columns: a table of tasks, and one of all tasks together."""
    tasks = _table(
        ("task", "algorithm", "runs", "area", "final", "90 % at step", "diverged"),
        "area: mean of all evaluations, 0 random play, 1 reference\n"
        "final: mean return of the last three evaluations · interquartile means over runs\n"
        "90 %: median step of the first evaluation at 90 % of the reference (runs that got there)",
    )
    for name, task in results.items():
        for place, algorithm in enumerate(in_order(task)):
            tasks.add_row("" if place else name, *_cells(algorithm, task[algorithm]))
        tasks.add_section()
    together = _table(
        ("all tasks", "runs", *QUANTITIES, "diverged"),
        "interquartile mean over all runs, 0 random play, 1 reference; [ ]: 95 % interval, seeds resampled\n"
        "within each task · each algorithm has its own default settings",
    )
    for algorithm in algorithms_in(results):
        scores = [score for task in results.values() for score in task.get(algorithm, ())]
        intervals = (_interval(aggregate(results, algorithm, quantity, rng)) for quantity in QUANTITIES.values())
        diverged = str(sum(score.diverged for score in scores))
        together.add_row(appearance(algorithm).label, str(len(scores)), *intervals, diverged)
    return Group(tasks, together)


def _table(headings: Sequence[str], caption: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, caption=caption, caption_justify="left")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place == 0 or heading == "algorithm" else "right", no_wrap=True)
    return table


def _cells(algorithm: str, scores: Sequence[Score]) -> tuple[str, ...]:
    area, final = (float(interquartile_mean([getattr(score, name) for score in scores])) for name in ("area", "final"))
    reached = [score.reached for score in scores if score.reached is not None]
    when = f"{int(np.median(reached)):,} ({len(reached)}/{len(scores)})" if reached else f"– (0/{len(scores)})"
    diverged = str(sum(score.diverged for score in scores))
    return appearance(algorithm).label, str(len(scores)), f"{area:.2f}", format_number(final), when, diverged


def _interval(estimate: Estimate) -> str:
    value, low, high = estimate
    return f"{value:.3f} \\[{low:.3f}, {high:.3f}]"


def verdict(results: Results, rng: np.random.Generator) -> list[str]:
    """How the first algorithm compares with each of the others, in plain sentences."""
    first, *others = algorithms_in(results)
    lines = []
    for other in others:
        for name, quantity in QUANTITIES.items():
            value, low, high = difference(results, (first, other), quantity, rng)
            labels = f"{appearance(first).label} − {appearance(other).label}"
            lines.append(f"{labels}, {name}: {value:+.3f} [{low:+.3f}, {high:+.3f}]")
            share = improvement(results, (first, other), quantity)
            lines.append(f"a run of {appearance(first).label} is above one of {appearance(other).label}: {share:.0%}")
    return lines


def improvement(results: Results, algorithms: tuple[str, str], quantity: Callable[[Score], float]) -> float:
    """The probability that a run of the first is above one of the second on the same task."""
    shared = [task for task in results.values() if all(name in task for name in algorithms)]
    ours, theirs = ([np.array([quantity(score) for score in task[name]]) for task in shared] for name in algorithms)
    return probability_of_improvement(ours, theirs)


def write_scores(path: str | Path, results: Results) -> None:
    """One line for each run."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Score._fields)
        writer.writerows(score for task in results.values() for group in task.values() for score in group)


def write_evaluations(path: str | Path, runs: Iterable[Run]) -> None:
    """Every evaluation of every run."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("task", "algorithm", "seed", "step", "quantity", "value"))
        for run in runs:
            for step, value in zip(*run.evaluations(), strict=True):
                writer.writerow((task_of(run).name, run.algorithm, run.seed, int(step), "evaluation_mean", value))


def suite_picture(runs: Sequence[Run], path: str | Path) -> None:
    """Write `draw_suite(runs)` as PNG or PDF."""
    save(draw_suite(runs), path)


def draw_suite(runs: Sequence[Run]) -> Figure:
    """A panel for each task, with the evaluations of each algorithm, and one for all tasks together."""
    from matplotlib.lines import Line2D

    rng = np.random.default_rng(0)
    results = results_of(runs)
    names, shown = list(results), algorithms_in(results)
    columns = min(4, len(names) + 1)
    rows = -(-(len(names) + 1) // columns)
    figure = figure_of(width=3.3 * columns, height=2.5 * rows + 0.6)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        task = TASKS[name]
        for algorithm in shown:
            group = [run for run in runs if task_of(run).name == name and run.algorithm == algorithm]
            if group:
                look = Look(appearance(algorithm, shown).colour)
                draw_curves(axes, *align_curves([run.evaluations() for run in group]), look)
        axes.axhline(task.reference, color="#999999", linewidth=1, linestyle=(0, (4, 3)))
        axes.set_title(name, fontsize=10.5, loc="left")
        low, high = axes.get_ylim()  # a policy can be worse than chance without end: walking off a cliff
        margin = 0.5 * (task.reference - task.floor)
        axes.set_ylim(max(low, task.floor - margin), min(high, task.reference + margin))
        decorate(axes)
    _draw_summary(panels[len(names)], results, rng)
    for axes in panels[len(names) + 1 :]:
        axes.set_visible(False)
    counts = {name: sorted({len(task[name]) for task in results.values() if name in task}) for name in shown}
    seeds = {name: "–".join(str(count) for count in sorted({c[0], c[-1]})) for name, c in counts.items()}
    handles = [Line2D([], [], color=appearance(name, shown).colour, linewidth=2.5) for name in shown]
    labels = [f"{appearance(name).label} ({seeds[name]} seeds)" for name in shown]
    figure.legend(handles, labels, loc="outside lower left", ncols=3, fontsize=10, frameon=False)
    note = "greedy return over steps   line: mean   band: 95 % (t)   dashed: reference   each with its own defaults"
    legend = figure.legend([], [], loc="outside lower right", title=note, title_fontsize=8, frameon=False)
    legend.get_title().set_color("#777777")
    return figure


def _draw_summary(axes: Axes, results: Results, rng: np.random.Generator) -> None:
    """Both aggregates of each algorithm, with their intervals."""
    algorithms = algorithms_in(results)
    for row, quantity in enumerate(QUANTITIES.values()):
        for place, algorithm in enumerate(algorithms):
            value, low, high = aggregate(results, algorithm, quantity, rng)
            y = row + 0.22 * (place - (len(algorithms) - 1) / 2)
            colour = appearance(algorithm, algorithms).colour
            axes.plot([low, high], [y, y], color=colour, linewidth=5, alpha=0.3, solid_capstyle="butt")
            axes.plot([value], [y], "o", color=colour, markersize=6)
    axes.set_yticks(range(len(QUANTITIES)), [name.replace(" ", "\n", 1) for name in QUANTITIES], fontsize=9.5)
    axes.set_ylim(len(QUANTITIES) - 0.5, -0.5)
    axes.set_title("all tasks, normalised (IQM)", fontsize=10.5, loc="left")
    axes.grid(color="#e6e6e6", linewidth=0.8, axis="x")
    axes.spines[["top", "right"]].set_visible(False)
