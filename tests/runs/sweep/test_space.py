"""The space of a sweep: every form that is understood, and for every mistake the word that helps."""

import math
import tomllib

import pytest

from cdqn.algorithms import ALGORITHMS
from cdqn.config import Config
from cdqn.errors import ConfigError
from cdqn.presets import DEFAULT_PRESETS, make_config
from cdqn.runs.sweep.space import (
    NOT_SEARCHED,
    Choice,
    Range,
    parse_space,
    read_space,
    size_of,
    space_json,
    space_toml,
    usual_space,
)

BASE = Config()
EVERY_FORM = """
learning_rate = {low = 1e-4, high = 1e-2, log = true}
n_step = {low = 1, high = 5}
gamma = {low = 0, high = 1}
target_period_updates = {values = [5, 20, 100]}
batch_size = [16, 32]
hidden = [[64, 64], [128]]
dueling = [true, false]
loss = ["huber", "mse"]
[alpha]
low = 0.2
high = 0.9
"""


def parse(text, base=BASE, given=()):
    return parse_space(tomllib.loads(text), base, "space.toml", given)


def test_every_form_is_understood():
    assert parse(EVERY_FORM) == {
        "learning_rate": Range(1e-4, 1e-2, log=True, integer=False),
        "n_step": Range(1, 5, log=False, integer=True),
        "gamma": Range(0.0, 1.0, log=False, integer=False),
        "target_period_updates": Choice((5, 20, 100)),
        "batch_size": Choice((16, 32)),
        "hidden": Choice(((64, 64), (128,))),
        "dueling": Choice((True, False)),
        "loss": Choice(("huber", "mse")),
        "alpha": Range(0.2, 0.9, log=False, integer=False),
    }


def test_written_space_is_read_back_as_it_was():
    space = parse(EVERY_FORM)
    assert parse(space_toml(space)) == space
    assert parse_space(space_json(space), BASE, "sweep.json") == space


def test_size_is_the_number_of_different_trials():
    assert size_of(parse("n_step = {low = 1, high = 5}\nbatch_size = [16, 32]")) == 10
    assert size_of(parse("learning_rate = {low = 1e-4, high = 1e-2}")) == math.inf


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty, there is nothing to search: write lines such as learning_rate ="),
        ("learning_rat = [1e-3, 1e-4]", "no setting 'learning_rat': did you mean learning_rate"),
        ("gamma = [0.9, 1.5]", r"gamma is 1.5: it must be within \[0, 1\]"),
        ("gamma = {low = 0.9, high = 1.5}", "gamma is 1.5"),
        ("gamma = 0.9", "neither a list of values.* use the flag --gamma"),
        ("gamma = [0.9]", "from 2 to 100 different values; for a fixed one use the flag --gamma"),
        ("n_step = [1, 1]", "different values"),
        ("n_step = [1, 2.5]", "n_step is 2.5: it must be a whole number"),
        ("n_step = [2, true]", "True is no value of n_step"),
        ("n_step = {low = 1, high = 2.5}", "low and high must be whole numbers"),
        ("n_step = {low = 1}", "low and high must be"),
        ("n_step = {low = 1, high = 3, step = 2}", "a range has low, high and log, not 'step'"),
        ("n_step = {values = [1, 2], low = 1}", "neither a list"),
        ("gamma = {low = 0.9, high = nan}", "must be numbers"),
        ("learning_rate = {low = 1e-2, high = 1e-4}", "low must be below high"),
        ("gamma = {low = 0, high = 1, log = true}", "above 0 with log"),
        ("dueling = {low = 0, high = 1}", r"a range is of numbers.* dueling = \[\.\.\.\]"),
        ("dueling = [0, 1]", "dueling is 0: it must be True or False"),
        ("loss = ['huber', 'hubert']", "loss is 'hubert': it must be one of huber, mse"),
        ("hidden = [64, 128]", r"hidden = \[\[64, 64\], \[128, 128\]\]"),
        ("hidden = {low = 16, high = 64}", "a range is of numbers"),
        ("replay = ['uniform', 'evil:Memory']", "'evil:Memory' is code"),
        ("replay = ['uniform', 'prioritized']\nalpha = [0.5, 0.6]", "do not go together: uniform replay has no prior"),
        ("warmup_steps = [50, 1000]\nbatch_size = [16, 128]", "warmup_steps 50 and batch_size 128 do not go together"),
        ("warmup_steps = [1000, 50000]", "nothing would be learned"),
        ("seed = [0, 1]", "seed cannot be searched: the runs of a sweep are measured alike"),
        ("algorithm = ['dqn', 'cdqn']", "sweep each algorithm by itself"),
        ("env_kwargs = ['{}', '{\"a\": 1}']", "changes the task"),
    ],
)
def test_mistakes_are_told_before_anything_is_trained(text, words):
    with pytest.raises(ConfigError, match=words) as told:
        parse(text)
    assert "space.toml" in str(told.value)
    assert "\n" not in str(told.value)


def test_setting_that_cannot_act_is_the_settings_own_error():
    with pytest.raises(ConfigError, match="rg has no target network: drop target_period_updates"):
        parse("target_period_updates = [5, 20]", make_config("rg"))


def test_setting_that_is_given_and_searched_is_refused():
    with pytest.raises(ConfigError, match=r"n_step is searched by space.toml, and given as a flag: drop one"):
        parse("n_step = [1, 3]", given=["n_step"])


def test_settings_that_are_not_searched_exist():
    assert set(NOT_SEARCHED) <= set(vars(BASE))


@pytest.mark.parametrize(
    ("content", "words"), [(b"n_step = [1,", "not TOML"), (b"\xff\xfe", "not TOML"), (None, "No such file")]
)
def test_file_that_cannot_be_read_is_told(tmp_path, content, words):
    path = tmp_path / "space.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=words) as told:
        read_space(path)
    assert "space.toml" in str(told.value)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("kind", "preset"), DEFAULT_PRESETS.items())
def test_usual_space_holds_what_acts_and_the_defaults_are_within_it(algorithm, kind, preset):
    base = make_config(algorithm, preset)
    space = usual_space(kind, base)
    wanted = ["learning_rate", "target_period_updates", "n_step", "batch_size", "gamma", "hidden"]
    idle = {"target_period_updates"} if algorithm == "rg" else set()
    idle |= {"hidden"} if kind == "discrete" else set()  # a table has no layers
    assert list(space) == [name for name in wanted if name not in idle]
    resolved = base.resolved()
    assert [name for name, dimension in space.items() if getattr(resolved, name) not in dimension] == []


def test_usual_space_leaves_out_what_is_given_and_what_cannot_work():
    space = usual_space("vector", Config(warmup_steps=40), given=["gamma", "hidden"])
    assert space["batch_size"] == Choice((16, 32)), "the first update needs a whole batch"
    assert "gamma" not in space
    assert "gamma" not in usual_space("vector", Config(horizon_multiplier=15.0))
    with pytest.raises(ConfigError, match="name others in a file"):
        usual_space("vector", BASE, given=[*usual_space("vector", BASE)])
