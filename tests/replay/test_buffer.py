"""What is kept, what is overwritten, and what is drawn, without priorities."""

import numpy as np
import pytest
from replay_twins import ids_in, make_replay, make_rows

from cdqn.errors import ConfigError, NonFiniteError
from cdqn.replay import UniformReplay


def uniform(capacity, seed=0, **settings):
    return make_replay(capacity, seed, UniformReplay, **settings)


def chi_square(counts, expected):
    return ((counts - expected) ** 2 / expected).sum()


def test_fifo_overwrites_the_oldest():
    replay = uniform(5)
    for start in range(0, 12, 3):
        replay.add(make_rows(range(start, start + 3)))
    assert sorted(ids_in(replay)) == [7, 8, 9, 10, 11]
    assert len(replay) == replay.capacity == 5


def test_adding_more_than_fits_keeps_the_newest():
    replay = uniform(5)
    replay.add(make_rows([100]))
    replay.add(make_rows(range(13)))
    assert sorted(ids_in(replay)) == [8, 9, 10, 11, 12]
    replay.add(make_rows([13]))
    assert sorted(ids_in(replay)) == [9, 10, 11, 12, 13]


def test_random_eviction_fills_before_it_overwrites():
    replay = uniform(50, eviction="random")
    replay.add(make_rows(range(49)))
    replay.add(make_rows([49]))
    assert ids_in(replay) == list(range(50))


def test_random_eviction_overwrites_every_slot_equally_often():
    capacity, rounds = 20, 8000
    replay = uniform(capacity, eviction="random")
    replay.add(make_rows(range(capacity)))
    counts = np.zeros(capacity)
    before = np.array(ids_in(replay))
    for i in range(rounds):
        replay.add(make_rows([capacity + i]))
        after = np.array(ids_in(replay))
        assert (after != before).sum() == 1
        counts += after != before
        before = after
    assert chi_square(counts, rounds / capacity) < 19 + 5 * np.sqrt(2 * 19)


def test_of_two_rows_in_one_random_slot_the_later_stays_whole():
    replay = uniform(2, eviction="random")
    replay.add(make_rows([0, 1]))
    replay.add(make_rows(range(2, 200)))
    assert max(ids_in(replay)) == 199
    batch = replay.sample(50)
    np.testing.assert_array_equal(batch.observation[:, 0], batch.action)
    np.testing.assert_array_equal(batch.reward, (batch.action / 2).astype(np.float32))


def test_discard_keeps_the_wanted_share_of_rows_independently():
    replay = uniform(20_000, discard_fraction=0.25)
    for start in range(0, 20_000, 4):
        replay.add(make_rows(range(start, start + 4)))
    kept = np.isin(np.arange(20_000), ids_in(replay))
    assert abs(kept.mean() - 0.75) < 5 * np.sqrt(0.25 * 0.75 / 20_000)
    neighbours = np.corrcoef(kept[:-1], kept[1:])[0, 1]
    assert abs(neighbours) < 5 / np.sqrt(20_000)
    assert ids_in(replay) == sorted(ids_in(replay))


def test_uniform_sampling_draws_all_rows_equally_often_with_replacement():
    replay = uniform(64)
    replay.add(make_rows(range(40)))
    slots = np.concatenate([replay.sample(100).slots for _ in range(400)])
    counts = np.bincount(slots, minlength=64)
    assert counts[40:].sum() == 0
    assert chi_square(counts[:40], 1000) < 39 + 5 * np.sqrt(2 * 39)


def test_batch_holds_the_rows_of_its_slots_and_weights_of_one():
    replay = uniform(10)
    replay.add(make_rows(range(10)))
    batch = replay.sample(32, beta=0.3)
    np.testing.assert_array_equal(batch.action, batch.slots)
    np.testing.assert_array_equal(batch.next_observation[:, 0], batch.slots + 1)
    np.testing.assert_array_equal(batch.terminated, batch.slots % 3 == 0)
    assert batch.weight.dtype == np.float32
    assert (batch.weight == 1).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.5])
def test_uniform_memory_still_reports_td_errors_that_are_not_finite(value):
    replay = uniform(10)
    replay.add(make_rows(range(10)))
    replay.update_priorities(np.array([1, 2]), np.array([0.0, 1.0]))
    with pytest.raises(NonFiniteError, match=f"slot 7 is {value}"):
        replay.update_priorities(np.array([1, 7]), np.array([0.0, value]))


@pytest.mark.parametrize("settings", [{"discard_fraction": 1.0}, {"discard_fraction": -0.1}, {"eviction": "lifo"}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        uniform(10, **settings)


def test_sampling_what_cannot_be_sampled_is_refused():
    replay = uniform(10)
    with pytest.raises(ConfigError, match="empty"):
        replay.sample(4)
    replay.add(make_rows(range(3)))
    with pytest.raises(ConfigError, match="batch_size is 0"):
        replay.sample(0)
    with pytest.raises(ConfigError, match="beta"):
        replay.sample(1, beta=1.5)


def test_fields_of_different_length_are_refused():
    rows = make_rows(range(4))
    with pytest.raises(ConfigError, match=r"reward has 3 rows"):
        uniform(10).add(rows._replace(reward=rows.reward[:3]))
