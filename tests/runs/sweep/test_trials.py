"""Trials: their value by hand, when one is given up, and how they are written down."""

import json

import pytest

from cdqn.errors import CheckpointError
from cdqn.runs.sweep.trials import (
    JUDGES,
    Trial,
    best_of,
    is_beaten,
    limits_from,
    read_trials,
    value_curve,
    value_of,
    write_trials,
)


def complete(number, *means):
    return Trial(number, {}, state="complete", evaluations={1000: [(10 * i, mean) for i, mean in enumerate(means)]})


def test_value_is_the_mean_over_the_last_half():
    assert value_of([7.0]) == 7
    assert value_of([1.0, 3.0]) == 3
    assert value_of([0.0, 1.0, 4.0]) == 2.5
    assert value_of([100.0, 100.0, 4.0, 8.0]) == 6
    assert value_curve([1.0, 3.0, 5.0]) == [1, 3, 4]


def test_value_of_a_trial_is_the_mean_over_its_runs_when_all_are_there():
    trial = Trial(3, {}, evaluations={1000: [(10, 0.0), (20, 4.0)], 1001: [(10, 9.0), (20, 8.0)]})
    assert trial.value is None, "it is not complete"
    trial.state = "complete"
    assert trial.value == 6
    assert trial.steps == 40
    assert trial.curve == [0, 4], "that of the first seed"
    assert trial.run_name(1001) == "trial-003/seed1001"


def test_limits_are_medians_after_a_third_and_before_the_end():
    """Medians of 1, 2, 3, 10 times the course of a run, whose value so far is 1, 2, 2.5, 3.5, 4, 5."""
    trials = [complete(i, *(factor * t for t in range(1, 7))) for i, factor in enumerate((1, 2, 3, 10))]
    assert limits_from(trials) == [None, None, 2.5 * 2.5, 2.5 * 3.5, 2.5 * 4]
    assert limits_from(trials[: JUDGES - 1]) == [], "too few to judge"
    pruned = Trial(9, {}, state="pruned", evaluations={1000: [(10, 1e9)]})
    assert limits_from([*trials, pruned]) == limits_from(trials), "what was given up does not judge"


def test_run_is_beaten_only_below_a_limit():
    limits = [None, 5.0]
    assert not is_beaten([], limits)
    assert not is_beaten([-9.0], limits)
    assert is_beaten([9.0, 4.9], limits)
    assert not is_beaten([9.0, 5.0], limits), "as good as the median will do"
    assert not is_beaten([9.0, 9.0, 0.0], limits), "beyond the last limit"


def test_best_is_the_largest_value_and_the_first_of_equals():
    trials = [complete(0, 1.0), complete(1, 5.0), complete(2, 5.0), Trial(3, {})]
    assert best_of(trials).number == 1
    assert best_of([Trial(0, {})]) is None


def test_trials_are_read_back_as_they_were_written(tmp_path):
    assert read_trials(tmp_path) == []
    trials = [complete(0, 1.0, 2.5), Trial(1, {"n_step": 3}, [None, 2.0]), Trial(2, {}, state="failed", problem="no")]
    write_trials(tmp_path, trials)
    assert read_trials(tmp_path) == trials


GOOD = {"number": 0, "settings": {}, "limits": [], "state": "running", "evaluations": {}, "problem": None}


@pytest.mark.parametrize(
    "content",
    [
        {"a": 1},
        [3],
        [GOOD | {"number": 1}],
        [GOOD | {"state": "excellent"}],
        [GOOD | {"state": "complete"}],
        [GOOD | {"evaluations": {"x": []}}],
        [GOOD | {"evaluations": {"1000": [[1, "fast"]]}}],
        [GOOD | {"limits": "none"}],
        [GOOD | {"settings": 3}],
        [GOOD | {"problem": 3}],
        [{}],
    ],
)
def test_damaged_trials_are_named(tmp_path, content):
    (tmp_path / "trials.json").write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=r"trials\.json is damaged"):
        read_trials(tmp_path)
