"""The rules of App. E.2 one by one, each on a memory small enough to work out by hand."""

import numpy as np
import pytest
from replay_twins import ids_in, make_replay, make_rows, priorities_of

from cdqn.errors import ConfigError, NonFiniteError
from cdqn.replay import UniformReplay

ALPHA, EPSILON = 0.6, 1e-10


def filled(count, capacity=None, streams=None, firsts=None, **settings):
    replay = make_replay(capacity or count, **settings)
    replay.add(make_rows(range(count), streams, firsts))
    return replay


def update(replay, **td_error_of_slot):
    """update(replay, s3=0.5, s1=2): |δ| by slot."""
    slots = np.array([int(name[1:]) for name in td_error_of_slot])
    replay.update_priorities(slots, np.array(list(td_error_of_slot.values()), float))


def p(td_error):
    return (td_error + EPSILON) ** ALPHA


# --- priorities from TD errors


def test_priority_is_the_td_error_to_the_alpha():
    replay = filled(4, raise_predecessor=False, initial_priority=1.0)
    update(replay, s1=3.0)
    np.testing.assert_allclose(priorities_of(replay), [1, p(3), 1, 1])


def test_priority_does_not_fall_below_a_tenth_of_the_mean_before_the_update():
    replay = filled(4, raise_predecessor=False, initial_priority=8.0)
    update(replay, s0=1000.0, s1=0.0, s2=1e-6)
    np.testing.assert_allclose(priorities_of(replay), [p(1000), 0.8, 0.8, 8])
    mean = (p(1000) + 0.8 + 0.8 + 8) / 4
    update(replay, s3=0.0)
    np.testing.assert_allclose(priorities_of(replay)[3], mean / 10)


def test_mean_counts_stored_rows_not_capacity():
    replay = filled(4, capacity=1000, raise_predecessor=False, initial_priority=8.0)
    update(replay, s1=0.0)
    np.testing.assert_allclose(priorities_of(replay)[1], 0.8)
    assert replay.sample(1, beta=1.0).weight[0] == pytest.approx((24.8 / 4) / 8.0)


def test_original_scheme_has_no_floor():
    replay = filled(4, raise_predecessor=False, scheme="original", priority_epsilon=1e-6)
    update(replay, s1=0.0)
    np.testing.assert_allclose(priorities_of(replay)[1], 1e-6**ALPHA)


# --- importance weights


def test_weights_are_mean_over_priority_not_divided_by_the_largest():
    replay = filled(3, raise_predecessor=False, initial_priority=1.0)
    update(replay, s0=2.0, s1=0.5, s2=0.5)
    batch = replay.sample(200, beta=0.5)
    values = priorities_of(replay)
    np.testing.assert_allclose(batch.weight, (values.mean() / values[batch.slots]) ** 0.5, rtol=1e-6)
    assert batch.weight.max() > 1
    assert batch.weight.dtype == np.float32


def test_weights_end_at_twice_the_floor_divisor():
    replay = filled(1000, raise_predecessor=False, initial_priority=1.0, floor_divisor=2.0)
    update(replay, s0=1e6)
    batch = replay.sample(1000, beta=1.0)
    assert priorities_of(replay).mean() / 1.0 > 4
    assert set(batch.weight[batch.slots != 0]) == {4.0}


def test_original_weights_are_relative_to_the_largest_possible():
    replay = filled(3, raise_predecessor=False, scheme="original", priority_epsilon=1e-4)
    update(replay, s0=0.0, s1=0.01, s2=0.02)
    batch = replay.sample(300, beta=0.5)
    expected = (1e-4**ALPHA / priorities_of(replay)[batch.slots]) ** 0.5
    np.testing.assert_allclose(batch.weight, expected, rtol=1e-6)
    assert batch.weight.max() == 1


# --- new transitions


def test_first_transitions_get_the_initial_priority_without_alpha():
    assert priorities_of(filled(3)).tolist() == [100, 100, 100]
    assert priorities_of(filled(3, initial_priority=7.0)).tolist() == [7, 7, 7]


def test_new_transition_gets_the_largest_computed_priority_with_alpha_once():
    replay = filled(3, capacity=10, raise_predecessor=False)
    update(replay, s0=0.5, s2=400.0)
    replay.add(make_rows([3, 4]))
    np.testing.assert_allclose(priorities_of(replay)[3:], p(400))
    assert priorities_of(replay)[1] == 100  # never computed, so larger but not counted


def test_largest_priority_is_forgotten_when_it_is_evaluated_again():
    replay = filled(3, capacity=10, raise_predecessor=False, floor_divisor=1e6)
    update(replay, s0=40.0, s1=2.0)
    update(replay, s0=1.0)
    replay.add(make_rows([3]))
    np.testing.assert_allclose(priorities_of(replay)[3], p(2))


def test_largest_priority_is_forgotten_when_it_is_overwritten():
    replay = filled(3, raise_predecessor=False, floor_divisor=1e6)
    update(replay, s0=40.0, s1=2.0, s2=1.0)
    replay.add(make_rows([3]))  # overwrites slot 0, and inherits its priority
    replay.add(make_rows([4]))  # overwrites slot 1; slot 0 is new, hence not computed
    replay.add(make_rows([5]))
    np.testing.assert_allclose(priorities_of(replay), [p(40), p(2), p(1)])


def test_memory_without_any_computed_priority_starts_again_from_the_initial_one():
    replay = filled(2, raise_predecessor=False, floor_divisor=1e6)
    update(replay, s0=4.0, s1=4.0)
    replay.add(make_rows([2, 3]))
    replay.add(make_rows([4]))
    np.testing.assert_allclose(priorities_of(replay), [100, p(4)])


# --- predecessors


def test_predecessor_is_raised_to_half_the_error():
    replay = filled(4, initial_priority=0.01)
    update(replay, s2=6.0)
    np.testing.assert_allclose(priorities_of(replay), [0.01, p(3), p(6), 0.01])


def test_predecessor_is_never_lowered():
    replay = filled(4, initial_priority=50.0)
    update(replay, s2=6.0)
    assert priorities_of(replay)[1] == 50


def test_predecessor_rule_can_be_switched_off():
    replay = filled(4, initial_priority=0.01, raise_predecessor=False)
    update(replay, s2=6.0)
    assert priorities_of(replay)[1] == 0.01


def test_predecessors_are_raised_after_all_priorities_of_the_batch_are_set():
    for order in ({"s2": 60.0, "s1": 0.1}, {"s1": 0.1, "s2": 60.0}):
        replay = filled(4, initial_priority=0.01)
        update(replay, **order)
        np.testing.assert_allclose(priorities_of(replay)[1], p(30))


def test_raise_does_not_pass_an_episodes_start():
    replay = filled(4, firsts=[True, False, True, False], initial_priority=0.01)
    update(replay, s2=6.0)
    np.testing.assert_allclose(priorities_of(replay), [0.01, 0.01, p(6), 0.01])


def test_raise_stays_within_its_stream():
    replay = filled(6, streams=[0, 1, 2, 1, 0, 2], initial_priority=0.01)
    update(replay, s4=6.0, s5=10.0)
    np.testing.assert_allclose(priorities_of(replay), [p(3), 0.01, p(5), 0.01, p(6), p(10)])


def test_predecessor_is_found_across_calls_of_add():
    replay = make_replay(10, initial_priority=0.01)
    for i in range(3):
        replay.add(make_rows([2 * i, 2 * i + 1], streams=[0, 1]))
    update(replay, s4=6.0)
    np.testing.assert_allclose(priorities_of(replay), [0.01, 0.01, p(3), 0.01, p(6), 0.01])


def test_raise_never_hits_a_slot_overwritten_since():
    replay = filled(3, initial_priority=0.01)
    replay.add(make_rows([3], streams=[1]))  # slot 0, the predecessor of slot 1, is now another episode
    update(replay, s1=6.0)
    assert priorities_of(replay)[0] == 0.01


def test_oldest_row_in_a_full_fifo_has_no_predecessor():
    """Slot 1 holds the oldest row, slot 0 the newest; its predecessor is gone even in the same stream."""
    replay = filled(3, initial_priority=0.01)
    replay.add(make_rows([3]))
    update(replay, s1=6.0)
    assert priorities_of(replay)[0] == 0.01
    update(replay, s0=8.0)  # but the newest follows slot 2, around the end of the memory
    np.testing.assert_allclose(priorities_of(replay)[2], p(4))


def test_row_that_overwrites_its_own_predecessor_has_none():
    replay = filled(1, initial_priority=0.01)
    replay.add(make_rows([1]))
    update(replay, s0=6.0)
    np.testing.assert_allclose(priorities_of(replay), [p(6)])
    update(replay, s0=0.001)
    np.testing.assert_allclose(priorities_of(replay), [p(6) / 10])  # the floor, not the bound


def test_discarded_row_is_nobodys_predecessor():
    replay = make_replay(400, initial_priority=0.001, discard_fraction=0.5)
    replay.add(make_rows(range(400)))
    kept = ids_in(replay)
    slot = next(n for n in range(2, len(kept)) if kept[n] - kept[n - 1] > 1)
    update(replay, **{f"s{slot}": 6.0})
    np.testing.assert_allclose(np.delete(priorities_of(replay), slot), 0.001)
    neighbour = next(n for n in range(slot + 2, len(kept)) if kept[n] - kept[n - 1] == 1)
    update(replay, **{f"s{neighbour}": 6.0})
    np.testing.assert_allclose(priorities_of(replay)[neighbour - 1], p(3))


def test_raise_reaches_the_predecessor_wherever_random_eviction_put_it():
    replay = make_replay(30, eviction="random", initial_priority=1e-6, floor_divisor=1e9)
    replay.add(make_rows(range(300)))
    ids = ids_in(replay)
    for slot, row in enumerate(ids):
        before = priorities_of(replay)
        update(replay, **{f"s{slot}": 1000.0 * (slot + 1)})
        changed = set(np.flatnonzero(priorities_of(replay) != before)) - {slot}
        raised = {ids.index(row - 1)} if row - 1 in ids else set()
        assert changed <= raised
        for other in raised:
            assert priorities_of(replay)[other] >= p(500.0 * (slot + 1)) * (1 - 1e-12)


def test_raised_row_does_not_count_as_computed():
    replay = filled(3, capacity=4, initial_priority=0.01, alpha=1.0)
    update(replay, s2=6.0)
    assert replay.state_dict()["computed"].tolist() == [False, False, True]
    update(replay, s2=0.5)
    replay.add(make_rows([3]))
    assert priorities_of(replay)[1] == pytest.approx(3.0)
    assert priorities_of(replay)[3] == pytest.approx(0.5)  # not the 3.0 of the raised row


def test_raised_row_that_was_computed_counts_with_its_raised_priority():
    replay = filled(3, capacity=4, initial_priority=0.01, alpha=1.0)
    update(replay, s1=0.25)
    update(replay, s2=6.0)
    update(replay, s2=0.5)
    replay.add(make_rows([3]))
    assert priorities_of(replay)[3] == pytest.approx(3.0)


# --- sampling


def test_each_equal_slice_of_the_total_gets_one_draw():
    replay = filled(64)
    assert replay.sample(64).slots.tolist() == list(range(64))
    update(replay, **{f"s{n}": 1.0 + n for n in range(64)})
    ends = np.cumsum(priorities_of(replay))
    for _ in range(50):
        slots = replay.sample(16).slots
        lower, upper = ends[slots] - priorities_of(replay)[slots], ends[slots]
        slices = np.arange(16) * ends[-1] / 16
        assert (lower <= slices + ends[-1] / 16).all()
        assert (upper > slices).all()


def test_sampled_frequencies_follow_priorities():
    """Stratified draws spread less than independent ones, so the chi-square bound holds with room."""
    replay = filled(50, capacity=80, raise_predecessor=False)
    rng = np.random.default_rng(1)
    replay.update_priorities(np.arange(50), rng.lognormal(size=50))
    counts = np.bincount(np.concatenate([replay.sample(32).slots for _ in range(3000)]), minlength=80)
    share = priorities_of(replay) / priorities_of(replay).sum()
    assert counts[50:].sum() == 0
    assert ((counts[:50] - 96_000 * share) ** 2 / (96_000 * share)).sum() < 49 + 5 * np.sqrt(98)


def test_draws_within_a_slice_are_spread_over_it():
    replay = filled(32)
    counts = np.bincount(np.concatenate([replay.sample(1).slots for _ in range(6400)]), minlength=32)
    assert ((counts - 200) ** 2 / 200).sum() < 31 + 5 * np.sqrt(62)


# --- errors


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 1e300])
def test_bad_td_error_never_enters_the_tree(value):
    replay = filled(5)
    update(replay, s1=2.0)
    before = priorities_of(replay)
    with pytest.raises(NonFiniteError, match="slot 3 is "):
        update(replay, s0=1.0, s3=value)
    np.testing.assert_array_equal(priorities_of(replay), before)
    assert replay.sample(5).weight.max() < np.inf


def test_largest_float32_errors_keep_the_total_finite():
    replay = filled(5, alpha=1.0)
    replay.update_priorities(np.arange(5), np.full(5, np.finfo(np.float32).max))
    assert np.isfinite(replay.sample(5).weight).all()


@pytest.mark.parametrize(
    "settings",
    [
        {"alpha": -0.1},
        {"alpha": 1.1},
        {"alpha": np.nan},
        {"priority_epsilon": 0.0},
        {"floor_divisor": 1.0},
        {"initial_priority": 0.0},
        {"initial_priority": np.inf},
        {"scheme": "rank"},
        {"discard_fraction": 1.0},
    ],
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        make_replay(10, **settings)


def test_slots_that_hold_nothing_cannot_be_updated():
    replay = filled(3, capacity=10)
    for slot in (-1, 3, 10):
        with pytest.raises(ConfigError, match=f"slot {slot} "):
            replay.update_priorities(np.array([0, slot]), np.ones(2))
    with pytest.raises(ConfigError, match="per slot"):
        replay.update_priorities(np.arange(2), np.ones(3))
    assert priorities_of(replay).tolist() == [100, 100, 100]


@pytest.mark.parametrize("stream", [-1, 10**9])
def test_impossible_stream_is_refused_before_anything_is_written(stream):
    replay = filled(3)
    with pytest.raises(ConfigError, match=str(stream)):
        replay.add(make_rows([7], streams=[stream]))
    assert ids_in(replay) == [0, 1, 2]


def test_empty_memory_cannot_be_sampled():
    with pytest.raises(ConfigError, match="empty"):
        make_replay(3).sample(2)


def test_priorities_are_on_top_of_the_uniform_memory():
    assert isinstance(make_replay(3), UniformReplay)
