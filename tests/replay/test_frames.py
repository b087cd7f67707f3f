"""The frame store against the plain store, with the same writes: every read is equal, and no frame is leaked."""

import subprocess
import sys
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from frame_play import SHAPE, Play, small_blocks, stored_rows

from cdqn.errors import ConfigError
from cdqn.replay import ArrayStore, MultiStep, PrioritizedReplay, UniformReplay, frame_blocks
from cdqn.replay.frames import BYTES_PER_PIXEL, FrameStore, estimated_bytes

__all__ = ["small_blocks"]  # a fixture


def both(capacity, cls, **settings):
    """The same memory over both stores, with equal random generators."""
    stores = FrameStore(capacity, SHAPE, settings.get("eviction", "fifo")), ArrayStore(capacity, SHAPE, np.uint8)
    return [cls(store, rng=np.random.default_rng(8), **settings) for store in stores]


def assert_equal_fields(ours, theirs):
    for name, column, other in zip(ours._fields, ours, theirs, strict=False):
        np.testing.assert_array_equal(column, other, err_msg=name)
        assert column.dtype == other.dtype
        assert column.flags.c_contiguous


def assert_exact_references(store, size):
    """Each frame has as many references as slots and streams hold, and what nobody holds is gone."""
    held = Counter(store._numbers[:size].ravel().tolist())
    for _, numbers in store._last.values():
        held.update(numbers)
    assert store._frames.references() == held
    assert store.frame_count == len(held)
    assert store.frame_bytes == sum(len(store._frames[number]) for number in held)
    for frames, numbers in store._last.values():
        assert [store._decompressor.decompress(store._frames[number]) for number in numbers] == frames


@pytest.mark.parametrize("cls", [UniformReplay, PrioritizedReplay])
@pytest.mark.parametrize("eviction", ["fifo", "random"])
@pytest.mark.parametrize("discard_fraction", [0.0, 0.5])
@pytest.mark.parametrize(("capacity", "streams"), [(1, 2), (7, 3), (60, 1), (150, 4)])
def test_memory_over_frames_is_the_memory_over_arrays(small_blocks, cls, eviction, discard_fraction, capacity, streams):
    frames, arrays = both(capacity, cls, eviction=eviction, discard_fraction=discard_fraction)
    play, chooser = Play(seed=capacity, streams=streams), np.random.default_rng(3)
    for step in range(200):
        rows = play.rows(int(chooser.integers(1, 7)))
        frames.add(rows)
        arrays.add(rows)
        if len(frames) == 0:
            continue
        ours, theirs = frames.sample(9, beta=0.5), arrays.sample(9, beta=0.5)
        assert_equal_fields(ours, theirs)
        errors = chooser.lognormal(size=9)
        frames.update_priorities(ours.slots, errors)
        arrays.update_priorities(ours.slots, errors)
        if step % 20 == 0:
            everything = np.arange(len(frames))
            assert_equal_fields(frames._store.read(everything), arrays._store.read(everything))
            assert_exact_references(frames._store, len(frames))


def test_slots_may_be_overwritten_in_any_order(small_blocks):
    """By itself: distinct slots of every call at random, long before the store is full."""
    frames, arrays = FrameStore(50, SHAPE), ArrayStore(50, SHAPE, np.uint8)
    play, chooser, written = Play(seed=4, streams=5), np.random.default_rng(5), set()
    for _ in range(300):
        rows = play.rows(int(chooser.integers(0, 9)))
        slots = chooser.permutation(50)[: len(rows.action)]
        written |= set(slots.tolist())
        frames.write(slots, rows)
        arrays.write(slots, rows)
        somewhere = chooser.choice(sorted(written) or [0], size=min(20, 20 * len(written)))
        if written:
            assert_equal_fields(frames.read(somewhere), arrays.read(somewhere))
    assert written == set(range(50))
    assert_exact_references(frames, 50)


def test_nothing_of_the_past_is_left_once_everything_is_overwritten(small_blocks):
    store, play = FrameStore(40, SHAPE), Play(seed=6, streams=2)
    for start in range(0, 400, 4):
        store.write((start + np.arange(4)) % 40, play.rows(4))
    assert len(store._frames._blocks) > 1
    still = np.zeros((1, *SHAPE), np.uint8)
    for slot in range(40):
        store.write(np.array([slot]), stored_rows(still, still, stream=slot % 2))
    assert store.frame_count == 2  # one black frame for each stream
    assert_exact_references(store, 40)
    assert len(store._frames._blocks) <= 2


def test_each_frame_of_an_episode_is_stored_once():
    rng = np.random.default_rng(0)
    film = rng.integers(256, size=(30, *SHAPE[1:]), dtype=np.uint8)
    stacks = np.stack([film[i : i + SHAPE[0]] for i in range(30 - SHAPE[0] + 1)])
    store = FrameStore(100, SHAPE)
    for time in range(len(stacks) - 1):
        store.write(np.array([time]), stored_rows(stacks[time : time + 1], stacks[time + 1 : time + 2]))
    assert store.frame_count == 30


@pytest.mark.parametrize("steps", [2, 3, 4, 5, 10])
@pytest.mark.parametrize("length", [3, 12, 60])
def test_over_n_steps_too_each_frame_is_stored_once(steps, length):
    """Terminated episodes, one after another in one stream, each with a first frame that fills its first stack."""
    rng, store, multi_step = np.random.default_rng(0), FrameStore(1000, SHAPE, reach=steps), MultiStep(steps, 0.9)
    row = 0
    for _ in range(4):
        film = rng.integers(256, size=(length + 1, *SHAPE[1:]), dtype=np.uint8)
        film = np.concatenate([film[:1]] * (SHAPE[0] - 1) + [film])
        stacks = np.stack([film[i : i + SHAPE[0]] for i in range(length + 1)])
        for time in range(length):
            one = stored_rows(stacks[time : time + 1], stacks[time + 1 : time + 2])
            ready = multi_step.extend(
                one._replace(first=one.first | (time == 0), terminated=np.array([time == length - 1]))
            )
            store.write(row + np.arange(len(ready.action)), ready)
            row += len(ready.action)
    assert row == 4 * length
    assert store.frame_count == 4 * (length + 1)
    assert_exact_references(store, row)


@pytest.mark.parametrize("steps", [3, 10])
def test_memory_over_n_steps_and_frames_is_that_over_arrays_and_resumes(small_blocks, steps):
    frames, arrays = FrameStore(80, SHAPE, reach=steps), ArrayStore(80, SHAPE, np.uint8)
    play, multi_step, position = Play(seed=steps, streams=3), MultiStep(steps, 0.9), 0
    for round_ in range(200):
        rows = multi_step.extend(play.rows(5))
        slots = (position + np.arange(len(rows.action))) % 80
        position += len(rows.action)
        frames.write(slots, rows)
        arrays.write(slots, rows)
        if round_ == 150:
            saved = frames.state_dict(80)
            frames = FrameStore(80, SHAPE, reach=steps)
            frames.load_state_dict(saved, 80)
    assert position > 300
    assert_equal_fields(frames.read(np.arange(80)), arrays.read(np.arange(80)))
    assert_exact_references(frames, 80)


def test_a_gap_of_discarded_rows_stores_no_frame_twice():
    film = np.random.default_rng(0).integers(256, size=(30, *SHAPE[1:]), dtype=np.uint8)
    stacks = np.stack([film[i : i + SHAPE[0]] for i in range(30 - SHAPE[0] + 1)])
    store = FrameStore(100, SHAPE)
    for time in range(0, len(stacks) - 1, 3):
        store.write(np.array([time]), stored_rows(stacks[time : time + 1], stacks[time + 1 : time + 2]))
    assert store.frame_count == 24 + 1 + SHAPE[0]  # the last row begins at 24


def test_repeated_frames_of_a_reset_stack_are_one_frame():
    store = FrameStore(2, SHAPE)
    frame = np.full(SHAPE[1:], 9, np.uint8)
    store.write(np.array([0]), stored_rows(np.stack([frame] * SHAPE[0])[None], np.stack([frame] * SHAPE[0])[None]))
    assert store.frame_count == 1


def test_streams_that_are_not_seen_for_long_are_forgotten(monkeypatch, small_blocks):
    """A data set may number thousands of streams; their last stacks must not fill the memory."""
    monkeypatch.setattr("cdqn.replay.frames._MOST_STREAMS", 3)
    frames, arrays = FrameStore(30, SHAPE), ArrayStore(30, SHAPE, np.uint8)
    play = Play(seed=7, streams=12)
    for start in range(0, 300, 5):
        rows, slots = play.rows(5), (start + np.arange(5)) % 30
        frames.write(slots, rows)
        arrays.write(slots, rows)
        assert len(frames._last) <= 3
    assert_equal_fields(frames.read(np.arange(30)), arrays.read(np.arange(30)))
    assert_exact_references(frames, 30)


def test_both_times_are_the_halves_of_one_array_that_is_the_callers_own():
    store, play = FrameStore(10, SHAPE), Play(seed=1, streams=1)
    store.write(np.arange(10), play.rows(10))
    fields = store.read(np.array([3, 3, 5]))
    before = fields.observation.copy(), fields.next_observation.copy()
    whole = fields.observation.base
    assert whole is fields.next_observation.base
    assert whole.shape == (6, *SHAPE)
    assert whole.flags.owndata
    fields.observation[:] = 0
    fields.next_observation[:] = 0
    fields.reward[:] = -1
    again = store.read(np.array([3, 3, 5]))
    np.testing.assert_array_equal(again.observation, before[0])
    np.testing.assert_array_equal(again.next_observation, before[1])
    assert (again.reward != -1).all()


def test_rows_are_copied_when_they_are_written():
    """An environment that fills the same arrays at every step must not change the past."""
    store, rows = FrameStore(10, SHAPE), Play(seed=1, streams=1).rows(3)
    before = rows.observation.copy()
    store.write(np.arange(3), rows)
    rows.observation[:] = 77
    np.testing.assert_array_equal(store.read(np.arange(3)).observation, before)


@pytest.mark.parametrize("field", ["observation", "next_observation"])
@pytest.mark.parametrize("wrong", [np.zeros((1, 4, 5, 4), np.uint8), np.zeros((1, *SHAPE), np.float32)])
def test_wrong_observation_is_named_and_changes_nothing(field, wrong):
    store = FrameStore(4, SHAPE)
    good = np.zeros((1, *SHAPE), np.uint8)
    with pytest.raises(ConfigError, match=rf"transitions\.{field} "):
        store.write(np.array([0]), stored_rows(good, good)._replace(**{field: wrong}))
    assert store.frame_count == 0


def test_impossible_stores_are_refused_in_words():
    with pytest.raises(ConfigError, match="capacity is 0"):
        FrameStore(0, SHAPE)
    with pytest.raises(ConfigError, match=r"\(4,\).*stack, height, width"):
        FrameStore(10, (4,))
    with pytest.raises(ConfigError, match="'oldest'"):
        FrameStore(10, SHAPE, "oldest")


def test_estimate_is_known_before_anything_is_stored():
    million = FrameStore(1_000_000, (4, 105, 80), "random")
    assert million.nbytes == estimated_bytes(1_000_000, (4, 105, 80), "random")
    assert 2.3e6 * 8400 * BYTES_PER_PIXEL < million.nbytes < 5e9
    assert 1.1e6 * 8400 * BYTES_PER_PIXEL < estimated_bytes(1_000_000, (4, 105, 80), "fifo") < 2e9
    assert estimated_bytes(2000, (4, 84, 84), "fifo") == pytest.approx(2 * estimated_bytes(1000, (4, 84, 84), "fifo"))


def test_bytes_in_use_count_what_python_has_allocated(small_blocks, monkeypatch):
    monkeypatch.setattr(frame_blocks, "BLOCK_FRAMES", 1024)
    store = FrameStore(2000, SHAPE)
    empty = store.nbytes_used
    play = Play(seed=2, streams=1)
    for start in range(0, 2000, 100):
        store.write(start + np.arange(100), play.rows(100))
    blocks = store._frames._blocks.values()
    frames = [frame for block in blocks for frame in block.frames if frame is not None]
    measured = sum(map(sys.getsizeof, frames))
    measured += sum(sys.getsizeof(block.frames) + sys.getsizeof(block.references) for block in blocks)
    measured += sum(len(frame) for last, _ in store._last.values() for frame in last)
    assert 0.9 * measured < store.nbytes_used - empty < 1.25 * measured


def test_memory_that_is_taken_is_memory_that_is_counted():
    """zstandard returns bytes with a buffer as large as the uncompressed frame, which `sys.getsizeof` does not see."""
    rng, shape = np.random.default_rng(0), (2, 60, 50)
    store = FrameStore(500, shape)
    tracemalloc.start()
    try:
        before, counted = tracemalloc.get_traced_memory()[0], store.nbytes_used
        for slot in range(500):
            stack = np.repeat(rng.integers(256, size=(1, 2, 60, 1), dtype=np.uint8), 50, axis=3)
            store.write(np.array([slot]), stored_rows(stack, stack))
        taken, counted = tracemalloc.get_traced_memory()[0] - before, store.nbytes_used - counted
    finally:
        tracemalloc.stop()
    assert store.frame_bytes < 0.2 * 1000 * 60 * 50
    assert 0.8 * counted < taken < 1.2 * counted


def test_missing_package_is_an_error_with_the_line_that_installs_it():
    """And nothing that `import cdqn` loads needs the package."""
    script = (
        "import sys; sys.modules['zstandard'] = None; import cdqn, cdqn.replay, cdqn.training.trainer\n"
        "try: import cdqn.replay.frames\n"
        "except cdqn.errors.MissingPackageError as error: print(error)"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'cdqn[atari]'" in answer.stdout
