"""What of an event is a number that can be plotted."""

import numpy as np

from cdqn.integrations.scalars import scalars
from cdqn.training.events import Episode, Evaluated, EvaluationResult, Warned
from helpers import progress


def test_numbers_are_named_by_kind_and_quantity_without_step_and_text():
    assert scalars(Episode(7, 0, 12.5, 30, "truncated")) == {
        "episode/return": 12.5,
        "episode/env": 0.0,
        "episode/length": 30.0,
    }


def test_what_is_not_known_yet_is_left_out():
    numbers = scalars(progress(loss=None))
    assert "progress/loss" not in numbers
    assert numbers["progress/dqn_share"] == 0.7
    assert all(type(value) is float for value in numbers.values())


def test_lists_and_messages_are_no_numbers():
    evaluated = Evaluated(5, EvaluationResult(np.array([1.0, 3.0]), np.array([4, 6]), 0.0))
    assert {"evaluation/returns", "evaluation/lengths"}.isdisjoint(scalars(evaluated))
    assert scalars(evaluated)["evaluation/mean"] == 2.0
    assert scalars(Warned(5, "slow", "slow")) == {}
