"""Saving and loading: the future is the same to the last bit, and what does not fit is refused in words."""

import json

import numpy as np
import pytest
from replay_twins import make_replay, make_rows

from cdqn.errors import CheckpointError
from cdqn.replay import PrioritizedReplay, UniformReplay

KINDS = [
    (PrioritizedReplay, {}),
    (PrioritizedReplay, {"eviction": "random", "discard_fraction": 0.4}),
    (UniformReplay, {"eviction": "random"}),
    (UniformReplay, {"discard_fraction": 0.5}),
]


def live(replay, seed, rounds):
    """A stretch of training; returns all that a learner saw."""
    chooser, seen = np.random.default_rng(seed), []
    for i in range(rounds):
        count = int(chooser.integers(1, 6))
        rows = make_rows(1000 * seed + 10 * i + np.arange(count), chooser.integers(3, size=count))
        replay.add(rows._replace(first=chooser.random(count) < 0.1))
        if len(replay) > 0:
            batch = replay.sample(16, beta=0.5)
            seen.append(batch)
            replay.update_priorities(batch.slots, chooser.lognormal(sigma=2, size=16))
    return seen


def through_json(state):
    """What a checkpoint does: arrays stay arrays, all else goes through JSON."""
    if isinstance(state, dict):
        return {key: through_json(value) for key, value in state.items()}
    return state.copy() if isinstance(state, np.ndarray) else json.loads(json.dumps(state))


def assert_equal(one, other):
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_equal(one[key], other[key])
    else:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("cls", "settings"), KINDS)
@pytest.mark.parametrize("rounds_before", [0, 5, 80])
def test_future_after_loading_is_bitwise_the_same(cls, settings, rounds_before):
    original = make_replay(100, seed=1, cls=cls, **settings)
    live(original, seed=1, rounds=rounds_before)
    original.add(make_rows(range(3)))  # rows whose priority is not yet computed
    state = through_json(original.state_dict())
    resumed = make_replay(100, seed=2, cls=cls, **settings)
    live(resumed, seed=3, rounds=150)  # a past that must leave no trace
    resumed.load_state_dict(state)
    assert_equal(resumed.state_dict(), original.state_dict())
    for ours, theirs in zip(live(original, 4, 100), live(resumed, 4, 100), strict=True):
        for column, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(column, other)
    assert_equal(original.state_dict(), resumed.state_dict())


def test_state_is_a_copy_of_its_moment():
    replay = make_replay(20)
    live(replay, seed=1, rounds=10)
    state = replay.state_dict()
    before = through_json(state)
    live(replay, seed=2, rounds=10)
    assert_equal(state, before)


def saved():
    replay = make_replay(20)
    live(replay, seed=1, rounds=10)
    return replay.state_dict()


def test_capacity_must_match():
    with pytest.raises(CheckpointError, match="capacity 20, this one 30"):
        make_replay(30).load_state_dict(saved())


def test_uniform_state_does_not_load_into_a_prioritized_memory():
    with pytest.raises(CheckpointError, match="priorities"):
        make_replay(20).load_state_dict(make_replay(20, cls=UniformReplay).state_dict())


def damage(state, key, value):
    """The state with one entry replaced; `key` may be a path, as in links/table."""
    head, _, tail = key.partition("/")
    return state | {head: damage(state[head], tail, value) if tail else value}


def far_link(column):
    table = saved()["links"]["table"]
    table[0, column] = 20
    return table


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("size", 21, "size 21"),
        ("size", 7, "size 7"),
        ("position", 20, "position 20"),
        ("priorities", np.ones(3), "priorities"),
        ("priorities", np.full(20, np.nan), "finite"),
        ("priorities", np.zeros(20), "above 0"),
        ("computed", np.ones(3, bool), "flags"),
        ("links/table", np.zeros((3, 3), np.int64), "links"),
        ("links/table", far_link(1), "leaves"),
        ("links/last_of_stream", np.array([[20, 1]]), "leaves"),
        ("links/last_of_stream", np.array([1]), "last_of_stream"),
        ("store/reward", np.zeros(20), "reward"),
        ("rng/bit_generator", "MT19937", "MT19937"),
    ],
)
def test_damaged_state_is_refused_and_changes_nothing(key, value, complaint):
    replay = make_replay(20, seed=9)
    live(replay, seed=5, rounds=15)
    before = replay.state_dict()
    with pytest.raises(CheckpointError, match=complaint):
        replay.load_state_dict(damage(saved(), key, value))
    assert_equal(replay.state_dict(), before)


@pytest.mark.parametrize("missing", ["size", "rng", "store", "computed", "links"])
def test_missing_entry_is_named(missing):
    state = saved()
    del state[missing]
    with pytest.raises(CheckpointError, match=missing):
        make_replay(20).load_state_dict(state)
