"""Settings and command lines of all kinds: accepted and whole, or refused in one line; never a traceback."""

import dataclasses
import json
import math
from unittest import mock

import pytest
from fuzzing import examples
from hypothesis import given
from hypothesis import strategies as st

from cdqn.agent import Agent
from cdqn.cli import main as command_line
from cdqn.cli.main import main
from cdqn.config import Config
from cdqn.errors import ConfigError
from cdqn.presets import PRESETS

FIELDS = {field.name: field for field in dataclasses.fields(Config)}
# Without subnormal floats: runs of other tests in this process may have switched them off, for speed.
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_subnormal=False),
    st.text(max_size=8),
    st.lists(st.integers(-3, 300), max_size=4),
    st.sampled_from([0, 1, -1, 2**63, 10**400, math.inf, -math.inf, math.nan, "", "auto", b"x", (), {}, {1}]),
)
NEAR = st.one_of(
    st.integers(0, 200), st.floats(0, 2, allow_subnormal=False), st.sampled_from([32, 100, 1000, 0.5, 0.99, 1.0])
)
WORDS = st.sampled_from(
    [
        "huber",
        "mse",
        "fifo",
        "random",
        "uniform",
        "prioritized",
        "exact",
        "previous",
        "he",
        "pytorch",
        "floor",
        "original",
        "epsilon",
        "epsilon-z",
        "cdqn",
        "dqn",
        "rg",
        "on",
        "off",
        "cpu",
        "a:B",
    ]
)
ANY_SETTINGS = st.dictionaries(st.sampled_from(sorted(FIELDS)), st.one_of(NEAR, WORDS, st.booleans(), ODD), max_size=6)


@examples(300, in_round=800)
@given(ANY_SETTINGS)
def test_settings_are_refused_by_name_or_survive_the_way_through_a_file(values):
    try:
        config = Config(**values)
    except ConfigError as error:
        refusal = str(error)
    else:
        refusal = None
    if refusal is not None:
        assert any(name in refusal for name in (*values, "memory_size", "batch_size", "warmup_steps"))
        return
    resolved = config.resolved()
    assert resolved.resolved() == resolved
    again = Config.from_json(json.loads(json.dumps(resolved.to_json())), "a file")
    assert again == resolved
    _require_sound(resolved)


def _require_sound(config: Config) -> None:
    """What must be true of every configuration that was accepted."""
    for name in ("steps", "batch_size", "warmup_steps", "num_envs", "n_step", "memory_size", "log_period_steps"):
        assert type(getattr(config, name)) is int, name
        assert getattr(config, name) >= 1, name
    assert config.learning_rate > 0
    assert math.isfinite(config.learning_rate)
    assert config.gamma is None or 0 <= config.gamma <= 1
    assert config.memory_size >= config.batch_size
    assert 0 <= config.discard_fraction < 1
    assert config.epsilon_middle_fraction <= config.epsilon_final_fraction
    if config.algorithm == "rg":
        assert config.target_period_updates is None
        assert not config.double_q
    else:
        assert config.target_period_updates >= 1
    if config.replay == "uniform":
        assert config.alpha is config.beta_start is config.floor_divisor is None


FLAG_VALUES = st.one_of(
    st.integers(-2, 300).map(str), st.floats(allow_subnormal=False).map(str), st.text(max_size=6), WORDS,
    st.sampled_from(["--", "-1", "1e999", "nan", "module:Name", "..", "/", "\x1b[2J", "[red]", "None", "9" * 30]),
)  # fmt: skip
FLAGS = st.sampled_from(
    [f"--{name.replace('_', '-')}" for name in FIELDS] + ["--preset", "--until", "--out", "--nonsense"]
)
ENVIRONMENTS = st.sampled_from(
    ["CartPole-v1", "CartPole-v1", "CartPole", "nowhere", "", "a:b", "MinAtar/None-v1", "-x"]
)


@examples(60, in_round=150)
@given(ENVIRONMENTS, st.lists(st.tuples(FLAGS, FLAG_VALUES), max_size=4), st.sampled_from([None, *PRESETS]))
def test_command_line_ends_with_an_exit_code(env_id, flags, preset):
    """Up to the moment at which training would begin."""
    arguments = ["train", env_id, *(["--preset", preset] if preset else []), *(word for pair in flags for word in pair)]
    with (
        mock.patch("cdqn.runs.runner.train_run", side_effect=_begun),
        mock.patch.object(Agent, "from_config", side_effect=_begun),
    ):
        try:
            code = main(arguments)
        except SystemExit as leave:  # of the parser
            code = leave.code
        except _BegunError:
            code = 0
    assert code in (0, 1, 2), arguments


class _BegunError(Exception):
    pass


def _begun(*_: object, **__: object) -> None:
    raise _BegunError


COMMANDS = st.sampled_from([*command_line.COMMANDS, "trian", ""])
LOOSE = st.lists(
    st.one_of(FLAG_VALUES, st.sampled_from(["--help", "--seeds", "--jobs", "--steps", "--json"])), max_size=3
)


@examples(40, in_round=80)
@given(COMMANDS, LOOSE)
def test_no_command_falls_over_its_arguments(tmp_path_factory, command, rest):
    if command in ("demo", "reproduce", "suite", "compare", "train"):  # these would begin to work
        rest = [*rest, "--no-such-flag"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("empty"))
        try:
            code = main([command, *rest])
        except SystemExit as leave:
            code = leave.code
    assert code in (0, 1, 2), (command, rest)
