"""Control steps per second of the quartic oscillator (App. B.1) on one core, with and without its observation.

OMP_NUM_THREADS=1 python benchmarks/oscillator_speed.py [--rounds 7] [--seconds 0.5]

`state` is the physics alone, noise drawn beforehand; `env` is `QuarticOscillatorVectorEnv.step`: noise, energy, reward,
the 20 moments. Rounds of all sizes take turns, in CPU time, so that other programs on the machine disturb little; what
counts is the median round, and the slowest and fastest are its spread. Further: pictures and episodes begun per second.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy loads its BLAS: one core

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cdqn.envs.oscillator import QuarticOscillatorVectorEnv
from cdqn.tasks import oscillator as physics

RESULTS = Path(__file__).parent / "results" / "oscillator_speed.csv"
BATCHES = (1, 8, 32, 128, 512)
GOAL = 20_000
STILL = physics.NUM_ACTIONS // 2


def calls_per_second(function: Callable[[], object], seconds: float) -> float:
    begin, count = time.process_time(), 0
    while (passed := time.process_time() - begin) < seconds:
        function()
        count += 1
    return count / passed


def state_step(batch: int) -> Callable[[], object]:
    """The physics alone."""
    rng = np.random.default_rng(0)
    basis = physics.make_basis(40)
    propagator = physics.make_propagator(basis, 4, np.linspace(-5, 5, physics.NUM_ACTIONS))
    states = [physics.gaussian_packets(basis, rng.uniform(-1, 1, batch))]
    action, noise = np.full(batch, STILL), rng.standard_normal((batch, 4))

    def step() -> None:
        states[0] = physics.control_step(propagator, states[0], action, noise).amplitudes_BN

    return step


def env_step(batch: int) -> Callable[[], object]:
    """The environment; without force nothing ends before the time does, and a reset is a part of it."""
    env = QuarticOscillatorVectorEnv(batch, energy_limit=100.0)
    env.reset(seed=0)
    action = np.full(batch, STILL)

    def step() -> None:
        if (truncated := env.step(action)[3]).any():
            env.reset(options={"reset_mask": truncated})

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a round")
    arguments = parser.parse_args()
    runs = {}
    for batch in BATCHES:
        runs["state", "control steps per second", batch] = (state_step(batch), batch)
        runs["env", "control steps per second", batch] = (env_step(batch), batch)
    env = QuarticOscillatorVectorEnv(1, render_mode="rgb_array")
    env.reset(seed=0)
    env.render()  # loads matplotlib
    runs["render", "pictures per second", 1] = (env.render, 1)
    for batch in (1, 128):
        env = QuarticOscillatorVectorEnv(batch)
        runs["reset", "episodes begun per second", batch] = (env.reset, batch)
    rates: dict[tuple[str, str, int], list[float]] = {key: [] for key in runs}
    for _ in range(arguments.rounds):
        for key, (function, batch) in runs.items():
            rates[key].append(calls_per_second(function, arguments.seconds) * batch)
    rows = []
    print(f"{'what':<8}{'batch':>6}{'median':>12}{'lowest':>12}{'highest':>12}")
    for (what, unit, batch), values in rates.items():
        numbers = [round(float(value), 1) for value in (np.median(values), min(values), max(values))]
        print(f"{what:<8}{batch:>6}" + "".join(f"{number:>12,.0f}" for number in numbers) + f"  {unit}")
        rows.append((what, batch, unit, *numbers))
    best = max(row[3] for row in rows if row[0] == "env")
    print(f"with observation, best batch: {best:,.0f} control steps per second; promised {GOAL:,}")
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("what", "batch", "unit", "median", "lowest", "highest"))
        writer.writerows(rows)


if __name__ == "__main__":
    main()
