"""Figure 9: its curves as numbers, and verdicts that follow them."""

import numpy as np
import pytest

from cdqn.experiments.cooling.claims import CoolingRun, Measured, judge, judge_controllers, rows
from cdqn.report.statistics import Mean, mean_of
from cdqn.tasks.oscillator import CONTROL_PERIOD


def run_of(algorithm, seed, energies, final):
    tests = [Measured(18 * (i + 1), energy, 0.1) for i, energy in enumerate(energies)]
    return CoolingRun(algorithm, seed, tests, Measured(tests[-1].step, final, 0.01), failed=int(final > 1))


RUNS = [
    run_of("cdqn", 0, [9, 9, 1.0, 1.0], 0.75),
    run_of("cdqn", 1, [9, 9, 1.0, 1.2], 0.77),
    run_of("dqn", 0, [9, 9, 1.0, 3.0], 0.75),
    run_of("dqn", 1, [9, 9, 2.0, 2.0], 1.75),
]


def test_rows_have_a_line_for_each_seed_over_simulated_time():
    data = rows(RUNS)
    line = [row for row in data if (row.algorithm, row.setting, row.quantity) == ("dqn", "seed 1", "energy")]
    assert [row.step for row in line] == pytest.approx([1, 2, 3, 4])
    assert line[0].step == 18 * CONTROL_PERIOD
    assert [row.value for row in data if row.quantity == "final_energy"] == [0.75, 0.77, 0.75, 1.75]
    assert [row.value for row in data if row.quantity == "failed_episodes"] == [0, 0, 0, 1]


def test_spread_over_seeds_and_restlessness_are_judged():
    claims = judge(RUNS, "laptop")
    assert claims[0].found == "0.7600 ± 0.0100; seed by seed 0.7500, 0.7700"
    assert claims[1].found == "1.2500 ± 0.5000; seed by seed 0.7500, 1.7500 (1 failed)"
    assert claims[2].found == "C-DQN 0.0141, DQN 0.7071"
    assert claims[3].found == "C-DQN 0.0500, DQN 0.5000"
    assert [claim.holds for claim in claims] == [None, None, True, True]
    swapped = [run._replace(algorithm={"cdqn": "dqn", "dqn": "cdqn"}[run.algorithm]) for run in RUNS]
    assert [claim.holds for claim in judge(swapped, "paper")] == [None, None, False, False]
    assert [claim.holds for claim in judge(RUNS, "smoke")] == [None] * 4
    single = [run for run in RUNS if run.seed == 0]
    assert [claim.holds for claim in judge(single, "laptop")] == [None, None, None, True]  # no spread over one seed


def test_mean_has_its_standard_error():
    assert mean_of(np.array([1.0, 3.0])) == (2.0, 1.0)
    assert np.isnan(mean_of(np.array([1.0])).stderr)
    assert judge_controllers({"lqg": Mean(0.75, 0.001)})[0].found == "0.7500 ± 0.0010"
