"""The trials of a sweep: what each was, what it reached, and when one is given up.

The value of a run is the mean over the last half of its evaluations: a single one, even the last, is mostly noise.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal, get_args

from cdqn.errors import CheckpointError
from cdqn.storage.files import read_json, write_json, writing

State = Literal["running", "complete", "pruned", "failed"]
JUDGES = 4
"""Complete trials that it takes to give up another one."""
FIRST_SHARE = 1 / 3
"""Of the evaluations, before which no trial is given up."""


@dataclass
class Trial:
    """A set of settings, and what came of it."""

    number: int
    settings: dict[str, Any]
    """The values that were proposed; none in trial 0, which has the defaults."""
    limits: list[float | None] = field(default_factory=list)
    """For each evaluation what a run must have reached by then, fixed when the trial begins: so a trial that is resumed
    is judged as it would have been."""
    state: State = "running"
    evaluations: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    """By seed, the steps and mean returns of each run that has ended."""
    problem: str | None = None

    @property
    def name(self) -> str:
        return f"trial-{self.number:03d}"

    def run_name(self, seed: int) -> str:
        return f"{self.name}/seed{seed}"

    @property
    def curve(self) -> list[float]:
        """The value of the first seed's run at each of its evaluations."""
        first = next(iter(self.evaluations.values()), [])
        return value_curve([mean for _, mean in first])

    @property
    def value(self) -> float | None:
        """The mean over its runs, where they are complete."""
        if self.state != "complete":
            return None
        return fmean(value_of([mean for _, mean in run]) for run in self.evaluations.values())

    @property
    def steps(self) -> int:
        """Of all runs that have ended."""
        return sum(run[-1][0] for run in self.evaluations.values() if run)


def value_of(means: Sequence[float]) -> float:
    """The mean over the last half."""
    return fmean(means[len(means) // 2 :])


def value_curve(means: Sequence[float]) -> list[float]:
    """`value_of` after each evaluation."""
    return [value_of(means[: i + 1]) for i in range(len(means))]


def limits_from(trials: Iterable[Trial]) -> list[float | None]:
    """The median of the complete trials at each evaluation but the first third and the last; empty: none yet."""
    curves = [trial.curve for trial in trials if trial.state == "complete"]
    if len(curves) < JUDGES:
        return []
    count = min(len(curve) for curve in curves)
    first = math.ceil(FIRST_SHARE * count)
    return [median(curve[i] for curve in curves) if i >= first else None for i in range(count - 1)]


def is_beaten(means: Sequence[float], limits: Sequence[float | None]) -> bool:
    """Whether a run with these evaluations so far is below its limit."""
    limit = limits[len(means) - 1] if 0 < len(means) <= len(limits) else None
    return limit is not None and value_of(means) < limit


def best_of(trials: Iterable[Trial]) -> Trial | None:
    """The complete trial of the largest value; of equals the first."""
    values = [(trial.value, -trial.number, trial) for trial in trials]
    found = [entry for entry in values if entry[0] is not None]
    return max(found)[2] if found else None


def write_trials(folder: Path, trials: Iterable[Trial]) -> None:
    """DIR/trials.json, whole or not at all."""
    with writing(folder):
        write_json(folder / "trials.json", [asdict(trial) for trial in trials])


def read_trials(folder: Path) -> list[Trial]:
    """The trials so far; their settings have not been checked."""
    path = folder / "trials.json"
    if not path.exists():
        return []
    content = read_json(path, "a sweep")
    try:
        return [_read(number, entry) for number, entry in enumerate(content)]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged: {error!r}") from error


def _read(number: int, entry: Mapping[str, Any]) -> Trial:
    problem = entry["problem"]
    if entry["number"] != number or entry["state"] not in get_args(State) or not isinstance(problem, str | None):
        raise ValueError(f"entry {number} is no trial")
    evaluations = {
        int(seed): [(int(step), float(mean)) for step, mean in run] for seed, run in entry["evaluations"].items()
    }
    if entry["state"] == "complete" and not (evaluations and all(evaluations.values())):
        raise ValueError(f"trial {number} is complete, and has no evaluations")
    limits = [None if limit is None else float(limit) for limit in entry["limits"]]
    return Trial(number, dict(entry["settings"]), limits, entry["state"], evaluations, problem)
