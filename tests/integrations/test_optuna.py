"""What Optuna proposes: a function of the past and a seed, and of nothing else."""

import logging
import sys

import pytest

from cdqn.errors import MissingPackageError
from cdqn.integrations.optuna import Past, require_optuna, suggest
from cdqn.runs.sweep.space import Choice, Range

SPACE = {
    "learning_rate": Range(1e-4, 1e-2, log=True, integer=False),
    "n_step": Range(1, 5, log=False, integer=True),
    "hidden": Choice(((64, 64), (8,))),
}


def past(count=12):
    """A larger step size was better, in one shape of the network."""
    rates = [1e-4 * 100 ** (i / (count - 1)) for i in range(count)]
    return [
        Past({"learning_rate": rate, "n_step": 3, "hidden": (8,) if i % 2 else (64, 64)}, "complete", rate, [rate])
        for i, rate in enumerate(rates)
    ]


def test_same_past_and_seed_give_the_same_settings_and_other_seeds_others():
    assert suggest(SPACE, past(), seed=3) == suggest(SPACE, past(), seed=3)
    assert len({suggest(SPACE, [], seed)["learning_rate"] for seed in range(5)}) == 5


def test_values_are_of_the_space_and_as_short_as_one_types_them():
    for seed in range(10):
        found = suggest(SPACE, [], seed)
        assert list(found) == list(SPACE)
        assert all(value in SPACE[name] for name, value in found.items())
        assert float(f"{found['learning_rate']:.4g}") == found["learning_rate"]
        assert type(found["n_step"]) is int


def test_search_leans_to_what_was_good():
    blind = [suggest(SPACE, [], seed)["learning_rate"] for seed in range(8)]
    informed = [suggest(SPACE, past(), seed)["learning_rate"] for seed in range(8)]
    assert sorted(informed)[4] > 2 * sorted(blind)[4]


def test_pruned_and_running_trials_and_values_outside_of_the_space_are_taken():
    odd = [
        Past({"learning_rate": 0.5, "n_step": 99, "hidden": (128, 128)}, "complete", 1.0, [1.0]),
        Past({"learning_rate": 1e-3, "n_step": 1, "hidden": (8,)}, "pruned", None, [0.1, 0.2]),
        Past({"learning_rate": 1e-3, "n_step": 2, "hidden": (8,)}, "running", None, []),
    ]
    assert suggest(SPACE, past() + odd, seed=0).keys() == SPACE.keys()


def test_pruned_trials_count_as_worse_than_complete_ones():
    pruned = [trial._replace(state="pruned", value=None, curve=[100.0]) for trial in past()[:6]]
    informed = [suggest(SPACE, pruned + past()[6:], seed)["learning_rate"] for seed in range(8)]
    assert sorted(informed)[4] > 1e-3, "what was given up, with its high early values, was leant to"


def test_words_of_optuna_are_left_as_their_owner_has_them(capfd):
    import optuna

    optuna.logging.set_verbosity(logging.INFO)
    suggest(SPACE, past(), seed=0)
    assert optuna.logging.get_verbosity() == logging.INFO
    assert capfd.readouterr().err == ""


def test_missing_package_is_named_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingPackageError, match=r"a sweep needs optuna: pip install 'cdqn\[sweep\]'"):
        require_optuna()
