"""Exploration: when actions are random, and how long they are held."""

import numpy as np
import pytest

from cdqn.training.exploration import EpsilonGreedy, EpsilonZGreedy, make_exploration
from helpers import assert_same_state

RNG = np.random.default_rng
BOTH = ["epsilon", "epsilon-z"]


def greedy(observation):
    """No random action is −1."""
    return np.full(len(observation), -1)


def never(observation):
    raise AssertionError("the greedy policy was asked")


def rows(count):
    return np.zeros((count, 3), np.float32)


def test_names_are_those_of_their_classes():
    assert type(make_exploration("epsilon", 2, 4)) is EpsilonGreedy
    assert type(make_exploration("epsilon-z", 2, 4)) is EpsilonZGreedy


@pytest.mark.parametrize("name", BOTH)
def test_epsilon_0_is_greedy(name):
    exploration, rng = make_exploration(name, 5, 64), RNG(0)
    for _ in range(20):
        assert (exploration.act(greedy, rows(64), 0.0, rng) == -1).all()


@pytest.mark.parametrize("name", BOTH)
def test_epsilon_1_never_asks_the_greedy_policy_and_takes_every_action(name):
    exploration, rng = make_exploration(name, 5, 64), RNG(0)
    for _ in range(20):
        actions = exploration.act(never, rows(64), 1.0, rng)
        assert set(actions.tolist()) == set(range(5))


def test_share_of_random_actions_is_epsilon():
    actions = EpsilonGreedy(4).act(greedy, rows(40_000), 0.3, RNG(0))
    shares = np.bincount(actions + 1, minlength=5) / len(actions)
    np.testing.assert_allclose(shares, [0.7] + [0.075] * 4, atol=0.01)  # 4 standard deviations


def begun(count, num_actions=50, seed=0):
    """Random actions have just begun in all environments: also the actions, and for how many steps they are held."""
    exploration = EpsilonZGreedy(num_actions, count)
    actions = exploration.act(never, rows(count), 1.0, RNG(seed))
    return exploration, actions, exploration.state_dict()["left"] + 1


def test_action_is_held_for_its_whole_duration_and_then_the_policy_is_greedy():
    exploration, first, duration = begun(500)
    assert len(set(first.tolist())) == 50
    for time in range(1, 103):
        actions = exploration.act(greedy, rows(500), 0.0, RNG(1))
        np.testing.assert_array_equal(actions, np.where(time < duration, first, -1))


def test_held_action_is_not_begun_anew_before_its_end():
    exploration, first, duration = begun(500)
    actions = exploration.act(never, rows(500), 1.0, RNG(1))
    going_on = duration > 1
    assert going_on.any()
    np.testing.assert_array_equal(actions[going_on], first[going_on])
    assert (actions[~going_on] != first[~going_on]).any()


def test_durations_fall_with_their_square():
    """χ² over 1, 2, 3, 4, 5 steps and all longer ones; 20.5 is its 99.9 % quantile for 5 degrees of freedom."""
    _, _, duration = begun(20_000)
    share = 6 / (np.pi * np.arange(1, 6)) ** 2
    expected = 20_000 * np.append(share, 1 - share.sum())
    observed = np.bincount(np.minimum(duration, 6), minlength=7)[1:]
    assert ((observed - expected) ** 2 / expected).sum() < 20.5


def test_no_action_is_held_longer_than_100_steps():
    _, _, duration = begun(20_000)
    assert duration.max() == 100
    assert 0.004 < (duration == 100).mean() < 0.008  # all that would be longer: 0.0061


def test_environments_explore_apart():
    exploration = EpsilonZGreedy(50, 3)
    exploration.load_state_dict({"left": np.array([2, 0, 1]), "held": np.array([7, 8, 9])})
    played = [exploration.act(greedy, rows(3), 0.0, RNG(0)).tolist() for _ in range(3)]
    assert played == [[7, -1, 9], [7, -1, -1], [-1, -1, -1]]
    exploring = EpsilonZGreedy(50, 40_000).act(greedy, rows(40_000), 0.3, RNG(0)) >= 0
    assert (exploring[:-1] & exploring[1:]).mean() == pytest.approx(exploring.mean() ** 2, abs=0.005)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 0.8])
def test_epsilon_is_the_share_of_steps_that_are_random_however_long_actions_are_held(epsilon):
    exploration, rng = EpsilonZGreedy(50, 1_000), RNG(0)
    random = [(exploration.act(greedy, rows(1_000), epsilon, rng) >= 0).mean() for _ in range(2_000)]
    assert np.mean(random[200:]) == pytest.approx(epsilon, rel=0.06)  # one chance to begin in 3 would miss by far


def test_actions_handed_out_do_not_change_afterwards():
    exploration, first, _ = begun(8)
    before = first.copy()
    for _ in range(5):
        exploration.act(never, rows(8), 1.0, RNG(1))
    np.testing.assert_array_equal(first, before)


def test_exploration_goes_on_in_the_middle_of_held_actions():
    one, _, duration = begun(20)
    assert (duration > 1).any()
    state = one.state_dict()
    other = EpsilonZGreedy(50, 20)
    other.load_state_dict(state)
    rngs = RNG(5), RNG(5)
    for _ in range(50):
        actions = [e.act(greedy, rows(20), 0.2, rng) for e, rng in zip((one, other), rngs, strict=True)]
        np.testing.assert_array_equal(*actions)
    assert_same_state(one.state_dict(), other.state_dict())
    np.testing.assert_array_equal(state["left"], duration - 1)  # what was saved is not touched by what goes on
