"""`--vary`: values read as the settings are, crossed with algorithms, and what is refused."""

import pytest

from cdqn.errors import ConfigError
from cdqn.presets import make_config, without_idle
from cdqn.runs.variants import count_rows, cross, read_variations


def make(algorithm, variant):
    return make_config(algorithm, "classic-control", **without_idle(algorithm, variant)).resolved()


def crossed(algorithms, *texts):
    return cross(algorithms, read_variations(texts), make)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("target_period_updates=5, 20,100", [5, 20, 100]),
        ("target-period-updates=5", [5]),
        ("gamma=0.9,1", [0.9, 1.0]),
        ("horizon_multiplier=none,15", [None, 15.0]),
        ("dueling=on,false", [True, False]),
        ("double_q=True,no", [True, False]),
        ("loss=huber,mse", ["huber", "mse"]),
        ("hidden=64 64,128", [(64, 64), (128,)]),
        ("gradient_clip_norm=inf,10", [float("inf"), 10.0]),
        ("learning_rate_drops=[[0.5, 0.1]],[]", [[[0.5, 0.1]], []]),
        ('env_kwargs={"a": 1, "b": [2, 3]},{"a": 2}', ['{"a": 1, "b": [2, 3]}', '{"a": 2}']),
        ("steps=1000,2000", [1000, 2000]),
    ],
)
def test_values_are_read_with_the_type_of_the_setting(text, values):
    ((found),) = read_variations([text]).values()
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["target_period=5"], "did you mean target_period_updates?"),
        (["zzz=5"], "there is no setting 'zzz'"),
        (["gamma"], "value missing; write --vary gamma=0.9,0.99"),
        (["gamma="], "value missing"),
        (["gamma=0.9,,0.99"], "value missing"),
        (["=5"], "value missing"),
        (["gamma=0.9,0.90"], "0.90 is there twice"),
        (["gamma=0.9", "gamma=0.99"], "gamma has values from --vary already"),
        (["n_step=1,3"], "n_step has values from the flag --n-step already"),
        (["seed=1,2"], "give --seeds and --seed"),
        (["algorithm=cdqn,dqn"], "--algorithms"),
        (["log_period_steps=100,200"], "does not change what is learned"),
        (["network=no_such_module:make"], "no module 'no_such_module'"),
    ],
)
def test_what_cannot_be_varied_is_one_clear_line(texts, words):
    with pytest.raises(ConfigError) as error:
        read_variations(texts, given=["n_step"])
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("target_period_updates=5,0", "target_period_updates is 0: it must be a whole number of at least 1"),
        ("target_period_updates=five", "target_period_updates is 'five': it must be a whole number"),
        ("n_step=1,2.5", "n_step is 2.5: it must be a whole number"),
        ("gamma=2", "gamma is 2.0: it must be within [0, 1]"),
        ("dueling=maybe", "dueling is 'maybe': it must be True or False"),
        ("loss=huge", "loss is 'huge': it must be one of huber, mse"),
        ("hidden=64 many", "hidden is (64, 'many'): it must be widths"),
        ("env_kwargs={", "env_kwargs is '{', which is not JSON"),
        ("learning_rate_drops=[[", "learning_rate_drops is"),
    ],
)
def test_wrong_values_are_refused_in_the_words_of_the_setting(text, words):
    with pytest.raises(ConfigError) as error:
        crossed(["cdqn"], text)
    assert words in str(error.value)


def test_every_algorithm_has_every_combination():
    configs, left_out = crossed(["dqn", "cdqn"], "target_period_updates=5,20", "n_step=1,3")
    found = [(config.algorithm, config.target_period_updates, config.n_step) for config in configs]
    assert found == [(name, period, n) for name in ("dqn", "cdqn") for period in (5, 20) for n in (1, 3)]
    assert left_out == []


def test_setting_that_does_not_act_is_left_out_and_said():
    texts = ("target_period_updates=5,20", "n_step=1,3")
    configs, left_out = crossed(["cdqn", "rg"], *texts)
    rg = [(config.target_period_updates, config.n_step) for config in configs if config.algorithm == "rg"]
    assert rg == [(None, 1), (None, 3)]
    assert left_out == ["target_period_updates does not act on RG: it is run without"]
    assert count_rows(["cdqn", "rg"], read_variations(texts)) == len(configs) == 6


def test_values_that_cannot_go_together_leave_out_their_combination_alone():
    configs, left_out = crossed(["cdqn"], "replay=prioritized,uniform", "alpha=0.4,0.6")
    assert [(config.replay, config.alpha) for config in configs] == [("prioritized", 0.4), ("prioritized", 0.6)]
    assert len(left_out) == 2
    assert "C-DQN with replay uniform, alpha 0.4 is left out: uniform replay has no priorities" in left_out[0]


def test_algorithm_of_which_nothing_is_left_is_an_error():
    with pytest.raises(ConfigError, match=r"nothing is left of C-DQN to run; .* uniform replay has no priorities"):
        crossed(["cdqn"], "replay=uniform", "alpha=0.4,0.6")


def test_settings_that_are_wrong_by_themselves_are_an_error_and_not_left_out():
    def refuse(algorithm, variant):
        raise ConfigError("cannot work")

    for texts in ((), ("n_step=1,2", "gamma=0.9,0.99")):
        with pytest.raises(ConfigError, match=r"^cannot work"):
            cross(["cdqn"], read_variations(texts), refuse)


def test_variants_that_are_the_same_run_are_refused():
    with pytest.raises(ConfigError, match=r"two variants of cdqn are the same, gamma 0\.99"):
        crossed(["cdqn"], "gamma=none,0.99")


def test_without_variations_an_algorithm_is_itself():
    configs, left_out = cross(["cdqn", "rg"], {}, make)
    assert configs == [make("cdqn", {}), make("rg", {})]
    assert left_out == []
