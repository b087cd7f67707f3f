"""What the runs of a figure have shown: for each of its curves a few numbers, one for each run."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cdqn.experiments.games.plans import Line
from cdqn.report.reproduction import Point
from cdqn.report.runs import Curve, Run
from cdqn.report.statistics import align_curves, mean_of

FloatArray = NDArray[np.float64]
LAST_PART, FIRST_PART = 0.1, 1 / 3
"""Final numbers are of the last tenth of a run; a loss has grown if it has since the first third of the learning."""
POINTS = 80
"""Of each curve that is kept as data."""
QUANTITIES: dict[str, Callable[[Run], Curve]] = {
    "return": lambda run: run.curve("return_mean"),
    "loss": lambda run: run.curve("loss"),
    "q_over_bound": lambda run: run.q_over_bound(),
}


class Result(NamedTuple):
    """One curve, and its runs by seed."""

    line: Line
    runs: Mapping[int, Run]

    @property
    def setting(self) -> str:
        """In the data: the game, and what distinguishes the curve."""
        return f"{self.line.game}, {self.line.variant}" if self.line.variant else self.line.game

    def returns(self) -> FloatArray:
        """Of each run: its training return in the end."""
        return np.array([_mean_of_part(run.curve("return_mean"), 1 - LAST_PART, 1.0) for run in self.runs.values()])

    def gains(self) -> FloatArray:
        """Of each run: by how much its return has risen since the warm-up."""
        starts = [_mean_of_part(run.curve("return_mean"), 0.0, LAST_PART) for run in self.runs.values()]
        gain_S: FloatArray = self.returns() - np.array(starts)
        return gain_S

    def losses(self) -> FloatArray:
        """Of each run: its loss in the end, as a geometric mean: losses that diverge differ by powers of ten."""
        return np.exp([_mean_of_part(_log(run.curve("loss")), 1 - LAST_PART, 1.0) for run in self.runs.values()])

    def growths(self) -> FloatArray:
        """Of each run: its loss in the end, as a multiple of that in the first third of the learning."""
        early = np.exp([_mean_of_part(_log(run.curve("loss")), 0.0, FIRST_PART) for run in self.runs.values()])
        return self.losses() / early

    def fluctuations(self) -> FloatArray:
        """Of each run: the standard deviation of its return over the last third."""
        return np.array([_spread_of_part(run.curve("return_mean"), 2 / 3) for run in self.runs.values()])

    def diverged(self) -> int:
        """How many runs have said themselves that they diverge."""
        return sum(run.diverged for run in self.runs.values())


Results = Sequence[Result]


def find(results: Results, algorithm: str, game: str | None = None, variant: str | None = None) -> Result:
    """The one curve of this description."""
    found = [
        result
        for result in results
        if result.line.algorithm == algorithm
        and game in (None, result.line.game)
        and variant in (None, result.line.variant)
    ]
    (result,) = found
    return result


def games_of(results: Results) -> list[str]:
    """In the order of the figure."""
    return list(dict.fromkeys(result.line.game for result in results))


def rows(results: Results) -> list[Point]:
    """Every curve of the figure, as the mean over its runs."""
    points = []
    for result in results:
        for quantity, curve_of in QUANTITIES.items():
            curves = [curve for run in result.runs.values() if (curve := curve_of(run))[0].size]
            step_P, value_SP = align_curves(curves, POINTS)
            for step, value_S in zip(step_P, value_SP.T, strict=True):
                if np.isfinite(value_S).all():
                    points.append(Point(result.line.algorithm, result.setting, step, quantity, *mean_of(value_S)))
    return points


def _log(curve: Curve) -> Curve:
    step_T, value_T = curve
    return step_T, np.log(np.maximum(value_T, np.finfo(np.float64).tiny))


def _part(curve: Curve, begin: float, end: float) -> FloatArray:
    """The values between two parts of the way from the first record to the last; at least one."""
    step_T, value_T = curve
    if not step_T.size:
        return np.array([np.nan])
    way_T = (step_T - step_T[0]) / max(step_T[-1] - step_T[0], 1.0)
    inside_T = (way_T >= begin) & (way_T <= end)
    return value_T[inside_T] if inside_T.any() else value_T[[-1 if begin > 0 else 0]]


def _mean_of_part(curve: Curve, begin: float, end: float) -> float:
    return float(_part(curve, begin, end).mean())


def _spread_of_part(curve: Curve, begin: float) -> float:
    return float(_part(curve, begin, 1.0).std())
