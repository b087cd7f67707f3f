"""The runs of figure 9: exact resume, their settings, and the controllers beside them."""

import dataclasses

import numpy as np
import pytest

from cdqn.envs.oscillator import QuarticOscillatorVectorEnv
from cdqn.experiments.cooling import runs as module
from cdqn.experiments.cooling.runs import SCALES, CoolingSetting, measure_controller, train
from cdqn.presets import make_config

TINY = CoolingSetting(
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

    monkeypatch.setattr(module, "late_energies", energies)


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
    save = module.Agent.save

    def fail_at_the_second(agent, path):
        saves.append(path)
        if len(saves) == 2:
            raise OSError("no space left")
        return save(agent, path)

    monkeypatch.setattr(module.Agent, "save", fail_at_the_second)
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
    config = make_config("cdqn", module.PRESET, **SCALES[scale].changes)
    assert config.eviction == "random"
    assert config.gamma == 0.99
    assert config.steps % SCALES[scale].tests == 0


@pytest.mark.parametrize(("algorithm", "period"), [("cdqn", 7), ("dqn", 300)])
def test_an_algorithm_has_its_own_target_period_where_the_scale_says_so(algorithm, period):
    setting = dataclasses.replace(TINY, target_period_updates={"cdqn": 7})
    assert module._new_agent(setting, algorithm, 0).config.target_period_updates == period


def test_a_controller_is_better_than_none():
    told = []
    assert measure_controller("semiclassical", 8, told.append).value < measure_controller("none", 8).value
    assert told == [1]


def test_leaving_it_alone_is_no_force():
    env = QuarticOscillatorVectorEnv(1)
    assert env.force_A[module._leave_alone(np.zeros((3, 20)))].tolist() == [0, 0, 0]
