"""How often a 95 % interval of the mean over a few seeds contains the true mean.

    python benchmarks/interval_coverage.py           # minutes; writes benchmarks/results/interval_coverage.csv

Final returns of so many runs are drawn from a known distribution, an interval is computed, and it is looked up whether
the truth lies in it. Student's interval and the one over several tasks are the functions that `cdqn compare` uses.
"""

import argparse
import csv
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cdqn.report.statistics import interquartile_mean, mean_band, mean_over_tasks

FloatArray = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]
Interval = tuple[FloatArray, FloatArray]

COLUMNS = ("distribution", "method", "runs", "repetitions", "coverage", "too_low", "too_high", "median_width")
LEVEL = 0.95
NOMINAL = (0.5 * (1 - LEVEL), 0.5 * (1 + LEVEL))


def some_runs_fail(rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
    """Four runs of five reach 480 ± 15; the fifth stays at 100 ± 30."""
    return np.where(rng.random(size) < 0.2, rng.normal(100, 30, size), rng.normal(480, 15, size))


def at_the_ceiling(rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
    """Around 480 ± 40, of which nothing is above 500."""
    return np.minimum(500.0, rng.normal(480, 40, size))


DISTRIBUTIONS: dict[str, Draw] = {
    "normal": lambda rng, size: rng.normal(0, 1, size),
    "uniform": lambda rng, size: rng.random(size),
    "log-normal (sigma 0.5)": lambda rng, size: rng.lognormal(0, 0.5, size),
    "log-normal (sigma 1)": lambda rng, size: rng.lognormal(0, 1, size),
    "at the ceiling": at_the_ceiling,
    "one run in five fails": some_runs_fail,
    "difference: normal": lambda rng, size: rng.normal(0.5, 1, size) - rng.normal(0, 2, size),
    "difference: log-normal": lambda rng, size: rng.lognormal(0, 1, size) - rng.lognormal(0, 1, size),
    "difference: failing less normal": lambda rng, size: some_runs_fail(rng, size) - rng.normal(450, 30, size),
}


def student(value_RN: FloatArray, drawn_RBN: FloatArray) -> Interval:
    """What `cdqn compare` claims: each repetition is a point of a curve."""
    band = mean_band(value_RN.T, LEVEL)
    return band.low, band.high


def percentile(value_RN: FloatArray, drawn_RBN: FloatArray) -> Interval:
    """Quantiles of resampled means."""
    low_R, high_R = np.quantile(drawn_RBN.mean(-1), NOMINAL, axis=-1)
    return low_R, high_R


def percentile_iqm(value_RN: FloatArray, drawn_RBN: FloatArray) -> Interval:
    """Quantiles of resampled interquartile means."""
    low_R, high_R = np.quantile(interquartile_mean(drawn_RBN), NOMINAL, axis=-1)
    return low_R, high_R


def bca(value_RN: FloatArray, drawn_RBN: FloatArray) -> Interval:
    """Efron's: percentiles shifted for bias and for skewness, which is taken from the jackknife."""
    mean_R, mean_RB = value_RN.mean(-1), np.sort(drawn_RBN.mean(-1), axis=-1)
    resamples = mean_RB.shape[-1]
    share_R = ((mean_RB < mean_R[:, None]).mean(-1) + (mean_RB <= mean_R[:, None]).mean(-1)) / 2
    bias_R = _quantile_of_normal(np.clip(share_R, 1 / resamples, 1 - 1 / resamples))
    pull_RN = value_RN - mean_R[:, None]  # of the jackknife's means, up to a factor
    skew_R = (pull_RN**3).sum(-1) / np.maximum(6 * (pull_RN**2).sum(-1) ** 1.5, 1e-300)
    ends = []
    for z in _quantile_of_normal(np.array(NOMINAL)):
        shifted_R = torch.special.ndtr(torch.from_numpy(bias_R + (bias_R + z) / (1 - skew_R * (bias_R + z)))).numpy()
        place_R = np.clip(np.round(shifted_R * resamples).astype(int), 0, resamples - 1)
        ends.append(np.take_along_axis(mean_RB, place_R[:, None], -1)[:, 0])
    return ends[0], ends[1]


def studentised(value_RN: FloatArray, drawn_RBN: FloatArray) -> Interval:
    """Quantiles of resampled t statistics; a resample without spread counts as infinitely far away."""
    root = np.sqrt(value_RN.shape[-1])
    mean_R, error_R = value_RN.mean(-1), value_RN.std(-1, ddof=1) / root
    with np.errstate(divide="ignore", invalid="ignore"):
        t_RB = (drawn_RBN.mean(-1) - mean_R[:, None]) / (drawn_RBN.std(-1, ddof=1) / root)
    t_RB = np.sort(np.where(np.isnan(t_RB), 0.0, t_RB), axis=-1)
    low, high = (int(share * t_RB.shape[-1]) for share in NOMINAL)
    with np.errstate(invalid="ignore"):
        ends = [mean_R - np.where(error_R > 0, t_RB[:, place] * error_R, 0.0) for place in (high, low)]
    return ends[0], ends[1]


OURS = "Student's t, mean"
METHODS: dict[str, Callable[[FloatArray, FloatArray], Interval]] = {
    OURS: student,
    "percentile bootstrap, mean": percentile,
    "percentile bootstrap, IQM": percentile_iqm,
    "BCa bootstrap, mean": bca,
    "studentised bootstrap, mean": studentised,
}


def _quantile_of_normal(share: FloatArray) -> FloatArray:
    quantile: FloatArray = torch.special.ndtri(torch.from_numpy(share)).numpy()
    return quantile


def truth_of(draw: Draw, statistic: str, rng: np.random.Generator) -> float:
    """From a sample so large that its own error does not matter."""
    value_N = draw(rng, (4_000_000,))
    return float(interquartile_mean(value_N) if statistic.endswith("IQM") else value_N.mean())


def coverage(
    draw: Draw, methods: list[str], runs: int, repetitions: int, resamples: int, rng: np.random.Generator
) -> Iterator[tuple[str, list[float]]]:
    """For each method: how often the truth is inside, how often the interval is too low, too high, and its width."""
    ends: dict[str, list[Interval]] = {name: [] for name in methods}
    block = max(1, 100_000 // resamples)
    for start in range(0, repetitions, block):
        value_RN = draw(rng, (min(block, repetitions - start), runs))
        index_RBN = rng.integers(runs, size=(len(value_RN), resamples, runs))
        drawn_RBN = np.take_along_axis(value_RN[:, None, :], index_RBN, -1)
        for name in methods:
            ends[name].append(METHODS[name](value_RN, drawn_RBN))
    for name in methods:
        low_R, high_R = (np.concatenate(parts) for parts in zip(*ends[name], strict=True))
        truth = truth_of(draw, name, rng)
        too_low, too_high = float((high_R < truth).mean()), float((low_R > truth).mean())
        finite_R = np.isfinite(high_R - low_R)
        width = float(np.median((high_R - low_R)[finite_R])) if finite_R.any() else float("nan")
        yield name, [1 - too_low - too_high, too_low, too_high, width]


def coverage_over_tasks(runs: int, repetitions: int, rng: np.random.Generator) -> list[float]:
    """Three tasks, normal with spreads 1, 0.3 and 0.05: the mean of their means, as in the summary of `compare`."""
    spread_T = (1.0, 0.3, 0.05)
    found = [mean_over_tasks([rng.normal(0, spread, runs) for spread in spread_T], LEVEL) for _ in range(repetitions)]
    low_R, high_R = (np.array([estimate[place] for estimate in found]) for place in (1, 2))
    too_low, too_high = float((high_R < 0).mean()), float((low_R > 0).mean())
    return [1 - too_low - too_high, too_low, too_high, float(np.median(high_R - low_R))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=100_000, help="of Student's interval")
    parser.add_argument("--bootstraps", type=int, default=3_000, help="repetitions of the others")
    parser.add_argument("--resamples", type=int, default=400)
    parser.add_argument("--runs", type=int, nargs="+", default=[5, 10])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/interval_coverage.csv"))
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    rows: list[list[object]] = []
    for distribution, draw in DISTRIBUTIONS.items():
        for runs in options.runs:
            others = [name for name in METHODS if name != OURS]
            for methods, times, resamples in (
                ([OURS], options.repetitions, 1),
                (others, options.bootstraps, options.resamples),
            ):
                for method, numbers in coverage(draw, methods, runs, times, resamples, rng):
                    rows.append([distribution, method, runs, times, *(f"{number:.4f}" for number in numbers)])
                    print(*rows[-1], sep=", ", flush=True)
    for runs in options.runs:
        times = options.repetitions // 10
        texts = [f"{number:.4f}" for number in coverage_over_tasks(runs, times, rng)]
        rows.append(["three tasks, normal", "Student's t, mean over tasks", runs, times, *texts])
        print(*rows[-1], sep=", ", flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
