"""The demo: on one and the same data, DQN's Q leaves every bound, and C-DQN's does not.

Offline CartPole. A random policy plays, half of its transitions are thrown away, and C-DQN, DQN and RG learn
from the rest, each seed from a data set of its own. What makes DQN diverge here is above all the short target
period; it is the effect that the paper shows on Atari after twenty million frames (Sec. 5.2), in a minute.
"""

import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from cdqn.algorithms import ALGORITHMS, OF_THE_PAPER
from cdqn.config import Config
from cdqn.errors import ConfigError
from cdqn.experiments.demo.offline import History, collect_random, train_offline
from cdqn.experiments.processes import run_tasks
from cdqn.runs.workers.local import LocalPool
from cdqn.training.divergence import MARGIN
from cdqn.training.metrics import value_bound

FIRST_SEED = 100
"""The setting was chosen with other seeds: these are for showing it."""
SEEDS = 6

OnProgress = Callable[[int, int], None]
"""Called with the updates done and the updates of the whole demo, in the caller's thread."""


@dataclass(frozen=True)
class DemoSetting:
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

    def config(self, algorithm: str, seed: int) -> Config:
        """The configuration of one run."""
        settings = self.common.to_json() | {"algorithm": algorithm, "seed": seed}
        if ALGORITHMS[algorithm].has_target:
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

    algorithm: str
    seed: int
    data_digest: str
    """Of the data set: the same for all algorithms of a seed."""
    history: History


@dataclass(frozen=True)
class DemoResult:
    """All runs, in the order of seeds and within a seed of algorithms."""

    setting: DemoSetting
    runs: tuple[DemoRun, ...]
    seconds: float
    """Wall time of the whole demo."""

    @property
    def seeds(self) -> list[int]:
        return sorted({run.seed for run in self.runs})

    def of(self, algorithm: str) -> list[DemoRun]:
        """The runs of one algorithm, by seed."""
        return [run for run in self.runs if run.algorithm == algorithm]

    def diverged(self, run: DemoRun) -> bool:
        """Whether |Q| was beyond 1.5 times its bound at any record."""
        return run.history.largest_q > MARGIN * self.setting.bound


def run_demo(
    seeds: int = SEEDS,
    jobs: int | None = None,
    on_progress: OnProgress | None = None,
    setting: DemoSetting | None = None,
) -> DemoResult:
    """Train C-DQN, DQN and RG on `seeds` data sets, in `jobs` processes (unset: 2, if there are two cores).

    The result does not depend on the number of jobs.
    """
    jobs = min(2, os.cpu_count() or 1) if jobs is None else jobs
    if seeds < 1 or jobs < 1:
        raise ConfigError(f"the demo was asked for {seeds} seeds in {jobs} jobs: both must be at least 1")
    setting = setting or DemoSetting()
    started = time.perf_counter()
    tasks = {
        f"{ALGORITHMS[algorithm].label} with seed {seed}": partial(_train, setting, algorithm, seed)
        for seed, algorithm in itertools.product(range(FIRST_SEED, FIRST_SEED + seeds), OF_THE_PAPER)
    }
    runs = run_tasks(tasks, LocalPool(jobs), setting.updates, on_progress)
    return DemoResult(setting, tuple(runs), time.perf_counter() - started)


def _train(setting: DemoSetting, algorithm: str, seed: int, on_progress: Callable[[int], None]) -> DemoRun:
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
