"""The runs behind figures 1, 2 and 3: tables that learn on the two tasks with a cliff (Sec. 3, App. F).

A task is one curve of a figure, done in many runs. Records are made where the authors made them, at equal distances on
a logarithmic axis of steps; learning times are read off the mean over runs, as theirs were.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cdqn import tabular
from cdqn.experiments.request import OnProgress
from cdqn.report.reproduction import Point
from cdqn.tasks.cliff_walking import cliff_walking, one_way_cliff_walking

FloatArray = NDArray[np.float64]

LEARNING_RATE = 0.5
TARGET_PERIOD = 100
"""Updates between two copies to the target table of C-DQN, which these figures of the paper do not have."""
RECORDS_PER_DECADE, ROWS_PER_DECADE = 200, 50
"""The authors' grid, on which learning times are exact to 1.2 %, and what of it is kept as data of a curve."""
MSBE, DISTANCE, RETURN, MIN_Q = "msbe", "distance", "greedy_return", "min_q"


class PairTask(NamedTuple):
    """Cliff walking, updated at random pairs: a curve of figure 1 or 2."""

    algorithm: str
    """q_table, rg or cdqn."""
    width: int
    discount: float
    updates: int


class OnlineTask(NamedTuple):
    """One-way cliff walking, learned while acting, with γ = 1: a curve of figure 3."""

    algorithm: str
    epsilon: float
    updates: int


Task = PairTask | OnlineTask


class Curves(NamedTuple):
    """All runs of a task."""

    step_R: NDArray[np.int64]
    """The records."""
    values: dict[str, FloatArray]
    """By quantity, each (S, R): runs and records."""

    def at_end(self, quantity: str) -> tuple[float, float]:
        """Mean over runs at the last record, and its standard error."""
        value_S = self.values[quantity][:, -1]
        return float(value_S.mean()), float(standard_error(value_S))


class Time(NamedTuple):
    """A learning time: the step at which the mean over runs falls below a level; NaN if it does not."""

    step: float
    resampled_B: FloatArray
    """The same from B resamples of the runs."""

    @property
    def stderr(self) -> float:
        return float(self.resampled_B.std(ddof=1))


def record_steps(updates: int, per_decade: int = RECORDS_PER_DECADE) -> NDArray[np.int64]:
    """The first step at or past each 10^(k/200), to one part in 10⁹, up to the last update."""
    count = int(np.ceil(per_decade * np.log10(updates))) + 1
    exact = 10 ** (np.arange(count) / per_decade)
    step_R = np.unique(np.ceil(exact - 1e-9 * exact).astype(np.int64))  # less a rounding error: 10⁷ is to stay 10⁷
    return step_R[step_R <= updates]


def run_pairs(task: PairTask, rng: np.random.Generator) -> dict[str, FloatArray]:
    """The MSBE and |Q−Q*|² at each record of one run."""
    mdp = cliff_walking(task.width)
    pair_P, q_SA, best_SA = tabular.all_pairs(mdp), tabular.initial_q(mdp), tabular.optimal_q(mdp, task.discount)
    target_SA = q_SA.copy()
    learning = (task.discount, LEARNING_RATE)
    msbe, distance = [], []
    for begin, end in pairwise([0, *record_steps(task.updates)]):
        pair_T = pair_P[rng.integers(pair_P.size, size=end - begin)]
        if task.algorithm == "cdqn":
            tabular.learn_pairs_cdqn(q_SA, target_SA, mdp, pair_T, *learning, TARGET_PERIOD, begin)
        else:
            rule = {"q_table": tabular.Q_TABLE, "rg": tabular.RG}[task.algorithm]
            tabular.learn_pairs(q_SA, mdp, pair_T, *learning, rule)
        msbe.append(tabular.msbe_sum(q_SA, mdp, task.discount))
        distance.append(tabular.squared_distance(q_SA, best_SA, mdp.valid))
    return {MSBE: np.array(msbe), DISTANCE: np.array(distance)}


def run_online(task: OnlineTask, rng: np.random.Generator) -> dict[str, FloatArray]:
    """The return of the greedy policy and the least Q at each record of one run."""
    mdp = one_way_cliff_walking()
    q_SA, state = tabular.initial_q(mdp), mdp.start
    rule = {"q_table": tabular.Q_TABLE, "rg": tabular.RG_SPLIT}[task.algorithm]
    acting, judging = rng.spawn(2)  # what is learned must not depend on how often it is looked at
    returns, least = [], []
    for begin, end in pairwise([0, *record_steps(task.updates)]):
        uniform_T2 = acting.random((end - begin, 2))
        state = tabular.learn_online(q_SA, mdp, state, uniform_T2, task.epsilon, 1.0, LEARNING_RATE, rule)
        returns.append(tabular.greedy_return(q_SA, mdp, judging.random(len(q_SA))))
        least.append(q_SA.min())
    return {RETURN: np.array(returns), MIN_Q: np.array(least)}


def run_all(
    tasks: Sequence[Task],
    runs: int,
    seed: Sequence[int],
    jobs: int,
    on_progress: OnProgress | None = None,
) -> list[Curves]:
    """All runs of all tasks, in `jobs` threads; the result does not depend on how many.

    Threads, because the compiled loops let go of the interpreter.
    """
    total, done = runs * sum(task.updates for task in tasks), 0
    results: dict[tuple[int, int], dict[str, FloatArray]] = {}
    with ThreadPoolExecutor(jobs) as pool:
        futures = {
            pool.submit(_run, task, np.random.default_rng([*seed, number, run])): (number, run)
            for number, task in enumerate(tasks)
            for run in range(runs)
        }
        try:
            for future in as_completed(futures):
                number, run = futures[future]
                results[number, run] = future.result()
                done += tasks[number].updates
                if on_progress:
                    on_progress(done, total)
        except BaseException:  # the runs that have not begun would be waited for
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    curves = []
    for number, task in enumerate(tasks):
        of_runs = [results[number, run] for run in range(runs)]
        values = {quantity: np.stack([one[quantity] for one in of_runs]) for quantity in of_runs[0]}
        curves.append(Curves(record_steps(task.updates), values))
    return curves


def rows(task: Task, setting: str, curves: Curves, quantities: Sequence[str]) -> list[Point]:
    """Means over runs, 50 records of a decade, as data of the figure."""
    kept_R = np.isin(curves.step_R, record_steps(task.updates, ROWS_PER_DECADE))
    made = []
    for quantity in quantities:
        value_SR = curves.values[quantity][:, kept_R]
        points = zip(curves.step_R[kept_R], value_SR.mean(0), standard_error(value_SR), strict=True)
        made += [Point(task.algorithm, setting, int(step), quantity, float(v), float(e)) for step, v, e in points]
    return made


def first_below(step_R: NDArray[np.generic], value_BR: FloatArray, level: float = 1.0) -> FloatArray:
    """The first record at which each of B curves is below the level; NaN if none is."""
    below_BR = value_BR < level
    return np.where(below_BR.any(1), step_R[below_BR.argmax(1)], np.nan)


def learning_time(curves: Curves, quantity: str, rng: np.random.Generator, resamples: int = 400) -> Time:
    """The step at which the mean over runs falls below 1, and the same from resamples of the runs."""
    value_SR = curves.values[quantity]
    runs = len(value_SR)
    weight_BS = rng.multinomial(runs, np.full(runs, 1 / runs), size=resamples) / runs
    step = first_below(curves.step_R, value_SR.mean(0, keepdims=True))[0]
    return Time(float(step), first_below(curves.step_R, weight_BS @ value_SR))


def standard_error(value_SX: FloatArray) -> FloatArray:
    """Of the mean over S runs; NaN for a single one."""
    runs = len(value_SX)
    return value_SX.std(0, ddof=1) / np.sqrt(runs) if runs > 1 else np.full(value_SX.shape[1:], np.nan)


def _run(task: Task, rng: np.random.Generator) -> dict[str, FloatArray]:
    return run_pairs(task, rng) if isinstance(task, PairTask) else run_online(task, rng)
