"""Each rule of App. E.2 on numbers worked out by hand."""

import numpy as np
import pytest

from cdqn.replay import priorities


def test_priority_adds_epsilon_before_the_exponent():
    values = priorities.priority(np.array([0.0, 3.0, 15.0]), epsilon=1.0, alpha=0.5)
    np.testing.assert_allclose(values, [1.0, 2.0, 4.0])


def test_floor_is_the_mean_over_the_divisor():
    assert priorities.floor(mean_priority=5.0, divisor=10.0) == 0.5


def test_predecessor_bound_halves_the_error_not_the_priority():
    values = priorities.predecessor_bound(np.array([6.0, 16.0]), epsilon=1.0, alpha=0.5)
    np.testing.assert_allclose(values, [2.0, 3.0])


def test_weight_is_mean_over_priority_and_may_exceed_one():
    weight = priorities.importance_weight(np.array([1.0, 4.0, 16.0]), mean_priority=4.0, beta=0.5)
    np.testing.assert_allclose(weight, [2.0, 1.0, 0.5])


def test_largest_weight_is_twice_the_divisor():
    assert priorities.largest_weight(10.0) == 20.0


@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
def test_original_weight_is_one_for_a_vanishing_error(beta):
    priority = priorities.priority(np.array([0.0, 2.0]), epsilon=1e-4, alpha=0.6)
    weight = priorities.original_weight(priority, epsilon=1e-4, alpha=0.6, beta=beta)
    np.testing.assert_allclose(weight, [1.0, (1e-4 / 2.0001) ** (0.6 * beta)])
