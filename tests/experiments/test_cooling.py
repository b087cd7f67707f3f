"""Figure 9: exact resume of its runs, the numbers behind its claims, and the controllers beside them."""

import dataclasses

import numpy as np
import pytest

from cdqn.envs.oscillator import QuarticOscillatorVectorEnv
from cdqn.experiments import cooling
from cdqn.experiments.cooling import SCALES, Setting, measure_controller, train
from cdqn.experiments.cooling_claims import Measured, Run, judge, judge_controllers, rows
from cdqn.presets import make_config
from cdqn.report.statistics import Mean, mean_of
from cdqn.tasks.oscillator import CONTROL_PERIOD

TINY = Setting(
    runs=1,
    tests=3,
    test_episodes=2,
    final_episodes=4,
    changes={
        "steps": 600,
        "num_envs": 2,
        "warmup_steps": 100,
        "hidden": (8, 8),
        "batch_size": 16,
        "memory_size": 300,
        "update_period_steps": 16,
        "compile": "off",
    },
)


@pytest.fixture
def quick_tests(monkeypatch):
    """In place of whole episodes: numbers that depend on the policy, the episodes and the seed."""
    probes = np.random.default_rng(0).normal(size=(50, 20)).astype(np.float32)

    def energies(env, act, episodes, seed):
        assert env.energy_limit == 100
        return act(probes).mean() + np.arange(episodes) + seed

    monkeypatch.setattr(cooling, "late_energies", energies)


def test_a_killed_run_goes_on_as_if_nothing_had_happened(quick_tests, tmp_path):
    whole = train(TINY, "cdqn", 3, tmp_path / "whole")
    told = []

    def kill(done):
        told.append(done)
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(TINY, "cdqn", 3, tmp_path / "killed", kill)
    assert told == [1, 2]
    again = train(TINY, "cdqn", 3, tmp_path / "killed", told.append)
    assert told == [1, 2, 3, 3]
    assert again == whole
    assert [test.step for test in whole.tests] == [200, 400, 600]


def test_a_test_whose_agent_was_not_saved_is_done_again(quick_tests, tmp_path, monkeypatch):
    whole = train(TINY, "dqn", 0, tmp_path / "whole")
    saves = []
    save = cooling.Agent.save

    def fail_at_the_second(agent, path):
        saves.append(path)
        if len(saves) == 2:
            raise OSError("no space left")
        return save(agent, path)

    monkeypatch.setattr(cooling.Agent, "save", fail_at_the_second)
    with pytest.raises(OSError, match="no space"):
        train(TINY, "dqn", 0, tmp_path / "full")
    assert train(TINY, "dqn", 0, tmp_path / "full") == whole


def test_runs_of_a_scale_differ_in_the_seed_and_the_algorithm_alone(quick_tests, tmp_path):
    one = train(TINY, "cdqn", 0, tmp_path / "a")
    assert one != train(TINY, "cdqn", 1, tmp_path / "b")
    assert one != train(TINY, "dqn", 0, tmp_path / "c")


def test_the_last_test_is_the_longer_one(quick_tests, tmp_path):
    run = train(TINY, "cdqn", 0, tmp_path)
    assert run.final.energy == pytest.approx(run.tests[-1].energy + 1)  # mean of 0…3 in place of 0, 1
    assert run.failed == 4  # the seed is in these energies, far above the limit


@pytest.mark.parametrize("scale", SCALES)
def test_scales_are_configurations(scale):
    config = make_config("cdqn", cooling.PRESET, **SCALES[scale].changes)
    assert config.eviction == "random"
    assert config.gamma == 0.99
    assert config.steps % SCALES[scale].tests == 0


@pytest.mark.parametrize(("algorithm", "period"), [("cdqn", 7), ("dqn", 300)])
def test_an_algorithm_has_its_own_target_period_where_the_scale_says_so(algorithm, period):
    setting = dataclasses.replace(TINY, target_period_updates={"cdqn": 7})
    assert cooling._new_agent(setting, algorithm, 0).config.target_period_updates == period


def run_of(algorithm, seed, energies, final):
    tests = [Measured(18 * (i + 1), energy, 0.1) for i, energy in enumerate(energies)]
    return Run(algorithm, seed, tests, Measured(tests[-1].step, final, 0.01), failed=int(final > 1))


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


def test_a_controller_is_better_than_none():
    told = []
    assert measure_controller("semiclassical", 8, told.append).value < measure_controller("none", 8).value
    assert told == [1]


def test_leaving_it_alone_is_no_force():
    env = QuarticOscillatorVectorEnv(1)
    assert env.force_A[cooling._leave_alone(np.zeros((3, 20)))].tolist() == [0, 0, 0]
