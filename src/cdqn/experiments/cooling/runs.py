"""Cooling the quartic oscillator, App. B.1 and figure 9: C-DQN and DQN with several seeds, beside three controllers.

Now and then a run tests its greedy policy, always on the same episodes; the energy is the mean over the second half of
an episode, t from 50 to 100. Each run is a task for one core, saves itself, and goes on from there when started again.
"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdqn.agent import Agent
from cdqn.algorithms import ALGORITHMS
from cdqn.envs.oscillator import TEST_ENERGY_LIMIT, QuarticOscillatorVectorEnv, late_energies
from cdqn.experiments.cooling.claims import CoolingRun, Measured, judge, judge_controllers, rows
from cdqn.experiments.processes import run_tasks
from cdqn.experiments.request import Request
from cdqn.presets import make_config
from cdqn.report.reproduction import Point, Reproduction
from cdqn.report.statistics import Mean, mean_of
from cdqn.runs.loading import load
from cdqn.storage.checkpoint import newest_step
from cdqn.storage.files import read_json, write_json
from cdqn.tasks import controllers
from cdqn.tasks.oscillator import NUM_ACTIONS

ENV_ID, PRESET = "cdqn/QuarticOscillator-v0", "paper-B.1"
COMPARED: tuple[str, ...] = ("cdqn", "dqn")
TEST_SEED = 1_000_003
"""Of the test episodes, the same for every policy and every test of it."""
TEST_BATCH = 100
"""Episodes tested at once, at most."""


@dataclass(frozen=True)
class CoolingSetting:
    """How much of the published experiment a scale does; the defaults are the paper's, and ours where it is silent."""

    runs: int = 5
    """Of each algorithm."""
    tests: int = 100
    """Of the policy, evenly over the training."""
    test_episodes: int = 32
    final_episodes: int = 300
    changes: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the preset."""
    target_period_updates: Mapping[str, int] = field(default_factory=dict)
    """Where it differs from the preset: each algorithm has its own."""


SCALES = {
    "smoke": CoolingSetting(
        runs=2,
        tests=2,
        test_episodes=2,
        final_episodes=2,
        changes={"steps": 4_000, "warmup_steps": 1_000, "hidden": (32, 32), "batch_size": 64, "memory_size": 2_000},
    ),
    # 1333 episodes in place of 11 000, a network of a quarter of the widths, and a larger share of high step sizes.
    # An error common to all of Q falls fast only just after θ̃ is copied (Eq. 12), so C-DQN needs many copies; with as
    # many DQN does not learn to cool at all (docs/oscillator.md).
    "laptop": CoolingSetting(
        runs=4,
        tests=24,
        changes={
            "steps": 2_400_000,
            "hidden": (128, 128, 64),
            "memory_size": 1_100_000,
            "learning_rate_drops": ((0.4, 0.4), (0.6, 0.08), (0.8, 0.02)),
        },
        target_period_updates={"cdqn": 5, "dqn": 100},
    ),
    "paper": CoolingSetting(),
}


def fig9(request: Request) -> Reproduction:
    """Train what is not yet trained, and judge it by the paper's sentences."""
    setting = SCALES[request.scale]
    if request.runs is not None:
        setting = dataclasses.replace(setting, runs=request.runs)
    seeds = range(request.seed, request.seed + setting.runs)
    folder = (request.out or Path()) / "cooling" / request.scale
    tasks = {
        f"{ALGORITHMS[algorithm].label} with seed {seed}": partial(
            train, setting, algorithm, seed, folder / f"{algorithm}-{seed}"
        )
        for seed, algorithm in itertools.product(seeds, COMPARED)
    }
    runs = run_tasks(tasks, request.pool, setting.tests, request.on_progress)
    about = f"{setting.runs} runs of each, seeds {seeds[0]} to {seeds[-1]}, scale {request.scale}"
    return Reproduction("fig9", about, rows(runs), judge(runs, request.scale))


def train(
    setting: CoolingSetting, algorithm: str, seed: int, folder: Path, on_progress: Callable[[int], None] | None = None
) -> CoolingRun:
    """One run, from its newest checkpoint in `folder` if there is one."""
    run, noted = folder / "run", folder / "tests.json"
    agent = load(run) if newest_step(run) else _new_agent(setting, algorithm, seed)
    # A test is noted before its agent is saved: after a crash in between it is done again.
    tests = [test for test in _noted(noted) if test.step <= agent.steps]
    for number in range(len(tests), setting.tests):
        agent.learn(round(agent.config.steps * (number + 1) / setting.tests) - agent.steps)
        tests.append(Measured(agent.steps, *mean_of(_late_energies(agent, setting.test_episodes))))
        folder.mkdir(parents=True, exist_ok=True)
        write_json(noted, {"tests": tests})
        agent.save(run)
        if on_progress:
            on_progress(number + 1)
    if on_progress:
        on_progress(setting.tests)
    energy_E = _late_energies(agent, setting.final_episodes)
    failed = int((energy_E >= TEST_ENERGY_LIMIT).sum())
    return CoolingRun(algorithm, seed, tests, Measured(agent.steps, *mean_of(energy_E)), failed)


def compare_controllers(request: Request) -> Reproduction:
    """The three controllers of Wang, Ashida & Ueda (2020), and no control, on the episodes of figure 9's last test."""
    episodes = SCALES[request.scale].final_episodes
    names = [*controllers.CONTROLLERS, "none"]
    tasks = {name: partial(measure_controller, name, episodes) for name in names}
    found = run_tasks(tasks, request.pool, 1, request.on_progress)
    energies = dict(zip(names, found, strict=True))
    data = [Point(name, f"{episodes} episodes", 0, "energy", *energy) for name, energy in energies.items()]
    about = f"mean of {episodes} episodes, energy over t from 50 to 100, seed {TEST_SEED}, scale {request.scale}"
    return Reproduction("controllers", about, data, judge_controllers(energies))


def measure_controller(name: str, episodes: int, on_progress: Callable[[int], None] | None = None) -> Mean:
    """Mean energy and its standard error; "none" leaves the oscillator alone."""
    env = _test_env(episodes)
    if name == "none":
        act: Callable[..., NDArray[np.int64]] = _leave_alone
    else:
        act = controllers.policy(name, env.force_A, env.observation_scale)
    energy_E = late_energies(env, act, episodes, TEST_SEED)
    if on_progress:
        on_progress(1)
    return mean_of(energy_E)


def _leave_alone(observation_BM: NDArray[Any]) -> NDArray[np.int64]:
    """No force, the middle one of the actions."""
    return np.full(len(observation_BM), NUM_ACTIONS // 2)


def _new_agent(setting: CoolingSetting, algorithm: str, seed: int) -> Agent:
    changes = dict(setting.changes)
    if algorithm in setting.target_period_updates:
        changes["target_period_updates"] = setting.target_period_updates[algorithm]
    return Agent.from_config(ENV_ID, make_config(algorithm, PRESET, seed=seed, **changes), PRESET)


def _late_energies(agent: Agent, episodes: int) -> NDArray[np.float64]:
    return late_energies(_test_env(episodes), agent.predict, episodes, TEST_SEED)


def _test_env(episodes: int) -> QuarticOscillatorVectorEnv:
    return QuarticOscillatorVectorEnv(min(episodes, TEST_BATCH), energy_limit=TEST_ENERGY_LIMIT)


def _noted(path: Path) -> list[Measured]:
    """The tests that a run has noted so far."""
    noted = read_json(path, "a run of fig9")["tests"] if path.exists() else []
    return [Measured(int(step), energy, stderr) for step, energy, stderr in noted]
