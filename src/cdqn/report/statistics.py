"""Statistics over a handful of seeds: means with Student's intervals, interquartile means, curves on a common grid."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
FEWEST = 5
"""Runs from which on an interval is claimed; fewer are shown one by one (docs/comparing.md)."""
# Resamples are drawn in blocks of about this many numbers, so that memory does not grow with the sample.
_BLOCK = 2_000_000


class Mean(NamedTuple):
    """A mean and its standard error, NaN for a single value; f"{mean:.2f}" has two digits of both."""

    value: float
    stderr: float

    def __format__(self, digits: str) -> str:
        return f"{self.value:{digits}} ± {self.stderr:{digits}}"


def mean_of(values: FloatArray) -> Mean:
    """The mean of independent values."""
    count = len(values)
    return Mean(float(values.mean()), float(values.std(ddof=1) / np.sqrt(count)) if count > 1 else float("nan"))


class Estimate(NamedTuple):
    """A statistic and its confidence interval."""

    value: float
    low: float
    high: float


class Band(NamedTuple):
    """A mean curve and its pointwise confidence interval; NaN where a seed is missing, or seeds are too few."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


def interquartile_mean(values: ArrayLike, weights: ArrayLike | None = None) -> FloatArray:
    """The mean of the middle half of the values along the last axis, for any n ≥ 1.

    Put the sorted values side by side, each one unit wide; the result is their average over [n/4, 3n/4], so
    that a value lying across an edge counts by the part of it that lies inside. It equals the integral of the
    empirical quantile function from 1/4 to 3/4, doubled. For n divisible by 4 it is the 25 % trimmed mean;
    for n = 1 the value; for n = 2 the mean; for n = 3 the weights are 1/6, 4/6, 1/6. NaN in, NaN out. With `weights`
    a value is as wide as its weight: so tasks count alike that have been run with different numbers of seeds.
    """
    if weights is not None:
        return _weighted_interquartile_mean(np.asarray(values, np.float64), np.asarray(weights, np.float64))
    sorted_N = np.sort(np.asarray(values, dtype=np.float64), axis=-1)
    if sorted_N.ndim == 0 or sorted_N.shape[-1] == 0:
        raise ValueError("the interquartile mean needs at least one value")
    n = sorted_N.shape[-1]
    left_N = np.arange(n)
    weight_N = np.clip(np.minimum(left_N + 1, 0.75 * n) - np.maximum(left_N, 0.25 * n), 0.0, None) / (0.5 * n)
    inside_N = weight_N > 0  # selected, not multiplied by zero: an infinity that is trimmed leaves no trace
    result = sorted_N[..., inside_N] @ weight_N[inside_N]
    return np.where(np.isnan(sorted_N[..., -1]), np.nan, result)  # sorting puts NaN last, where it is trimmed


def _weighted_interquartile_mean(value_N: FloatArray, weight_N: FloatArray) -> FloatArray:
    order_N = np.argsort(value_N, axis=-1)
    sorted_N, width_N = np.take_along_axis(value_N, order_N, -1), (weight_N / weight_N.sum())[order_N]
    right_N = np.cumsum(width_N, axis=-1)
    part_N = 2 * np.clip(np.minimum(right_N, 0.75) - np.maximum(right_N - width_N, 0.25), 0.0, None)
    inside_N = np.where(part_N > 1e-12, sorted_N, 0.0)  # an infinity that is trimmed leaves no trace
    result: FloatArray = (inside_N * part_N).sum(-1) / part_N.sum(-1)
    return np.where(np.isnan(sorted_N[..., -1]), np.nan, result)


def probability_of_improvement(ours: Sequence[FloatArray], theirs: Sequence[FloatArray]) -> float:
    """How often a run of ours is above one of theirs on the same task, a tie counting one half; mean over tasks.

    The Mann-Whitney statistic of each task, as a share (Agarwal et al. 2021). ½ where there is no difference.
    """
    shares = []
    for our_N, their_M in zip(ours, theirs, strict=True):
        above_NM = np.sign(our_N[..., :, None] - their_M[..., None, :])
        shares.append((above_NM.mean((-2, -1)) + 1) / 2)
    return float(np.mean(shares))


def performance_profile(groups: Sequence[FloatArray], thresholds: ArrayLike) -> FloatArray:
    """For each threshold the share of runs whose score is above it; tasks count alike (Agarwal et al. 2021)."""
    threshold_T = np.asarray(thresholds, dtype=np.float64)
    share_GT = [(group_N[:, None] > threshold_T).mean(0) for group_N in groups]
    profile_T: FloatArray = np.mean(share_GT, axis=0)
    return profile_T


def bootstrap_interval(
    values: ArrayLike,
    statistic: Callable[[FloatArray], FloatArray],
    rng: np.random.Generator,
    confidence: float = 0.95,
    resamples: int = 10_000,
) -> Estimate:
    """Percentile bootstrap of a statistic that reduces the last axis.

    One value has no spread to resample: the interval is that value, and whoever prints it says n = 1. With
    fewer than about ten values the true coverage is below `confidence`.
    """
    value_N = np.asarray(values, dtype=np.float64)
    if value_N.ndim != 1 or value_N.size == 0:
        raise ValueError(f"bootstrap_interval needs a non-empty list of values, not shape {value_N.shape}")
    n = value_N.size
    value = float(statistic(value_N))
    if n == 1:
        return Estimate(value, value, value)
    per_block = max(1, _BLOCK // n)
    blocks = [
        statistic(value_N[rng.integers(n, size=(min(per_block, resamples - start), n))])
        for start in range(0, resamples, per_block)
    ]
    if any(np.ndim(block) != 1 for block in blocks):
        raise ValueError("the statistic must reduce the last axis only: e.g. lambda x: np.mean(x, axis=-1)")
    low, high = np.quantile(np.concatenate(blocks), _tails(confidence))
    return Estimate(value, float(low), float(high))


def stratified_interval(
    samples: Sequence[Sequence[FloatArray]],
    statistic: Callable[[list[FloatArray]], FloatArray],
    rng: np.random.Generator,
    confidence: float = 0.95,
    resamples: int = 10_000,
) -> Estimate:
    """Percentile bootstrap over several tasks: within each of them its runs are resampled, and then pooled.

    `samples[a][t]` are the values of sample a (an algorithm) on task t. The statistic is given one array for each
    sample, with all tasks side by side in the last axis, which it reduces (Agarwal et al. 2021).
    """
    value = float(statistic([np.concatenate(list(groups)) for groups in samples]))
    drawn = [
        np.concatenate([group[rng.integers(len(group), size=(resamples, len(group)))] for group in groups], axis=1)
        for groups in samples
    ]
    low, high = np.quantile(statistic(drawn), _tails(confidence))
    return Estimate(value, float(low), float(high))


def align_curves(curves: Sequence[tuple[ArrayLike, ArrayLike]], points: int = 200) -> tuple[FloatArray, FloatArray]:
    """S curves, each with its own steps, on one grid: `step_P`, `value_SP`.

    Between two steps a curve is interpolated linearly. Before its first and past its last step it is NaN, and
    so it is beside a value that is not finite: nothing is made up. The grid spans all curves, and is their
    own steps if they share no more than `points` of them; a curve without any value is a row of NaN.
    """
    pairs = [(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)) for x, y in curves]
    steps = [step_T for step_T, _ in pairs if step_T.size]
    if not steps:
        return np.empty(0), np.empty((len(pairs), 0))
    grid_P = _common_grid(steps, points)
    return grid_P, np.stack([_interpolate(grid_P, step_T, value_T) for step_T, value_T in pairs])


def mean_band(value_SP: ArrayLike, confidence: float = 0.95) -> Band:
    """Mean over S seeds and Student's interval at each point, which has no width to show below `FEWEST` seeds.

    Where a seed is missing the mean is NaN too: a mean over the seeds that survived would flatter an
    algorithm whose other runs diverged.
    """
    value_SP = np.asarray(value_SP, dtype=np.float64)
    seeds = len(value_SP)
    band = Band(*np.full((3, value_SP.shape[1]), np.nan))
    complete_P = np.isfinite(value_SP).all(axis=0)
    complete_SC = value_SP[:, complete_P]
    if complete_SC.size == 0:
        return band
    band.mean[complete_P] = mean_C = complete_SC.mean(axis=0)
    if seeds >= FEWEST:
        with np.errstate(over="ignore", invalid="ignore"):  # squares of what a diverged run has left
            half_C = student_t(seeds - 1, confidence) * complete_SC.std(axis=0, ddof=1) / math.sqrt(seeds)
        band.low[complete_P], band.high[complete_P] = mean_C - half_C, mean_C + half_C
    return band


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> Estimate:
    """The mean of independent values with Student's interval; NaN for its ends below `FEWEST` values."""
    value_N = np.asarray(values, dtype=np.float64)
    if value_N.ndim != 1 or value_N.size == 0:
        raise ValueError(f"mean_interval needs a non-empty list of values, not shape {value_N.shape}")
    mean, low, high = (float(value_P[0]) for value_P in mean_band(value_N[:, None], confidence))
    return Estimate(mean, low, high)


def mean_over_tasks(groups: Sequence[FloatArray], confidence: float = 0.95) -> Estimate:
    """The mean over tasks of the mean over each one's values; the tasks are taken as given, their values vary.

    The degrees of freedom are Welch and Satterthwaite's; NaN for the ends where a task has fewer than `FEWEST` values.
    """
    value = float(np.mean([group_N.mean() for group_N in groups]))
    if min(map(len, groups)) < FEWEST:
        return Estimate(value, math.nan, math.nan)
    variance_T = np.array([group_N.var(ddof=1) / len(group_N) for group_N in groups])
    own_degrees_T = np.array([len(group_N) - 1 for group_N in groups])
    total = variance_T.sum()
    if total == 0:
        return Estimate(value, value, value)
    degrees = total**2 / (variance_T**2 / own_degrees_T).sum()
    half = student_t(float(degrees), confidence) * math.sqrt(total) / len(groups)
    return Estimate(value, value - half, value + half)


@functools.cache
def student_t(degrees: float, confidence: float = 0.95) -> float:
    """Within how many standard errors the mean lies with this probability: the quantile of Student's t.

    With t = √ν tan φ its density is proportional to cosᵛ⁻¹φ, which is integrated by Gauss's rule and then inverted.
    """
    _tails(confidence)
    node_K, weight_K = np.polynomial.legendre.leggauss(64)
    whole = math.sqrt(math.pi) * math.exp(math.lgamma(degrees / 2) - math.lgamma((degrees + 1) / 2))
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        within = angle * (weight_K @ np.cos(angle * (node_K + 1) / 2) ** (degrees - 1)) / whole
        low, high = (angle, high) if within < confidence else (low, angle)
    return math.sqrt(degrees) * math.tan(low)


def _common_grid(steps: Sequence[FloatArray], points: int) -> FloatArray:
    own_P = np.unique(np.concatenate(steps))
    if own_P.size <= points and all(step_T.size == own_P.size for step_T in steps):
        return own_P
    return np.unique(np.linspace(own_P[0], own_P[-1], points))


def _interpolate(grid_P: FloatArray, step_T: FloatArray, value_T: FloatArray) -> FloatArray:
    if step_T.size == 0:
        return np.full(grid_P.shape, np.nan)
    finite_T = np.where(np.isfinite(value_T), value_T, np.nan)
    return np.interp(grid_P, step_T, finite_T, left=np.nan, right=np.nan)


def _tails(confidence: float) -> FloatArray:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
    return np.array([(1 - confidence) / 2, (1 + confidence) / 2])
