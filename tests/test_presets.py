"""Presets: those of the paper against a table written by hand from its text, and how presets combine with the rest."""

import dataclasses
import re

import pytest

import cdqn
from cdqn.algorithms import ALGORITHMS
from cdqn.config import Config
from cdqn.envs import default_preprocessing
from cdqn.errors import ConfigError
from cdqn.presets import PRESETS, default_preset, get_preset, make_config, without_idle

# 100 to the powers 0.6 and 0.9
LOW_PRIORITY, HIGH_PRIORITY = pytest.approx(15.848931924611, rel=1e-12), pytest.approx(63.095734448019, rel=1e-12)

EVERYWHERE = {
    "num_envs": 4,
    "hidden": (512,),
    "channels": (32, 64, 64),
    "dueling": True,
    "double_q": True,
    "learning_rate_decay": 1.0,
    "batch_size": 32,
    "update_period_steps": 4,
    "target_copy": "previous",
    "warmup_steps": 50_000,
    "replay": "prioritized",
    "beta_start": 0.4,
    "epsilon_middle": 0.1,
    "epsilon_final": 0.01,
    "epsilon_middle_fraction": 0.02,
    "epsilon_final_fraction": 0.8,
    "candidate_period_steps": 10_000,
}

# Of each preset: what it resolves to, then ε_a of Adam for each algorithm that the paper ran.
# fmt: off
TABLE = {
    "paper-5.1": ({
        "steps": 50_000_000, "gamma": 0.99, "horizon_multiplier": None, "reward_clip": True,
        "loss": "huber", "value_transform": False, "learning_rate": 6.25e-5, "gradient_clip_norm": 10.0,
        "target_period_updates": 2_000, "memory_size": 1_000_000, "eviction": "fifo", "discard_fraction": 0.0,
        "alpha": 0.6, "priority_scheme": "floor", "priority_epsilon": 1e-10, "floor_divisor": 10.0,
        "initial_priority": LOW_PRIORITY, "raise_predecessor": True,
    }, {"cdqn": 5e-5, "dqn": 1.5e-4, "rg": 5e-6}),
    "paper-5.2-half-discard": ({
        "steps": 25_000_000, "gamma": 0.99, "horizon_multiplier": None, "reward_clip": True,
        "loss": "mse", "value_transform": False, "learning_rate": 6.25e-5, "gradient_clip_norm": 10.0,
        "target_period_updates": 2_000, "memory_size": 1_000_000, "eviction": "fifo", "discard_fraction": 0.5,
        "alpha": 0.6, "priority_scheme": "floor", "priority_epsilon": 1e-10, "floor_divisor": 10.0,
        "initial_priority": LOW_PRIORITY, "raise_predecessor": False,
    }, {"cdqn": 1.5e-4, "dqn": 1.5e-4}),
    "paper-5.2-random-replacement": ({
        "steps": 25_000_000, "gamma": 0.99, "horizon_multiplier": None, "reward_clip": True,
        "loss": "mse", "value_transform": False, "learning_rate": 6.25e-5, "gradient_clip_norm": 10.0,
        "target_period_updates": 2_000, "memory_size": 1_000_000, "eviction": "random", "discard_fraction": 0.0,
        "alpha": 0.6, "priority_scheme": "floor", "priority_epsilon": 1e-10, "floor_divisor": 10.0,
        "initial_priority": LOW_PRIORITY, "raise_predecessor": False,
    }, {"cdqn": 1.5e-4, "dqn": 1.5e-4}),
    "paper-5.2-small-fifo": ({
        "steps": 25_000_000, "gamma": 0.99, "horizon_multiplier": None, "reward_clip": True,
        "loss": "mse", "value_transform": False, "learning_rate": 6.25e-5, "gradient_clip_norm": 10.0,
        "target_period_updates": 2_000, "memory_size": 100_000, "eviction": "fifo", "discard_fraction": 0.0,
        "alpha": 0.6, "priority_scheme": "floor", "priority_epsilon": 1e-10, "floor_divisor": 10.0,
        "initial_priority": LOW_PRIORITY, "raise_predecessor": False,
    }, {"dqn": 1.5e-4}),
    "paper-5.2-small-random-replacement": ({
        "steps": 25_000_000, "gamma": 0.99, "horizon_multiplier": None, "reward_clip": True,
        "loss": "mse", "value_transform": False, "learning_rate": 6.25e-5, "gradient_clip_norm": 10.0,
        "target_period_updates": 2_000, "memory_size": 100_000, "eviction": "random", "discard_fraction": 0.0,
        "alpha": 0.6, "priority_scheme": "floor", "priority_epsilon": 1e-10, "floor_divisor": 10.0,
        "initial_priority": LOW_PRIORITY, "raise_predecessor": False,
    }, {"cdqn": 1.5e-4, "dqn": 1.5e-4}),
    "paper-5.3": ({
        "steps": 50_000_000, "gamma": None, "horizon_multiplier": 15.0, "reward_clip": False,
        "loss": "huber", "value_transform": True, "learning_rate": 4e-5, "gradient_clip_norm": 5.0,
        "target_period_updates": 2_000, "memory_size": 1_000_000, "eviction": "fifo", "discard_fraction": 0.0,
        "alpha": 0.9, "priority_scheme": "floor", "priority_epsilon": 1e-10, "floor_divisor": 10.0,
        "initial_priority": HIGH_PRIORITY, "raise_predecessor": True,
    }, {"cdqn": 1e-6, "dqn": 1e-6}),
    "paper-B.2": ({
        "steps": 50_000_000, "gamma": 0.99, "horizon_multiplier": None, "reward_clip": True,
        "loss": "huber", "value_transform": False, "learning_rate": 6.25e-5, "gradient_clip_norm": 10.0,
        "target_period_updates": 2_000, "memory_size": 1_000_000, "eviction": "fifo", "discard_fraction": 0.0,
        "alpha": 0.6, "priority_scheme": "floor", "priority_epsilon": 1e-10, "floor_divisor": 10.0,
        "initial_priority": LOW_PRIORITY, "raise_predecessor": True,
    }, {"cdqn": 5e-5, "dqn": 1.5e-4}),
    "paper-B.3-target-2000": ({
        "steps": 25_000_000, "gamma": 0.99, "horizon_multiplier": None, "reward_clip": True,
        "loss": "huber", "value_transform": False, "learning_rate": 6.25e-5, "gradient_clip_norm": 10.0,
        "target_period_updates": 2_000, "memory_size": 1_000_000, "eviction": "fifo", "discard_fraction": 0.0,
        "alpha": 0.6, "priority_scheme": "floor", "priority_epsilon": 1e-10, "floor_divisor": 10.0,
        "initial_priority": LOW_PRIORITY, "raise_predecessor": True,
    }, {"cdqn": 5e-5, "dqn": 1.5e-4}),
    "paper-B.3-target-200": ({
        "steps": 25_000_000, "gamma": 0.99, "horizon_multiplier": None, "reward_clip": True,
        "loss": "huber", "value_transform": False, "learning_rate": 6.25e-5, "gradient_clip_norm": 10.0,
        "target_period_updates": 200, "memory_size": 1_000_000, "eviction": "fifo", "discard_fraction": 0.0,
        "alpha": 0.6, "priority_scheme": "floor", "priority_epsilon": 1e-10, "floor_divisor": 10.0,
        "initial_priority": LOW_PRIORITY, "raise_predecessor": True,
    }, {"cdqn": 5e-5, "dqn": 1.5e-4}),
    "paper-B.3-target-20": ({
        "steps": 25_000_000, "gamma": 0.99, "horizon_multiplier": None, "reward_clip": True,
        "loss": "huber", "value_transform": False, "learning_rate": 6.25e-5, "gradient_clip_norm": 10.0,
        "target_period_updates": 20, "memory_size": 1_000_000, "eviction": "fifo", "discard_fraction": 0.0,
        "alpha": 0.6, "priority_scheme": "floor", "priority_epsilon": 1e-10, "floor_divisor": 10.0,
        "initial_priority": LOW_PRIORITY, "raise_predecessor": True,
    }, {"cdqn": 5e-5, "dqn": 1.5e-4}),
    "paper-B.5": ({
        "steps": 50_000_000, "gamma": None, "horizon_multiplier": 15.0, "reward_clip": False,
        "loss": "huber", "value_transform": True, "learning_rate": 2e-5, "gradient_clip_norm": 5.0,
        "target_period_updates": 2_000, "memory_size": 1_000_000, "eviction": "fifo", "discard_fraction": 0.0,
        "alpha": 0.9, "priority_scheme": "floor", "priority_epsilon": 1e-10, "floor_divisor": 10.0,
        "initial_priority": HIGH_PRIORITY, "raise_predecessor": True,
    }, {"cdqn": 1e-6}),
    "paper-E.2-epsilon-1e-8": ({
        "steps": 50_000_000, "gamma": 0.99, "horizon_multiplier": None, "reward_clip": True,
        "loss": "huber", "value_transform": False, "learning_rate": 6.25e-5, "gradient_clip_norm": 10.0,
        "target_period_updates": 2_000, "memory_size": 1_000_000, "eviction": "fifo", "discard_fraction": 0.0,
        "alpha": 0.6, "priority_scheme": "original", "priority_epsilon": 1e-8, "floor_divisor": None,
        "initial_priority": LOW_PRIORITY, "raise_predecessor": False,
    }, {"dqn": 1.5e-4}),
    "paper-E.2-epsilon-1e-6": ({
        "steps": 50_000_000, "gamma": 0.99, "horizon_multiplier": None, "reward_clip": True,
        "loss": "huber", "value_transform": False, "learning_rate": 6.25e-5, "gradient_clip_norm": 10.0,
        "target_period_updates": 2_000, "memory_size": 1_000_000, "eviction": "fifo", "discard_fraction": 0.0,
        "alpha": 0.6, "priority_scheme": "original", "priority_epsilon": 1e-6, "floor_divisor": None,
        "initial_priority": LOW_PRIORITY, "raise_predecessor": False,
    }, {"dqn": 1.5e-4}),
    "paper-E.2-epsilon-1e-4": ({
        "steps": 50_000_000, "gamma": 0.99, "horizon_multiplier": None, "reward_clip": True,
        "loss": "huber", "value_transform": False, "learning_rate": 6.25e-5, "gradient_clip_norm": 10.0,
        "target_period_updates": 2_000, "memory_size": 1_000_000, "eviction": "fifo", "discard_fraction": 0.0,
        "alpha": 0.6, "priority_scheme": "original", "priority_epsilon": 1e-4, "floor_divisor": None,
        "initial_priority": LOW_PRIORITY, "raise_predecessor": False,
    }, {"dqn": 1.5e-4}),
    "paper-E.3": ({
        "steps": 50_000_000, "gamma": None, "horizon_multiplier": 10.0, "reward_clip": False,
        "loss": "huber", "value_transform": True, "learning_rate": 4e-5, "gradient_clip_norm": 5.0,
        "target_period_updates": 2_000, "memory_size": 1_000_000, "eviction": "fifo", "discard_fraction": 0.0,
        "alpha": 0.9, "priority_scheme": "floor", "priority_epsilon": 1e-10, "floor_divisor": 10.0,
        "initial_priority": HIGH_PRIORITY, "raise_predecessor": True,
    }, {"cdqn": 1e-6}),
}
# fmt: on
GAMES = {
    "paper-5.1": "Pong SpaceInvaders",
    "paper-5.2-half-discard": "SpaceInvaders",
    "paper-5.2-random-replacement": "SpaceInvaders",
    "paper-5.2-small-fifo": "SpaceInvaders",
    "paper-5.2-small-random-replacement": "SpaceInvaders",
    "paper-5.3": "Skiing Tennis PrivateEye Venture",
    "paper-B.2": "Atlantis Breakout TimePilot VideoPinball Freeway FishingDerby",
    "paper-B.3-target-2000": "SpaceInvaders Hero",
    "paper-B.3-target-200": "SpaceInvaders Hero",
    "paper-B.3-target-20": "SpaceInvaders Hero",
    "paper-B.5": "Skiing",
    "paper-E.2-epsilon-1e-8": "SpaceInvaders",
    "paper-E.2-epsilon-1e-6": "SpaceInvaders",
    "paper-E.2-epsilon-1e-4": "SpaceInvaders",
    "paper-E.3": "SpaceInvaders Tennis MsPacman Hero Bowling Skiing Breakout",
}
EXPERIMENTS = [(preset, algorithm) for preset, (_, adam) in TABLE.items() for algorithm in adam]


def test_table_holds_every_preset_of_the_paper():
    papers = {name for name in PRESETS if name.startswith("paper-")}
    assert set(TABLE) == set(GAMES) == papers - {"paper-B.1"}


@pytest.mark.parametrize(("preset", "algorithm"), EXPERIMENTS)
def test_preset_has_the_values_of_the_paper_and_no_others(preset, algorithm):
    settings, adam_epsilon = TABLE[preset]
    expected = {"algorithm": algorithm, "adam_epsilon": adam_epsilon[algorithm], **EVERYWHERE, **settings}
    if algorithm == "rg":
        expected |= {"target_period_updates": None, "target_copy": None, "double_q": None}
    defaults = dataclasses.asdict(Config())
    assert dataclasses.asdict(make_config(algorithm, preset).resolved()) == defaults | expected


@pytest.mark.parametrize("algorithm", ["cdqn", "dqn"])
def test_preset_of_the_oscillator_has_the_values_of_the_paper(algorithm):
    found = get_preset("paper-B.1")
    assert (found.kind, found.games, found.algorithms) == ("vector", ("cdqn/QuarticOscillator-v0",), ("cdqn", "dqn"))
    config = make_config(algorithm, "paper-B.1").resolved()
    assert config.steps == 11_000 * 1800
    rates = [
        (round(11_000 * share), round(factor * config.learning_rate, 9)) for share, factor in config.learning_rate_drops
    ]
    assert config.learning_rate == 1e-3
    assert rates == [(1000, 4e-4), (2000, 8e-5), (5000, 2e-5), (7000, 4e-6), (8500, 8e-7), (10_000, 2e-7)]
    assert (config.batch_size, config.batch_size / config.update_period_steps) == (512, 8)
    assert (config.memory_size, config.eviction) == (5000 * 1800, "random")
    assert (config.gamma, config.target_period_updates, config.alpha) == (0.99, 300, 0.2)
    assert (config.epsilon_middle, config.epsilon_final) == (0.2, 0.004)
    assert (config.hidden[:2], config.initial_weights) == ((512, 512), "pytorch")


@pytest.mark.parametrize("preset", TABLE)
def test_preset_names_what_the_paper_ran(preset):
    found = get_preset(preset)
    assert found.kind == "atari"
    assert found.games == tuple(GAMES[preset].split())
    assert found.algorithms == tuple(TABLE[preset][1])
    assert found.seeds == (3 if preset in ("paper-5.3", "paper-B.5") else 1)


@pytest.mark.parametrize("preset", TABLE)
def test_games_of_the_paper_are_preprocessed_as_in_the_paper(preset):
    pytest.importorskip("ale_py")
    for game in get_preset(preset).games:
        assert default_preprocessing(game) == {
            "frame_size": (105, 80),
            "sticky_actions": 0.0,
            "time_limit_steps": 20_000,
        }


@pytest.mark.parametrize("preset", TABLE)
def test_epsilon_schedule_scales_with_the_budget(preset):
    config = make_config("dqn", preset)
    middle_step = round(config.epsilon_middle_fraction * config.steps)
    final_step = round(config.epsilon_final_fraction * config.steps)
    expected = {50_000_000: (1_000_000, 40_000_000), 25_000_000: (500_000, 20_000_000)}
    assert (middle_step, final_step) == expected[config.steps]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_valid_for_every_algorithm(preset, algorithm):
    assert set(get_preset(preset).algorithms) <= set(ALGORITHMS)
    config = make_config(algorithm, preset).resolved()
    assert config.algorithm == algorithm
    for name, value in get_preset(preset).settings.items():
        if name not in ALGORITHMS[algorithm].all_idle_settings():
            assert getattr(config, name) == value
    idle = (config.target_period_updates, config.target_copy, config.double_q)
    assert idle == (None, None, None) if algorithm == "rg" else None not in idle


@pytest.mark.parametrize("preset", PRESETS)
def test_what_the_user_sets_goes_before_every_preset(preset):
    config = make_config("dqn", preset, steps=123, adam_epsilon=0.25, target_period_updates=7)
    assert (config.steps, config.adam_epsilon, config.target_period_updates) == (123, 0.25, 7)


def test_unknown_preset_is_answered_with_the_names_there_are():
    with pytest.raises(ConfigError) as caught:
        make_config(preset="atary")
    assert all(name in str(caught.value) for name in ("atary", *PRESETS))


def test_preset_does_not_hide_a_users_setting_that_cannot_act():
    with pytest.raises(ConfigError, match="drop target_period_updates"):
        make_config("rg", "minatar", target_period_updates=10)


def test_residual_gradient_drops_target_settings_and_nothing_else():
    shared = {"target_period_updates": 20, "target_copy": "exact", "double_q": True, "alpha": 0.6}
    assert without_idle("rg", shared) == {"alpha": 0.6}
    assert without_idle("cdqn", shared) == without_idle("dqn", shared) == shared


def test_discount_beside_an_automatic_one_is_refused():
    for preset in (None, "paper-5.1", "paper-5.3"):
        with pytest.raises(ConfigError, match="horizon_multiplier finds γ by itself: drop gamma"):
            make_config("cdqn", preset, gamma=0.99, horizon_multiplier=15.0)
    assert make_config("cdqn", "paper-5.3", gamma=0.99, horizon_multiplier=None).gamma == 0.99


@pytest.mark.parametrize(
    ("preset", "settings", "dropped"),
    [
        ("classic-control", {"horizon_multiplier": 15.0}, {"n_step": 1, "normalize_rewards": False}),
        ("laptop", {"horizon_multiplier": 15.0}, {"gamma": None, "reward_clip": False, "n_step": 1}),
        ("paper-5.3", {"gamma": 0.9}, {"horizon_multiplier": None}),
        ("paper-5.3", {"n_step": 3, "normalize_rewards": True}, {"horizon_multiplier": None}),
        ("paper-5.1", {"replay": "uniform"}, {"alpha": None, "initial_priority": None}),
        ("paper-E.2-epsilon-1e-8", {"floor_divisor": 5.0}, {"priority_scheme": None}),
    ],
)
def test_preset_gives_way_to_what_is_at_odds_with_it_and_the_rest_of_it_stays(preset, settings, dropped):
    whole = make_config("cdqn", preset)
    with pytest.warns(UserWarning, match=f"dropped from preset {preset}: ") as caught:
        config = make_config("cdqn", preset, **settings)
    (message,) = [str(warning.message) for warning in caught]
    before, _, after = message.partition(" (at odds with ")
    assert set(re.findall(r"[a-z_]+(?= [\w.]+(?:,|$))", before.partition(": ")[2])) == set(dropped)
    assert all(name in after for name in settings)
    assert config == dataclasses.replace(whole, **settings, **dropped)


def test_nothing_is_said_of_a_preset_that_does_not_have_to_give_way(recwarn):
    make_config("cdqn", "classic-control", n_step=5, gamma=0.9, replay="uniform")
    make_config("rg", "paper-5.1")
    assert list(recwarn) == []


def test_python_and_shell_drop_the_same(capsys):
    from cdqn.cli.main import _parse

    with pytest.warns(UserWarning, match="dropped from preset classic-control: normalize_rewards True, n_step 3"):
        agent = cdqn.CDQN("CartPole-v1", horizon_multiplier=15.0, steps=2_000)
    with pytest.warns(UserWarning, match="dropped from preset classic-control: normalize_rewards True, n_step 3"):
        command = _parse(["train", "CartPole-v1", "--horizon-multiplier", "15", "--steps", "2000"])
    assert command.config.resolved() == agent.config


def test_presets_that_share_settings_do_not_share_changes():
    get_preset("paper-5.1").settings_of("dqn")["steps"] = 1
    assert make_config("dqn", "paper-5.1").steps == make_config("dqn", "paper-B.2").steps == 50_000_000


@pytest.mark.parametrize("preset", ["minatar", *TABLE])
def test_preset_is_refused_for_vector_observations(preset):
    wanted = "boards such as MinAtar's" if preset == "minatar" else "Atari games"
    with pytest.raises(ConfigError, match=rf"preset '{preset}' is for {wanted}, .*has vector observations"):
        cdqn.CDQN("CartPole-v1", preset=preset)


@pytest.mark.parametrize("preset", ["classic-control", "minatar"])
def test_preset_is_refused_for_atari(preset):
    pytest.importorskip("ale_py")
    with pytest.raises(ConfigError, match=f"preset '{preset}' is for .*has atari observations"):
        cdqn.CDQN("Pong", preset=preset)


def test_laptop_is_refused_elsewhere():
    with pytest.raises(ConfigError):
        cdqn.CDQN("CartPole-v1", preset="laptop")


@pytest.mark.parametrize(
    ("kind", "preset"),
    [
        ("vector", "classic-control"),
        ("discrete", "tabular"),
        ("board", "minatar"),
        ("image", "images"),
        ("atari", "laptop"),
    ],
)
def test_default_preset_is_one_of_its_kind(kind, preset):
    assert default_preset(kind) == preset
    assert get_preset(preset).kind == kind
