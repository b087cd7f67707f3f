"""One run of a trial, in a worker: it ends early where others were better by then."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cdqn.agent import Agent
from cdqn.runs.run_pool import PlannedRun, train_or_resume
from cdqn.runs.stopping import Stop
from cdqn.runs.sweep.trials import is_beaten
from cdqn.storage.checkpoint import newest_step
from cdqn.training.events import Evaluated, Event, Row, Warned


class TrialTask(NamedTuple):
    """What a worker is given."""

    folder: Path
    name: str
    planned: PlannedRun
    limits: Sequence[float | None]


class TrialRunEnd(NamedTuple):
    """What a worker returns."""

    finished: bool
    pruned: bool
    evaluations: list[tuple[int, float]]


class Pruning:
    """A callback that ends a run whose value at an evaluation is below its limit."""

    def __init__(self, limits: Sequence[float | None], earlier: Mapping[int, float]) -> None:
        self._limits = limits
        self.means = dict(earlier)
        self.pruned = False

    def __call__(self, event: Event, agent: Agent) -> Event | None:
        if self.pruned:  # an evaluation that was caught up on comes before the training that it ends
            agent.stop()
            return None
        if not isinstance(event, Evaluated):
            return None
        self.means[event.step] = event.result.mean
        if not self.is_due():
            return None
        self.pruned = True
        agent.stop()
        limit = self._limits[len(self.means) - 1]
        text = f"pruned at step {event.step}: half of the complete trials had more than {limit:.5g} by then"
        return Warned(event.step, text, "pruned")

    def is_due(self) -> bool:
        return is_beaten([self.means[step] for step in sorted(self.means)], self._limits)


def train_trial_run(task: TrialTask, tell: Callable[[Row], None], stop: Stop) -> TrialRunEnd:
    """In a worker: train the run, or go on with it; what has been pruned stays so."""
    folder, name, planned, limits = task
    run = folder / name
    earlier = evaluations_of(run, newest_step(run)) if (run / "config.json").exists() else {}
    pruning = Pruning(limits, earlier)
    if pruning.is_due():
        return TrialRunEnd(False, True, sorted(earlier.items()))
    finished = train_or_resume(folder, name, planned, tell, stop, pruning)
    found = pruning.means if pruning.pruned else evaluations_of(run, newest_step(run))
    return TrialRunEnd(finished, pruning.pruned, sorted(found.items()))


def evaluations_of(run: Path, until: int) -> dict[int, float]:
    """Mean returns by step, as far as the run has come; lines that a kill has cut off are not there yet."""
    means: dict[int, float] = {}
    try:
        lines = (run / "metrics.jsonl").read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return means
    for line in lines:
        row = _row(line)
        if row.get("kind") == "evaluation" and row["step"] <= until:
            means[row["step"]] = row["mean"]
    return means


def _row(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}
