"""Figure 9 as numbers: its curves, and what the paper says of them beside what came out."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cdqn.algorithms import ALGORITHMS
from cdqn.report.reproduction import Claim, Point
from cdqn.report.statistics import Mean, mean_of
from cdqn.tasks.oscillator import CONTROL_PERIOD, ground_state_energy


class Measured(NamedTuple):
    """The greedy policy after so many steps: mean energy over test episodes."""

    step: int
    energy: float
    stderr: float


class CoolingRun(NamedTuple):
    """One run: its tests during training, and the longer one at the end."""

    algorithm: str
    seed: int
    tests: list[Measured]
    final: Measured
    failed: int
    """Episodes of the last test that went beyond the energy limit, and count with it."""


def rows(runs: Sequence[CoolingRun]) -> list[Point]:
    """One curve for each run, over the simulated time of the training; the last test has a quantity of its own."""
    data = []
    for run in runs:
        for quantity, tests in (("energy", run.tests), ("final_energy", [run.final])):
            data += [
                Point(run.algorithm, f"seed {run.seed}", test.step * CONTROL_PERIOD, quantity, test.energy, test.stderr)
                for test in tests
            ]
        step = run.final.step * CONTROL_PERIOD
        data.append(Point(run.algorithm, f"seed {run.seed}", step, "failed_episodes", run.failed, 0.0))
    return data


def judge(runs: Sequence[CoolingRun], scale: str) -> list[Claim]:
    """What App. B.1 says, with verdicts except at "smoke"; final energies are of the last test of each run."""
    final = {name: np.array([run.final.energy for run in runs if run.algorithm == name]) for name in ("cdqn", "dqn")}
    spread = {
        name: float(energy_S.std(ddof=1)) if len(energy_S) > 1 else float("nan") for name, energy_S in final.items()
    }
    restless = {name: _restlessness([run for run in runs if run.algorithm == name]) for name in final}
    claims = [
        Claim(
            f"{ALGORITHMS[name].label}: final energy, mean over {len(energy_S)} seeds",
            f"above {ground_state_energy():.4f}, the ground state",
            f"{mean_of(energy_S):.4f}; seed by seed {', '.join(_final(run) for run in runs if run.algorithm == name)}",
            None,
        )
        for name, energy_S in final.items()
    ]
    claims += [
        Claim(
            "C-DQN's runs end alike, DQN's do not: standard deviation of the final energy over seeds",
            "C-DQN below DQN",
            f"C-DQN {spread['cdqn']:.4f}, DQN {spread['dqn']:.4f}",
            spread["cdqn"] < spread["dqn"] if min(map(len, final.values())) > 1 else None,
        ),
        Claim(
            "DQN's learning curves fluctuate: standard deviation within a run over the last half of its tests, median",
            "C-DQN below DQN",
            f"C-DQN {restless['cdqn']:.4f}, DQN {restless['dqn']:.4f}",
            restless["cdqn"] < restless["dqn"],
        ),
    ]
    return claims if scale != "smoke" else [claim._replace(holds=None) for claim in claims]


def judge_controllers(energies: Mapping[str, Mean]) -> list[Claim]:
    """The table of controllers: numbers to compare with, nothing is claimed of them."""
    expected = f"above {ground_state_energy():.4f}, the ground state"
    return [Claim(f"energy with {name} control", expected, f"{energy:.4f}", None) for name, energy in energies.items()]


def _final(run: CoolingRun) -> str:
    return f"{run.final.energy:.4f}" + (f" ({run.failed} failed)" if run.failed else "")


def _restlessness(runs: Sequence[CoolingRun]) -> float:
    late = [[test.energy for test in run.tests[len(run.tests) // 2 :]] for run in runs]
    return float(np.median([np.std(energies) for energies in late])) if late else float("nan")
