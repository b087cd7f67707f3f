"""Discounted returns that were really earned, by hand."""

import numpy as np
import pytest

from cdqn.training.earned import EarnedReturns
from helpers import assert_same_state, earn, paid


def test_returns_of_a_terminated_episode_by_hand():
    """1, −8, 4 at γ = 1/2: the returns are 1 − 4 + 1 = −2, −8 + 2 = −6 and 4."""
    earned = EarnedReturns(1)
    earn(earned, [1.0, -8.0, 4.0])
    assert earned.range() == (-6.0, 4.0)


def test_episode_that_was_cut_off_goes_on_with_its_mean_reward():
    """2, 4 at γ = 1/2: the mean 3 for ever is worth 6, so that the returns are 2 + 2 + 6/4 = 5.5 and 4 + 6/2 = 7."""
    earned = EarnedReturns(1)
    earn(earned, [2.0, 4.0], terminated=False)
    assert earned.range() == (5.5, 7.0)


def test_episode_that_was_cut_off_has_its_own_return_where_nothing_is_discounted():
    earned = EarnedReturns(1)
    earn(earned, [2.0, 4.0], gamma=1.0, terminated=False)
    assert earned.range() == (4.0, 6.0)


def test_nothing_is_earned_before_an_episode_has_ended():
    earned = EarnedReturns(1)
    earned.observe(paid([5.0], [False]), np.array([False]), 0.5)
    assert earned.range() is None
    assert len(earned) == 0


def test_episodes_before_the_discount_is_known_do_not_count_nor_run_into_the_next():
    earned = EarnedReturns(1)
    earn(earned, [100.0], gamma=None)
    assert earned.range() is None
    earn(earned, [1.0])
    assert earned.range() == (1.0, 1.0)


def test_only_the_last_100_episodes_count():
    earned = EarnedReturns(1)
    for reward in range(1, 121):
        earn(earned, [float(reward)])
    assert len(earned) == 100
    assert earned.range() == (21.0, 120.0)


def test_environments_earn_apart():
    """Environment 0 pays 1 and 2, its episodes have two steps; environment 1 pays 10, 20 and 40 in one of three."""
    earned = EarnedReturns(2)
    no, yes = False, True
    for rewards, ends in (([1.0, 10.0], [no, no]), ([2.0, 20.0], [yes, no]), ([1.0, 40.0], [no, yes])):
        earned.observe(paid(rewards, ends), np.array(ends), 0.5)
    assert earned.range() == (2.0, 40.0)
    assert len(earned) == 2
    earned.observe(paid([4.0], [True], [0]), np.array([True]), 0.5)  # the other environment only resets in this step
    assert earned.range() == (2.0, 40.0)
    assert len(earned) == 3
    earn(earned, [-3.0], env=1)
    assert earned.range() == (-3.0, 40.0)


def test_restart_of_the_environments_does_not_join_two_episodes():
    earned = EarnedReturns(1)
    earned.observe(paid([100.0], [False]), np.array([False]), 0.5)
    earned.restart()
    earn(earned, [1.0])
    assert earned.range() == (1.0, 1.0)


@pytest.mark.parametrize("saved_at", [0, 1, 2, 137])
def test_earned_returns_go_on_from_the_middle_of_episodes(saved_at):
    rng = np.random.default_rng(0)
    steps = [(paid(rng.normal(size=3), ends := rng.random(3) < 0.3), ends | (rng.random(3) < 0.3)) for _ in range(300)]
    one, other = EarnedReturns(3), EarnedReturns(3)
    for number, (transitions, ended) in enumerate(steps):
        if number == saved_at:
            other.load_state_dict(one.state_dict())
        one.observe(transitions, ended, 0.9)
        if number >= saved_at:
            other.observe(transitions, ended, 0.9)
            assert one.range() == other.range()
    assert_same_state(one.state_dict(), other.state_dict())
