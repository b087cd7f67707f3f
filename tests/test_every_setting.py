"""Every setting of an agent acts, or is refused by its name: none is silently ignored."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cdqn
import own_pieces
from cdqn.errors import ConfigError
from helpers import CountingEnv, WalkEnv

BASE = {
    "seed": 3,
    "hidden": (6,),
    "warmup_steps": 40,
    "batch_size": 8,
    "memory_size": 60,
    "log_period_steps": 20,
    "target_period_updates": 7,
    "update_period_steps": 2,
    "n_step": 2,
    "learning_rate": 3e-2,
    "compile": "off",
    "evaluation_episodes": 1,
}
STEPS = 120


def scaled(env):
    """A wrapper that pays more."""
    return gym.wrappers.TransformReward(env, lambda reward: 3.0 * reward)


ACTS = {
    "seed": 4,
    "steps": 400,
    "gamma": 0.9,
    "normalize_observations": True,
    "normalize_rewards": False,
    "reward_clip": True,
    "n_step": 1,
    "hidden": (5,),
    "dueling": False,
    "initial_weights": "pytorch",
    "network": own_pieces.small_network,
    "loss": "mse",
    "value_transform": True,
    "double_q": False,
    "learning_rate": 1e-2,
    "learning_rate_decay": 1.0,
    "learning_rate_drops": ((0.1, 0.1),),
    "adam_epsilon": 1e-2,
    "batch_size": 9,
    "gradient_clip_norm": 1e-3,
    "update_period_steps": 3,
    "target_period_updates": 3,
    "target_copy": "exact",
    "warmup_steps": 44,
    "replay": "uniform",
    "memory_size": 30,
    "eviction": "random",
    "discard_fraction": 0.3,
    "alpha": 0.1,
    "beta_start": 0.9,
    "priority_scheme": "original",
    "priority_epsilon": 10.0,
    "floor_divisor": 1.5,
    "initial_priority": 0.1,
    "raise_predecessor": False,
    "exploration": "epsilon",
    "epsilon_middle": 0.9,
    "epsilon_final": 0.09,
    "epsilon_middle_fraction": 0.7,
    "epsilon_final_fraction": 1.0,
    "log_period_steps": 30,
    "evaluation_period_steps": 40,
}
"""Values that change what is learned or logged in a short run, on any environment."""
FROM_IDS = {"num_envs": 2, "env_kwargs": {"length": 9}, "wrapper": scaled}
"""What acts where cdqn makes the environment, and is refused where it was given."""
REFUSED = {"frame_size": (84, 84), "sticky_actions": 0.1, "time_limit_steps": 100, "channels": (4, 4, 4)}
"""What acts on games or images alone."""
ELSEWHERE = {
    "algorithm",
    "horizon_multiplier",
    "environment_timeout_seconds",
    "evaluation_episodes",
    "device",
    "compile",
}
"""Each has a test below."""
IN_FOLDERS = {"checkpoint_period_steps": 40, "candidate_period_steps": 40}


class Sized(WalkEnv):
    """A walk whose length can be chosen, with rewards that can be clipped."""

    def __init__(self, length=None):
        super().__init__()
        self.most, self.count = length, 0

    def reset(self, **arguments):
        self.count = 0
        return super().reset(**arguments)

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        self.count += 1
        return observation, 2.5 * reward, terminated, truncated or self.count == self.most, info


ENVIRONMENTS = {
    "id": lambda: f"{__name__}:Sized",
    "object": Sized,
    "vector": lambda: SyncVectorEnv([Sized] * 4, autoreset_mode=AutoresetMode.DISABLED),
}


def footprint(kind, **settings):
    """What a short run learns, logs and says at its end."""
    base = {name: value for name, value in BASE.items() if not ("network" in settings and name == "hidden")}
    agent = cdqn.CDQN(ENVIRONMENTS[kind](), **(base | settings))
    other = Sized() if kind == "vector" and "evaluation_period_steps" in settings else None
    agent.learn(STEPS, evaluation_env=other)
    rows = [{name: value for name, value in row.items() if name != "steps_per_second"} for row in agent.history]
    return agent.weights.tobytes(), repr(rows), agent.config.evaluation_episodes


@pytest.fixture(scope="module")
def plain():
    return {kind: footprint(kind) for kind in ENVIRONMENTS}


def test_no_setting_is_forgotten():
    tested = [*ACTS, *FROM_IDS, *REFUSED, *IN_FOLDERS, *ELSEWHERE]
    assert sorted(tested) == sorted(field.name for field in dataclasses.fields(cdqn.Config))


def test_run_repeats_itself(plain):
    """Else every setting would seem to act."""
    assert footprint("id") == plain["id"]


@pytest.mark.parametrize("name", ACTS)
def test_setting_acts(name, plain):
    kind = list(ENVIRONMENTS)[list(ACTS).index(name) % len(ENVIRONMENTS)]
    assert footprint(kind, **{name: ACTS[name]}) != plain[kind]


@pytest.mark.parametrize("name", FROM_IDS)
def test_setting_of_how_environments_are_made_acts_on_ids_and_is_refused_elsewhere(name, plain):
    value = {name: FROM_IDS[name]}
    assert footprint("id", **value) != plain["id"]
    for kind in ("object", "vector"):
        with pytest.raises(ConfigError, match=name):
            footprint(kind, **value)


@pytest.mark.parametrize("kind", ENVIRONMENTS)
@pytest.mark.parametrize("name", REFUSED)
def test_setting_of_images_and_games_is_refused(name, kind):
    with pytest.raises(ConfigError, match=name):
        footprint(kind, **{name: REFUSED[name]})


@pytest.mark.parametrize("kind", ENVIRONMENTS)
@pytest.mark.parametrize("name", IN_FOLDERS)
def test_setting_of_run_folders_is_refused_where_there_is_none(name, kind):
    with pytest.raises(ConfigError, match=rf"{name} acts on a run folder: learn\(120, run_folder="):
        footprint(kind, **{name: IN_FOLDERS[name]})


def test_settings_of_run_folders_act_there(tmp_path):
    agent = cdqn.CDQN(Sized(), **BASE, **IN_FOLDERS).learn(STEPS, run_folder=tmp_path / "run")
    steps = {path.name for path in (tmp_path / "run" / "checkpoints").iterdir()}
    assert steps == {"step-000000080", "step-000000120"}
    assert len(list((tmp_path / "run" / "candidates").iterdir())) == 2
    assert agent.steps == STEPS


def test_discount_found_by_itself_acts():
    settings = {name: value for name, value in BASE.items() if name != "n_step"} | {"normalize_rewards": False}
    agent = cdqn.CDQN(CountingEnv(), **settings, n_step=1, horizon_multiplier=5.0).learn(STEPS)
    assert "calibration" in {row["kind"] for row in agent.history}


def test_number_of_episodes_acts_in_every_evaluation():
    agent = cdqn.CDQN(Sized(), **(BASE | {"evaluation_episodes": 3, "evaluation_period_steps": 60})).learn(60)
    assert [row["episodes"] for row in agent.history if row["kind"] == "evaluation"] == [3]
    assert len(agent.evaluate().returns) == 3


def test_algorithm_device_and_way_of_updating_act():
    assert type(cdqn.Agent(Sized(), algorithm="dqn", **BASE)) is cdqn.Agent
    assert cdqn.Agent(Sized(), algorithm="dqn", **BASE).trainer.learner.algorithm.name == "dqn"
    assert cdqn.CDQN(Sized(), **BASE, device="cpu").trainer.learner.theta.device == torch.device("cpu")
    compiled = cdqn.CDQN(Sized(), **(BASE | {"compile": "on"}), steps=100)
    assert compiled.trainer.learner.backend == "compiled"


def test_limit_of_time_acts():
    agent = cdqn.CDQN(Sized(), **BASE, environment_timeout_seconds=7.0)
    assert agent.trainer.collector._call._limit_seconds == 7.0
    with pytest.raises(ConfigError, match="environment_timeout_seconds"):
        cdqn.CDQN(Sized(), **BASE, environment_timeout_seconds=np.inf)
