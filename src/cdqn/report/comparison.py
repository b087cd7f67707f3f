"""A comparison in numbers: what each group of runs reached, how far it is from the first, and all tasks together.

The statistic is the mean over runs, in tables as in pictures, and intervals are Student's (docs/comparing.md).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cdqn.report.groups import Group
from cdqn.report.runs import Curve, Run
from cdqn.report.statistics import (
    Estimate,
    FloatArray,
    mean_interval,
    mean_over_tasks,
    probability_of_improvement,
)
from cdqn.tasks.suite import TASKS


class ComparisonRow(NamedTuple):
    """One group over its seeds. None: no run has the quantity."""

    label: str
    algorithm: str
    runs: int
    finals: tuple[float, ...]
    """The return of the final greedy evaluation, of each run that has come to it"""
    training_return: float | None
    loss: float | None
    q_over_bound: float | None
    diverged_runs: int

    @property
    def final(self) -> Estimate | None:
        """Their mean and its interval."""
        return mean_interval(self.finals) if self.finals else None


class DifferenceRow(NamedTuple):
    """How far a group is above the first one, seed by seed."""

    label: str
    differences: tuple[float, ...]
    """Final returns: its own less the first group's with the same seed"""
    improvement: float | None
    """The share of pairs, any of its runs with any of the first group's, in which its own is higher"""

    @property
    def mean(self) -> Estimate | None:
        """Their mean and its interval."""
        return mean_interval(self.differences) if self.differences else None


class SummaryRow(NamedTuple):
    """A group over several tasks."""

    label: str
    tasks: int
    runs: int
    normalized: Estimate | None
    """Mean over tasks of the mean return, 0 random play, 1 reference; None where a task has no such scale"""
    above: int | None
    """Tasks where the interval of the difference from the first group is above 0; None where none is claimed"""
    below: int | None
    improvement: float | None
    """As in `DifferenceRow`, mean over tasks"""
    diverged_runs: int


def comparison_table(groups: Iterable[Group]) -> list[ComparisonRow]:
    """One row per group.

    Training return: mean over runs of the last one. Loss: geometric mean of the last one, as in the picture. Q/bound:
    the largest of any run. A loss or Q that became NaN counts as infinite, so that no diverged run can drop out.
    """
    return [_row(group) for group in groups]


def _row(group: Group) -> ComparisonRow:
    runs = group.runs
    return_N = _last_of_each(run.curve("return_mean") for run in runs)
    loss_N = _last_of_each(run.curve("loss") for run in runs)
    ratios = [run.q_over_bound()[1] for run in runs]
    largest_N = [float(np.abs(_nan_as_infinite(ratio_T)).max()) for ratio_T in ratios if ratio_T.size]
    return ComparisonRow(
        label=group.label,
        algorithm=group.algorithm,
        runs=len(runs),
        finals=tuple(finals_of(runs).values()),
        training_return=float(np.mean(return_N)) if return_N else None,
        loss=_geometric_mean(_nan_as_infinite(loss_N)) if loss_N else None,
        q_over_bound=max(largest_N, default=None),
        diverged_runs=sum(run.diverged for run in runs),
    )


def finals_of(runs: Iterable[Run]) -> dict[int, float]:
    """The final return of each run that has come to its end, by seed."""
    return {run.seed: run.final_return for run in runs if run.final_return is not None}


def difference_table(groups: Sequence[Group]) -> list[DifferenceRow]:
    """One row for each group but the first, which it is measured against."""
    first = finals_of(groups[0].runs)
    rows = []
    for group in groups[1:]:
        own = finals_of(group.runs)
        paired = tuple(own[seed] - first[seed] for seed in own if seed in first)
        share = probability_of_improvement([_array(own)], [_array(first)]) if own and first else None
        rows.append(DifferenceRow(group.label, paired, share))
    return rows


def summary_table(tasks: Mapping[str, Sequence[Group]]) -> list[SummaryRow]:
    """One row for each group that every task has; `tasks`: the groups of each environment, by its id."""
    by_label = {env_id: {group.label: group for group in groups} for env_id, groups in tasks.items()}
    first, *others = by_label.values()
    labels = [label for label in first if all(label in other for other in others)]
    compared = [
        {row.label: row for row in difference_table([found[label] for label in labels])}
        for found in by_label.values()
        if labels
    ]
    rows = []
    for label in labels:
        groups = {env_id: found[label] for env_id, found in by_label.items()}
        differences = [found[label] for found in compared if label in found]
        shares = [row.improvement for row in differences if row.improvement is not None]
        claimed = [row.mean for row in differences if row.mean is not None and not math.isnan(row.mean.low)]
        rows.append(
            SummaryRow(
                label=label,
                tasks=len(groups),
                runs=sum(len(group.runs) for group in groups.values()),
                normalized=_normalized(groups),
                above=sum(mean.low > 0 for mean in claimed) if claimed else None,
                below=sum(mean.high < 0 for mean in claimed) if claimed else None,
                improvement=float(np.mean(shares)) if shares else None,
                diverged_runs=sum(run.diverged for group in groups.values() for run in group.runs),
            )
        )
    return rows


def _normalized(groups: Mapping[str, Group]) -> Estimate | None:
    """On the scale of the suite's tasks, where all environments are of them and have runs at their end."""
    scales = {task.env_id: task for task in TASKS.values()}
    finals = {env_id: _array(finals_of(group.runs)) for env_id, group in groups.items()}
    if not all(env_id in scales and final_N.size for env_id, final_N in finals.items()):
        return None
    return mean_over_tasks(
        [np.array([scales[env_id].normalized(value) for value in final_N]) for env_id, final_N in finals.items()]
    )


def _array(finals: Mapping[int, float]) -> FloatArray:
    return np.array(list(finals.values()), dtype=np.float64)


def _geometric_mean(value_N: FloatArray) -> float:
    if np.isinf(value_N).any():
        return math.inf
    with np.errstate(divide="ignore"):  # a loss of exactly 0 makes it 0
        return float(np.exp(np.log(np.maximum(value_N, 0.0)).mean()))


def _last_of_each(curves: Iterable[Curve]) -> list[float]:
    return [float(value_T[-1]) for _, value_T in curves if value_T.size]


def _nan_as_infinite(values: ArrayLike) -> FloatArray:
    value_N = np.asarray(values, dtype=np.float64)
    return np.where(np.isnan(value_N), np.inf, value_N)
