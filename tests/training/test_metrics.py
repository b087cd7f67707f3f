"""Means since the last row, and bounds."""

import numpy as np
import pytest

from cdqn.training.events import Episode
from cdqn.training.learner import UpdateResult
from cdqn.training.metrics import Tally, value_bound


def update(loss):
    return UpdateResult(np.zeros(2, np.float32), {"loss": loss, "q_mean": 7.0})


def test_means_are_over_the_updates_since_the_last_row():
    tally = Tally()
    for loss in (1.0, 3.0):
        tally.add_update(update(loss))
    assert tally.take_means() == {"loss": 2.0, "q_mean": 7.0}
    tally.add_update(update(10.0))
    assert tally.take_means()["loss"] == 10.0


def test_without_updates_there_are_no_means():
    assert Tally().take_means() == {}


def test_sums_of_an_older_run_are_read_by_their_position():
    tally = Tally()
    tally.load_state_dict({**tally.state_dict(), "sums": np.array([4.0, 1.0, 6.0, 2.0]), "updates": 2})
    assert tally.take_means() == {"loss": 2.0, "dqn_share": 0.5, "q_mean": 3.0, "gradient_norm": 1.0}


def test_mean_return_is_of_the_last_20_episodes():
    tally = Tally()
    assert tally.return_mean() is None
    for number in range(30):
        tally.add_episode(Episode(number, 0, float(number), 1, "terminated"))
    assert tally.episodes == 30
    assert tally.return_mean() == np.mean(np.arange(10, 30))


def test_tally_goes_round_and_goes_on():
    one, other = Tally(), Tally()
    one.reward_abs_max = 3.0
    for number in range(25):
        one.add_episode(Episode(number, 0, float(number), 1, "terminated"))
    one.add_update(update(1.0))
    other.load_state_dict(one.state_dict())
    for tally in (one, other):
        tally.add_update(update(5.0))
        tally.add_episode(Episode(99, 0, 99.0, 1, "terminated"))
    assert one.return_mean() == other.return_mean()
    assert (one.episodes, one.reward_abs_max) == (other.episodes, other.reward_abs_max) == (26, 3.0)
    assert one.take_means() == other.take_means()


@pytest.mark.parametrize(("reward", "gamma", "bound"), [(2.0, 0.5, 4.0), (1.0, 0.99, 100.0), (3.0, 0.0, 3.0)])
def test_bound_is_the_largest_reward_for_ever(reward, gamma, bound):
    assert value_bound(reward, gamma) == pytest.approx(bound)


def test_there_is_no_bound_without_reward_or_discount():
    assert value_bound(0.0, 0.9) is None
    assert value_bound(1.0, 1.0) is None
