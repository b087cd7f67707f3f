"""What a figure costs: its runs and their steps, and the hours of a core, from a short measurement on this machine.

A measurement is made once for each kind of work, and takes a second or two; what is measured is imported when it is
asked for.
"""

import dataclasses
import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

MEASURED_STEPS = 400
"""Of a game, after the first few; of Atari four times as few, which take as long."""


class Cost(NamedTuple):
    """What has to be done, and how long it takes here."""

    runs: int
    steps: int
    """Of all runs together."""
    unit: str
    """Of a step: agent steps, updates of a table, epochs."""
    core_hours: float
    memory_bytes: int
    """Of the largest run: its replay memory."""


def of_tables(name: str, scale: str) -> Cost:
    """Figures 1 to 3."""
    from cdqn.experiments.section3.cliff_walking import SIZES, fig1_tasks, fig2_tasks, fig3_tasks

    size = SIZES[scale]
    budgets = {
        "fig1": [task.updates for task in fig1_tasks()],
        "fig2": [task.updates for task in fig2_tasks(size)],
        "fig3": [task.updates for task in fig3_tasks(size)],
    }[name]
    runs = size.trials if name == "fig3" else size.runs
    updates = runs * sum(budgets)
    return Cost(runs * len(budgets), updates, "updates of a table", updates * _seconds_per_table_update() / 3600, 0)


def of_conditioning(name: str, scale: str) -> Cost:
    """The condition numbers: a Hessian for each length and each discount."""
    from cdqn.experiments.section3.conditioning import CYCLES, DISCOUNTS, LENGTHS, hessian

    longest = max(LENGTHS[scale])
    seconds = _seconds(lambda: hessian(longest, 0.99, cycle=False))
    hessians = 2 * len(LENGTHS[scale]) + len(DISCOUNTS[scale]) * len(CYCLES[scale])
    return Cost(hessians, hessians, "Hessians", hessians * seconds / 3600, 0)


def of_wet_chicken(name: str, scale: str) -> Cost:
    """Figure 8."""
    from cdqn.experiments.wet_chicken.runs import SCALES

    setting = SCALES[scale]
    epochs = 3 * setting.repeats * setting.epochs
    updates = epochs * setting.transitions / setting.batch_size
    seconds = updates * _seconds_per_fitted_update(setting.batch_size, setting.hidden)
    return Cost(3 * setting.repeats, epochs, "epochs", seconds / 3600, 0)


def of_cooling(name: str, scale: str) -> Cost:
    """Figure 9."""
    from cdqn.experiments.cooling.runs import COMPARED, ENV_ID, PRESET, SCALES
    from cdqn.presets import make_config

    setting = SCALES[scale]
    config = make_config("cdqn", PRESET, **setting.changes)
    runs = setting.runs * len(COMPARED)
    steps = runs * config.steps
    hours = steps * _seconds_per_step(ENV_ID, config, PRESET) / 3600
    return Cost(runs, steps, "steps", hours, _memory(ENV_ID, config))


def of_controllers(name: str, scale: str) -> Cost:
    """The controllers that figure 9 is compared with."""
    from cdqn.experiments.cooling.runs import SCALES, measure_controller
    from cdqn.tasks.controllers import CONTROLLERS

    episodes, policies = SCALES[scale].final_episodes, len(CONTROLLERS) + 1
    seconds = _seconds(lambda: measure_controller("none", 2))
    return Cost(policies, policies * episodes, "episodes", policies * max(1.0, episodes / 100) * seconds / 3600, 0)


def of_games(name: str, scale: str) -> Cost:
    """Figures of games, and Table 1, whose tests are games too and take a small part of the time."""
    from cdqn.experiments.games.plans import FIGURES

    figure = FIGURES[name]
    lines, seeds = figure.lines(scale), figure.seeds(scale)
    configs = [line.config(0) for line in lines]
    seconds = sum(
        config.steps * _seconds_per_step(line.env_id, config, line.preset)
        for line, config in zip(lines, configs, strict=True)
    )
    steps = seeds * sum(config.steps for config in configs)
    memory = max(_memory(line.env_id, config) for line, config in zip(lines, configs, strict=True))
    return Cost(seeds * len(lines), steps, "steps", seeds * seconds / 3600, memory)


# Measurements -------------------------------------------------------------------------------------------


def _seconds(work: Callable[[], Any]) -> float:
    """Of this process alone, whatever else the machine does, and of one thread: runs have a core each."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # threads that wait for each other on a busy machine count as work
    begun = time.process_time()
    try:
        work()
        return time.process_time() - begun
    finally:
        torch.set_num_threads(threads)


@cache
def _seconds_per_table_update() -> float:
    import numpy as np

    from cdqn.experiments.section3.runs import PairTask, run_pairs

    run_pairs(PairTask("rg", 10, 0.9, 100), np.random.default_rng(0))  # compiles the loop
    updates = 300_000
    return _seconds(lambda: run_pairs(PairTask("rg", 10, 0.9, updates), np.random.default_rng(0))) / updates


@cache
def _seconds_per_fitted_update(batch_size: int, hidden: tuple[int, ...]) -> float:
    """Of one repeat, as one of four that are learned together."""
    import torch

    from cdqn.experiments.wet_chicken.runs import WetChickenSetting, make_learner

    updates, repeats = 40, 4
    transitions = updates * batch_size
    setting = WetChickenSetting(repeats, transitions=transitions, batch_size=batch_size, hidden=hidden)
    learner = make_learner(setting, "cdqn", range(repeats), 0)
    order = torch.arange(transitions).expand(repeats, -1).contiguous()
    seconds = min(_seconds(lambda: learner.epoch(order, setting.learning_rate)) for _ in range(2))
    return seconds / (repeats * updates)


def _seconds_per_step(env_id: str, config: Any, preset: str) -> float:
    """Measured once for each kind of environment and network: algorithms and other settings differ little in it."""
    from cdqn.envs import kind_of

    kind = kind_of(env_id)
    key = (
        env_id if kind in ("vector", "discrete") else kind,
        config.hidden,
        config.batch_size,
        config.update_period_steps,
    )
    if key not in _step_seconds:
        _step_seconds[key] = _measure_steps(env_id, config, preset)
    return _step_seconds[key]


_step_seconds: dict[tuple[Any, ...], float] = {}


def _measure_steps(env_id: str, config: Any, preset: str) -> float:
    from cdqn.agent import Agent
    from cdqn.envs import atari_game

    warmup = max(4 * config.batch_size, 2 * config.num_envs)
    count = MEASURED_STEPS // 4 if atari_game(env_id) else MEASURED_STEPS
    count = max(count, 4 * config.update_period_steps)
    small = {"steps": warmup + 10 * count, "warmup_steps": warmup, "memory_size": warmup + 10 * count, "compile": "off"}
    small |= {"horizon_multiplier": None, "candidate_period_steps": None}
    if config.horizon_multiplier is not None:
        small |= {"gamma": 0.99}
    agent = Agent.from_config(env_id, dataclasses.replace(config, **small), preset)
    agent.learn(warmup + count)
    return _seconds(lambda: agent.learn(count)) / float(count)


def _memory(env_id: str, config: Any) -> int:
    from cdqn.envs import atari_game, describe, make_vec
    from cdqn.training.build import memory_estimate

    if env_id not in _specs:
        env = make_vec(env_id, 1, preprocessing=config.preprocessing if atari_game(env_id) else None)
        _specs[env_id] = describe(env)
        env.close()
    return memory_estimate(_specs[env_id], config)


_specs: dict[str, Any] = {}
