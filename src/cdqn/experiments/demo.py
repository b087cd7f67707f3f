"""The demo: on one and the same data, DQN's Q leaves every bound, and C-DQN's does not.

Offline CartPole. A random policy plays, half of its transitions are thrown away, and C-DQN, DQN and RG learn
from the rest, each seed from a data set of its own. What makes DQN diverge here is above all the short target
period; it is the effect that the paper shows on Atari after twenty million frames (Sec. 5.2), in a minute.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from cdqn.config import ALGORITHMS, LABELS, Algorithm, Config
from cdqn.errors import CdqnError, ConfigError
from cdqn.experiments.offline import History, collect_random, train_offline
from cdqn.metrics import DivergenceWatch, value_bound

FIRST_SEED = 100
"""The setting was chosen with other seeds: these are for showing it."""
SEEDS = 6

OnProgress = Callable[[int, int], None]
"""Called with the updates done and the updates of the whole demo, in the caller's thread."""


@dataclass(frozen=True)
class Setting:
    """What all runs of the demo share."""

    env_id: str = "CartPole-v1"
    transitions: int = 5_000
    """Transitions in a data set, after the discard."""
    discard_fraction: float = 0.5
    updates: int = 15_000
    record_every: int = 250
    evaluate_every: int = 1_500
    evaluation_episodes: int = 20
    reward_abs_max: float = 1.0
    """r_max of the environment, for the bound of Q."""
    common: Config = field(
        default=Config(
            gamma=0.99,
            hidden=(64, 64),
            dueling=False,
            loss="huber",
            learning_rate=3e-4,
            adam_epsilon=1e-8,
            batch_size=32,
            gradient_clip_norm=float("inf"),
            replay="uniform",
        )
    )

    def config(self, algorithm: Algorithm, seed: int) -> Config:
        """The configuration of one run."""
        settings = self.common.to_json() | {"algorithm": algorithm, "seed": seed}
        if algorithm != "rg":  # which has no target network
            settings |= {"double_q": False, "target_period_updates": 20}
        return Config.from_json(settings, "the demo")

    @property
    def bound(self) -> float:
        """r_max/(1−γ), which no true value exceeds."""
        bound = None if self.common.gamma is None else value_bound(self.reward_abs_max, self.common.gamma)
        if bound is None:
            raise ConfigError(f"gamma is {self.common.gamma}: the demo needs a bound of Q, r_max/(1−γ)")
        return bound


@dataclass(frozen=True)
class DemoRun:
    """One algorithm on the data of one seed."""

    algorithm: Algorithm
    seed: int
    data_digest: str
    """Of the data set: the same for all algorithms of a seed."""
    history: History


@dataclass(frozen=True)
class DemoResult:
    """All runs, in the order of seeds and within a seed of algorithms."""

    setting: Setting
    runs: tuple[DemoRun, ...]
    seconds: float
    """Wall time of the whole demo."""

    @property
    def seeds(self) -> list[int]:
        return sorted({run.seed for run in self.runs})

    def of(self, algorithm: Algorithm) -> list[DemoRun]:
        """The runs of one algorithm, by seed."""
        return [run for run in self.runs if run.algorithm == algorithm]

    def diverged(self, run: DemoRun) -> bool:
        """Whether |Q| was beyond 1.5 times its bound at any record."""
        return run.history.largest_q > DivergenceWatch.MARGIN * self.setting.bound


def run_demo(
    seeds: int = SEEDS,
    jobs: int | None = None,
    on_progress: OnProgress | None = None,
    setting: Setting | None = None,
) -> DemoResult:
    """Train C-DQN, DQN and RG on `seeds` data sets, in `jobs` processes (unset: 2, if there are two cores).

    With one job everything runs in this process. The result does not depend on the number of jobs.
    """
    jobs = min(2, os.cpu_count() or 1) if jobs is None else jobs
    if seeds < 1 or jobs < 1:
        raise ConfigError(f"the demo was asked for {seeds} seeds in {jobs} jobs: both must be at least 1")
    setting = setting or Setting()
    started = time.perf_counter()
    tasks = [(setting, algorithm, FIRST_SEED + i) for i in range(seeds) for algorithm in ALGORITHMS]
    progress = _Progress(len(tasks) * setting.updates, on_progress)
    runs = _run_here(tasks, progress) if jobs == 1 else _run_in_processes(tasks, jobs, progress)
    return DemoResult(setting, tuple(runs), time.perf_counter() - started)


Task = tuple[Setting, Algorithm, int]


class _Progress:
    """Tells the caller of every change, and of nothing else."""

    def __init__(self, total: int, on_progress: OnProgress | None) -> None:
        self._total = total
        self._on_progress = on_progress
        self._told = -1

    def tell(self, done: int) -> None:
        if self._on_progress and done != self._told:
            self._on_progress(done, self._total)
            self._told = done

    def tell_from(self, before: int, done: int) -> None:
        self.tell(before + done)


def _train(task: Task, on_progress: Callable[[int], None]) -> DemoRun:
    setting, algorithm, seed = task
    data = collect_random(setting.env_id, setting.transitions, seed, setting.discard_fraction)
    history = train_offline(
        data,
        setting.config(algorithm, seed),
        setting.updates,
        record_every=setting.record_every,
        evaluate_every=setting.evaluate_every,
        evaluation_episodes=setting.evaluation_episodes,
        on_progress=on_progress,
    )
    return DemoRun(algorithm, seed, data.digest(), history)


def _run_here(tasks: Sequence[Task], progress: _Progress) -> list[DemoRun]:
    runs = []
    progress.tell(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the networks are small: a second thread only gets in the way
    try:
        for number, task in enumerate(tasks):
            runs.append(_train(task, partial(progress.tell_from, number * task[0].updates)))
    finally:
        torch.set_num_threads(threads)
    return runs


# Several processes --------------------------------------------------------------------------------------

_updates_done: Any = None
"""In a worker: the updates done of each task, in memory shared with the parent."""


def _run_in_processes(tasks: Sequence[Task], jobs: int, progress: _Progress) -> list[DemoRun]:
    context = multiprocessing.get_context("spawn")
    others = multiprocessing.active_children()
    done = context.Array("q", len(tasks), lock=False)
    pool = ProcessPoolExecutor(min(jobs, len(tasks)), context, _start_worker, (done,))
    try:
        with _sigint_ignored():  # inherited by the workers: Ctrl-C is for the parent, which ends them
            futures = [pool.submit(_train_in_worker, number, task) for number, task in enumerate(tasks)]
        pending: set[Future[DemoRun]] = set(futures)
        while pending:
            progress.tell(sum(done))
            finished, pending = wait(pending, timeout=0.1, return_when=FIRST_EXCEPTION)
            for future in finished:
                _raise_error(future, tasks[futures.index(future)])
        progress.tell(sum(done))
        return [future.result() for future in futures]
    except BaseException:
        for child in multiprocessing.active_children():
            if child not in others:
                child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker(done: Any) -> None:
    global _updates_done
    _updates_done = done
    torch.set_num_threads(1)


def _train_in_worker(number: int, task: Task) -> DemoRun:
    def note(updates: int) -> None:
        _updates_done[number] = updates

    return _train(task, note)


def _raise_error(future: Future[DemoRun], task: Task) -> None:
    error = future.exception()
    if error is None:
        return
    _, algorithm, seed = task
    what = str(error) if isinstance(error, CdqnError) else f"{type(error).__name__}: {error}"
    raise CdqnError(f"{LABELS[algorithm]} with seed {seed} failed in its process: {what}") from error


@contextmanager
def _sigint_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # signals are somebody else's
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
