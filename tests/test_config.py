"""Configuration: what cannot work or cannot act is an error that names the setting."""

import contextlib
import dataclasses
import json
import math

import numpy as np
import pytest

import cdqn
from cdqn.algorithms import ALGORITHMS
from cdqn.config import Config
from cdqn.errors import CheckpointError, ConfigError
from cdqn.presets import make_config

NAN = float("nan")
COUNTS = (
    "steps",
    "num_envs",
    "n_step",
    "batch_size",
    "update_period_steps",
    "target_period_updates",
    "warmup_steps",
    "memory_size",
    "log_period_steps",
    "checkpoint_period_steps",
    "evaluation_period_steps",
    "evaluation_episodes",
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gamma", -0.1),
        ("gamma", 1.001),
        ("gamma", NAN),
        ("gamma", "0.9"),
        ("learning_rate", 0.0),
        ("learning_rate", -1e-3),
        ("learning_rate", math.inf),
        ("learning_rate", NAN),
        ("learning_rate_drops", 0.5),
        ("learning_rate_drops", (0.5, 0.1)),
        ("learning_rate_drops", ((0.5,),)),
        ("learning_rate_drops", ((0.5, "a"),)),
        ("learning_rate_drops", ((0.5, 0.0),)),
        ("learning_rate_drops", ((1.5, 0.1),)),
        ("learning_rate_drops", ((0.0, 0.1),)),
        ("learning_rate_drops", ((0.5, 0.1), (0.5, 0.01))),
        ("adam_epsilon", 0.0),
        ("gradient_clip_norm", 0.0),
        ("gradient_clip_norm", NAN),
        ("gradient_clip_norm", "ten"),
        ("discard_fraction", 1.0),
        ("discard_fraction", -0.1),
        ("alpha", 1.1),
        ("beta_start", -0.1),
        ("priority_epsilon", 0.0),
        ("floor_divisor", 1.0),
        ("epsilon_middle", 0.0),
        ("epsilon_final", 1.5),
        ("epsilon_middle_fraction", -0.5),
        ("seed", -1),
        ("seed", 1.5),
        ("hidden", ()),  # a table, which has no dueling streams
        ("hidden", (64, 0)),
        ("hidden", (64.0,)),
        ("hidden", 64),
        ("algorithm", "ddqn"),
        ("loss", "l1"),
        ("target_copy", "soft"),
        ("replay", "rank"),
        ("eviction", "lifo"),
        ("priority_scheme", "rank"),
        ("compile", "yes"),
        ("dueling", "no"),
        ("value_transform", "no"),
        ("double_q", "no"),
        ("normalize_rewards", "yes"),
        ("exploration", "softmax"),
    ]
    + [(name, value) for name in COUNTS for value in (0, -1, 2.5, NAN)],
)
def test_value_out_of_range_is_refused_by_name(name, value):
    with pytest.raises(ConfigError, match=rf"^{name} is "):
        Config(**{name: value})


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 1, 0])
def test_discounts_from_0_to_1_are_allowed(gamma):
    assert Config(gamma=gamma).gamma == gamma


def test_numbers_from_numpy_are_numbers():
    config = Config(steps=np.int64(500), gamma=np.float64(0.9), seed=np.int64(3))
    assert (config.steps, config.gamma, config.seed) == (500, 0.9, 3)


@pytest.mark.parametrize("setting", [{"double_q": True}, {"target_period_updates": 10}, {"target_copy": "exact"}])
def test_rg_refuses_settings_of_the_target_network(setting):
    with pytest.raises(ConfigError, match=f"rg has no target network: drop {next(iter(setting))}"):
        Config(algorithm="rg", **setting)


@pytest.mark.parametrize(
    "setting",
    [
        {"alpha": 0.6},
        {"beta_start": 0.4},
        {"priority_scheme": "floor"},
        {"priority_epsilon": 1e-6},
        {"floor_divisor": 10.0},
        {"raise_predecessor": False},
    ],
)
def test_uniform_replay_refuses_settings_of_priorities(setting):
    with pytest.raises(ConfigError, match=f"uniform replay has no priorities: drop {next(iter(setting))}"):
        Config(replay="uniform", **setting)


def test_original_scheme_refuses_the_floor():
    with pytest.raises(ConfigError, match="floor_divisor"):
        Config(priority_scheme="original", floor_divisor=10.0)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"memory_size": 31, "batch_size": 32}, "memory_size is 31"),
        ({"warmup_steps": 31, "batch_size": 32}, "warmup_steps is 31"),
        ({"warmup_steps": 50, "batch_size": 32, "discard_fraction": 0.5}, "warmup_steps is 50"),
        ({"epsilon_middle_fraction": 0.9, "epsilon_final_fraction": 0.8}, "epsilon_middle_fraction 0.9"),
        ({"horizon_multiplier": 15.0, "n_step": 3}, "horizon_multiplier .* n_step 3"),
        ({"horizon_multiplier": 15.0, "normalize_rewards": True}, "horizon_multiplier .* drop normalize_rewards"),
    ],
)
def test_contradictory_settings_are_refused_by_name(settings, named):
    with pytest.raises(ConfigError, match=named):
        Config(**settings)


def test_exact_copy_after_every_update_is_refused_where_it_undoes_the_algorithm():
    with pytest.raises(ConfigError, match=r"C-DQN becomes DQN: raise target_period_updates.*target_copy previous"):
        Config(target_copy="exact", target_period_updates=1)
    for settings in (
        {"target_copy": "exact", "target_period_updates": 2},
        {"target_copy": "previous", "target_period_updates": 1},
        {"target_copy": "exact", "target_period_updates": 1, "algorithm": "dqn"},
    ):
        assert Config(**settings).resolved().target_copy == settings["target_copy"]


def test_resolved_fills_in_what_acts_and_leaves_out_what_cannot():
    cdqn_config = Config().resolved()
    assert (cdqn_config.double_q, cdqn_config.target_period_updates) == (True, 100)
    assert (cdqn_config.target_copy, cdqn_config.alpha, cdqn_config.beta_start) == ("previous", 0.6, 0.4)
    assert (cdqn_config.priority_scheme, cdqn_config.priority_epsilon) == ("floor", 1e-10)
    assert (cdqn_config.floor_divisor, cdqn_config.raise_predecessor) == (10.0, True)
    rg = Config(algorithm="rg", replay="uniform").resolved()
    assert (rg.double_q, rg.target_period_updates, rg.target_copy, rg.alpha) == (None, None, None, None)
    assert Config(priority_scheme="original").resolved().floor_divisor is None


def test_resolved_keeps_what_was_set():
    config = Config(double_q=False, raise_predecessor=False, beta_start=0.0, alpha=0.0).resolved()
    assert (config.double_q, config.raise_predecessor, config.beta_start, config.alpha) == (False, False, 0.0, 0.0)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("replay", ["prioritized", "uniform"])
def test_resolving_twice_changes_nothing(algorithm, replay):
    config = Config(algorithm=algorithm, replay=replay).resolved()
    assert config.resolved() == config


@pytest.mark.parametrize(
    "config",
    [
        Config(),
        Config().resolved(),
        Config(algorithm="rg", replay="uniform", hidden=(8,), gradient_clip_norm=math.inf).resolved(),
        Config(hidden=[32, 32]),
        Config(learning_rate_drops=[[0.5, 0.1], [0.9, 0.01]]),
    ],
    ids=["default", "resolved", "rg", "hidden as a list", "drops as lists"],
)
def test_configuration_goes_round_through_json(config):
    text = json.dumps(config.to_json())
    assert Config.from_json(json.loads(text), "config.json") == config


def test_file_with_foreign_settings_is_refused_by_name():
    with pytest.raises(CheckpointError, match=r"run/config\.json.*momentum"):
        Config.from_json({"momentum": 0.9}, "run/config.json")


@pytest.mark.parametrize("damage", [{"gamma": 7}, {"hidden": 5}, {"hidden": None}, {"steps": "many"}])
def test_damaged_file_is_refused_by_name(damage):
    with pytest.raises(CheckpointError, match=r"run/config\.json is damaged"):
        Config.from_json(damage, "run/config.json")


def test_config_cannot_be_changed_afterwards():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().gamma = 0.5


def test_unknown_setting_is_answered_with_the_nearest_one():
    with pytest.raises(ConfigError, match="'learning_rat': did you mean learning_rate"):
        make_config(learning_rat=1e-3)
    with pytest.raises(ConfigError, match="no setting 'xyzzy'"):
        cdqn.CDQN("CartPole-v1", xyzzy=1)


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Config) if field.default is not None])
def test_none_is_refused_by_name_where_it_has_no_meaning(name):
    with pytest.raises(ConfigError, match=f"{name} is None"):
        Config(**{name: None})


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Config)])
@pytest.mark.parametrize("value", ["x", [], {}, object(), (1, "a"), 1j, b"1", 10**400, -(10**400), np.zeros(2)])
def test_wrong_type_is_a_configuration_error_and_never_another(name, value):
    with contextlib.suppress(ConfigError):  # a few of them fit a few settings
        Config(**{name: value})


@pytest.mark.parametrize("name", ["steps", "learning_rate", "n_step", "seed"])
def test_true_is_no_number(name):
    with pytest.raises(ConfigError, match=f"{name} is True"):
        Config(**{name: True})


@pytest.mark.parametrize("settings", [{"num_envs": 4097}, {"num_envs": 10**20}, {"hidden": (10**19,)}])
def test_absurd_sizes_are_refused(settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        Config(**settings)


def test_table_is_asked_for_by_no_hidden_layers_and_not_by_what_is_no_list():
    assert Config(hidden=(), dueling=False).hidden == ()
    with pytest.raises(ConfigError, match="hidden"):
        Config(hidden=64, dueling=False)
