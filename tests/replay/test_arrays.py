"""The plain store keeps what it is given, and says so when it cannot."""

import numpy as np
import pytest

from cdqn.errors import CheckpointError, ConfigError
from cdqn.replay import ArrayStore, Transitions


def rows_of(observation, next_observation=None):
    count = len(observation)
    return Transitions(
        observation=observation,
        action=np.arange(count) + 7,
        reward=np.linspace(-1, 1, count, dtype=np.float32),
        next_observation=observation if next_observation is None else next_observation,
        terminated=np.arange(count) % 2 == 0,
        stream=np.zeros(count, np.int64),
        first=np.zeros(count, bool),
    )


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((4,), np.float32), ((3, 5, 2), np.uint8), ((6,), np.bool_), ((), np.int64), ((2,), np.float64)],
)
def test_rows_come_back_as_they_went_in(shape, dtype):
    rng = np.random.default_rng(0)
    store = ArrayStore(50, shape, dtype)
    observation = np.asarray(rng.integers(200, size=(20, *shape))).astype(dtype)
    rows = rows_of(observation, observation[::-1].copy())
    slots = rng.permutation(50)[:20]
    store.write(slots, rows)
    pick = rng.integers(20, size=32)
    fields = store.read(slots[pick])
    for name in fields._fields:
        column = getattr(fields, name)
        np.testing.assert_array_equal(column, getattr(rows, name)[pick])
        assert column.flags.c_contiguous
    assert fields.observation.dtype == fields.next_observation.dtype == dtype
    assert (fields.action.dtype, fields.reward.dtype, fields.terminated.dtype) == (np.int64, np.float32, np.bool_)


def test_a_batch_is_the_callers_own():
    store = ArrayStore(3, (2,), np.float32)
    store.write(np.arange(3), rows_of(np.ones((3, 2), np.float32)))
    store.read(np.arange(3)).observation[:] = 5
    assert (store.read(np.arange(3)).observation == 1).all()


def test_float_observations_do_not_wrap_into_bytes():
    store = ArrayStore(3, (2,), np.uint8)
    with pytest.raises(ConfigError, match="float32"):
        store.write(np.arange(3), rows_of(np.full((3, 2), 0.5, np.float32)))


def test_double_precision_observations_fit_a_float32_store():
    store = ArrayStore(3, (2,), np.float32)
    store.write(np.arange(3), rows_of(np.full((3, 2), 0.1)))
    assert store.read(np.array([0])).observation[0, 0] == np.float32(0.1)


def test_wrong_observation_shape_is_named():
    store = ArrayStore(3, (2,), np.float32)
    good, bad = np.zeros((3, 2), np.float32), np.zeros((3, 1), np.float32)
    with pytest.raises(ConfigError, match=r"transitions\.observation.*\(1,\)"):
        store.write(np.arange(3), rows_of(bad))
    with pytest.raises(ConfigError, match=r"next_observation.*\(1,\)"):
        store.write(np.arange(3), rows_of(good, bad))


def test_nbytes_counts_a_full_memory():
    assert ArrayStore(1000, (4,), np.float32).nbytes == 1000 * 48


def test_impossible_memories_are_refused_in_words():
    with pytest.raises(ConfigError, match="capacity is 0"):
        ArrayStore(0, (2,), np.float32)
    with pytest.raises(ConfigError, match="GB"):
        ArrayStore(10**15, (84, 84), np.uint8)
    with pytest.raises(ConfigError, match="object"):
        ArrayStore(10, (2,), object)


def test_state_of_another_kind_is_refused_and_changes_nothing():
    store = ArrayStore(5, (2,), np.float32)
    store.write(np.arange(3), rows_of(np.ones((3, 2), np.float32)))
    state = store.state_dict(3)
    ones = {name: np.zeros_like(column) for name, column in state.items()}
    for damaged, complaint in [
        (ones | {"terminated": np.zeros(2, bool)}, r"terminated has shape \(2,\)"),
        (ones | {"reward": np.zeros(3)}, "dtype float64"),
        ({name: ones[name] for name in ("observation", "action")}, "no field"),
    ]:
        with pytest.raises(CheckpointError, match=complaint):
            store.load_state_dict(damaged, 3)
    assert (store.read(np.arange(3)).observation == 1).all()
    with pytest.raises(CheckpointError, match="shape"):
        ArrayStore(5, (3,), np.float32).load_state_dict(state, 3)
