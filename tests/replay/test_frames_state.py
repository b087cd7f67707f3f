"""Saving and loading frames: the future is the same, blocks are written once, damage is refused as a whole."""

import json

import numpy as np
import pytest
from frame_play import SHAPE, Play, small_blocks

from cdqn.errors import CheckpointError
from cdqn.replay import PrioritizedReplay, UniformReplay
from cdqn.replay.frames import FrameStore
from cdqn.storage.checkpoint import load_checkpoint, save_checkpoint
from cdqn.storage.shared_array import SharedArray

__all__ = ["small_blocks"]  # a fixture

KINDS = [
    (PrioritizedReplay, {}),
    (PrioritizedReplay, {"eviction": "random", "discard_fraction": 0.4}),
    (UniformReplay, {"eviction": "random"}),
]


def make(cls=PrioritizedReplay, seed=1, capacity=80, **settings):
    return cls(FrameStore(capacity, SHAPE), rng=np.random.default_rng(seed), **settings)


def live(replay, play, rounds):
    seen = []
    for _ in range(rounds):
        replay.add(play.rows(4))
        if len(replay) > 0:
            seen.append(replay.sample(8, beta=0.5))
            replay.update_priorities(seen[-1].slots, seen[-1].reward)
    return seen


def on_disk(state):
    """What a checkpoint does: arrays stay arrays, shared ones become plain, all else goes through JSON."""
    if isinstance(state, dict):
        return {key: on_disk(value) for key, value in state.items()}
    if isinstance(state, SharedArray):
        return state.content()[1].copy()
    return state.copy() if isinstance(state, np.ndarray) else json.loads(json.dumps(state))


def assert_equal(one, other):
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_equal(one[key], other[key])
    else:
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_array_equal(one, other)


def assert_same_future(original, resumed, seed=5):
    for ours, theirs in zip(live(original, Play(seed, 3), 60), live(resumed, Play(seed, 3), 60), strict=True):
        for column, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(column, other)
    assert_equal(on_disk(original.state_dict()), on_disk(resumed.state_dict()))


def blocks_of(store, size):
    return store.state_dict(size)["frames"]["blocks"]


@pytest.mark.parametrize(("cls", "settings"), KINDS)
@pytest.mark.parametrize("rounds_before", [0, 3, 100])
def test_future_after_loading_is_bitwise_the_same(small_blocks, cls, settings, rounds_before):
    original = make(cls, **settings)
    live(original, Play(1, 3), rounds_before)
    state = on_disk(original.state_dict())
    resumed = make(cls, seed=2, **settings)
    live(resumed, Play(2, 4), 120)  # a past that must leave no trace
    resumed.load_state_dict(state)
    assert_equal(on_disk(resumed.state_dict()), on_disk(original.state_dict()))
    assert resumed._store._frames.references() == original._store._frames.references()
    assert resumed._store.nbytes_used == original._store.nbytes_used
    assert_same_future(original, resumed)


def test_resumed_stream_goes_on_without_storing_its_stack_again(small_blocks):
    store, play = FrameStore(50, SHAPE), Play(1, 1)
    store.write(np.arange(20), play.rows(20))
    resumed = FrameStore(50, SHAPE)
    resumed.load_state_dict(on_disk(store.state_dict(20)), 20)
    rows = play.rows(10)
    for either in (store, resumed):
        either.write(np.arange(20, 30), rows)
    assert resumed.frame_count == store.frame_count


def test_state_loads_without_having_been_on_disk(small_blocks):
    original, resumed = make(), make(seed=2)
    live(original, Play(1, 3), 60)
    resumed.load_state_dict(original.state_dict())
    assert_same_future(original, resumed)


def test_state_is_a_copy_of_its_moment(small_blocks):
    replay, play = make(eviction="random"), Play(1, 2)
    live(replay, play, 40)
    state = replay.state_dict()
    before = on_disk(state)
    live(replay, play, 40)
    assert_equal(on_disk(state), before)


def test_full_memory_goes_through_checkpoints(small_blocks, tmp_path):
    """Every checkpoint of a run is complete by itself, whatever it shares with the one before."""
    replay, play = make(eviction="random"), Play(1, 3)
    for step in range(12):
        live(replay, play, 15)
        save_checkpoint(tmp_path, step, {"replay": replay.state_dict()})
        resumed = make(seed=2, eviction="random")
        resumed.load_state_dict(load_checkpoint(tmp_path)["replay"])
        assert_equal(on_disk(resumed.state_dict()), on_disk(replay.state_dict()))
        if step % 3 == 2:
            replay = resumed
    assert len(list((tmp_path / "checkpoints" / "shared").iterdir())) > 5


def test_complete_blocks_are_shared_and_the_growing_one_is_not(small_blocks):
    store = FrameStore(100, SHAPE)
    store.write(np.arange(60), Play(1, 1).rows(60))
    blocks = blocks_of(store, 60)
    *complete, growing = blocks.values()
    assert len(complete) >= 2
    assert all(isinstance(block, SharedArray) for block in complete)
    assert isinstance(growing, np.ndarray)


def test_block_keeps_its_name_until_less_than_half_of_it_is_alive(small_blocks):
    """And what stands under one name is always enough: nothing comes to a complete block."""
    store, play = FrameStore(120, SHAPE), Play(1, 1)
    store.write(np.arange(120), play.rows(120))
    names, kept, renamed = {}, 0, 0
    for start in range(0, 120, 2):
        for key, block in blocks_of(store, 120).items():
            if not isinstance(block, SharedArray):
                continue
            alive, shared = store._frames._blocks[int(key)], names.get(key)
            if shared is None:
                names[key] = block.name, alive.bytes_alive
            elif 2 * alive.bytes_alive < shared[1]:
                assert block.name != shared[0]
                names[key], renamed = (block.name, alive.bytes_alive), renamed + 1
            else:
                assert block.name == shared[0]
                kept += 1
        store.write(np.array([start, start + 1]), play.rows(2))
    assert kept > 20
    assert renamed > 3


def test_name_belongs_to_the_content_also_when_frames_have_gone_since(small_blocks):
    """Run a is saved, goes on, and is saved in folder b, where the name must not promise what a had."""
    store, play = FrameStore(40, SHAPE), Play(1, 1)
    store.write(np.arange(40), play.rows(40))
    key, before = next(iter(blocks_of(store, 40).items()))
    first_name, content = before.content()
    assert first_name == before.name
    store.write(np.arange(3), play.rows(3))  # less than half of the first block goes
    after = blocks_of(store, 40)[key]
    assert after.name == first_name
    name, less = after.content()
    assert len(less) < len(content)
    assert name != first_name
    assert blocks_of(store, 40)[key].name == name
    resumed = FrameStore(40, SHAPE)
    resumed.load_state_dict(on_disk(store.state_dict(40)), 40)
    assert blocks_of(resumed, 40)[key].name == name


def saved_store():
    store = FrameStore(40, SHAPE)
    store.write(np.arange(40), Play(1, 2).rows(40))
    return on_disk(store.state_dict(40))


def changed(state, path, change):
    head, _, tail = path.partition("/")
    if tail:
        return state | {head: changed(state[head], tail, change)}
    if change is None:
        return {key: value for key, value in state.items() if key != head}
    return state | {head: change(state[head])}


def with_first(value):
    def change(column):
        column = column.copy()
        column.flat[0] = value
        return column

    return change


def with_header(place, value):
    def change(block):
        block = block.copy()
        block[4 * place : 4 * place + 4] = np.frombuffer(np.array([value], "<i4").tobytes(), np.uint8)
        return block

    return change


DAMAGES = [
    ("observation_shape", lambda shape: [4, 84, 84], "shape"),
    ("observation_shape", None, "shape"),
    ("numbers", lambda numbers: numbers[:-1], "numbers"),
    ("numbers", lambda numbers: numbers.astype(np.int32), "numbers"),
    ("numbers", with_first(0), "outside"),
    ("numbers", with_first(10**9), "outside"),
    ("numbers", with_first(-1), "outside"),
    ("action", lambda action: action[:3], "action"),
    ("reward", lambda reward: reward.astype(np.float64), "reward"),
    ("terminated", None, "terminated"),
    ("streams", None, "streams"),
    ("streams", lambda streams: streams * 0, "twice"),
    ("last_numbers", lambda numbers: numbers[:1], "last_numbers"),
    ("last_numbers", with_first(10**9), "outside"),
    ("frames", None, "index"),
    ("frames", lambda frames: None, "index"),
    ("frames/next_number", lambda number: 1, "outside"),
    ("frames/next_number", lambda number: 17, "outside"),
    ("frames/next_number", lambda number: "many", "index"),
    ("frames/blocks", lambda blocks: {"x": blocks["000000"]}, "index"),
    ("frames/blocks", lambda blocks: {}, "missing"),
    ("frames/blocks", lambda blocks: blocks | {"000009": blocks["000000"]}, "beyond"),
    ("frames/blocks/000001", None, "block 1 of the frames is missing"),
    ("frames/blocks/000001", lambda block: block[:-1], "contradict"),
    ("frames/blocks/000001", lambda block: block[:3], "block 1"),
    ("frames/blocks/000001", lambda block: block[:40], "claims"),
    ("frames/blocks/000001", lambda block: block.astype(np.int64), "dtype"),
    ("frames/blocks/000001", with_header(0, 17), "claims 17"),
    ("frames/blocks/000001", with_header(0, -1), "claims -1"),
    ("frames/blocks/000001", with_header(1, 20), "contradict"),
    ("frames/blocks/000001", with_header(1, -1), "contradict"),
    ("frames/blocks/000001", with_header(17, 0), "contradict"),
    ("frames/blocks/000001", with_header(33, 0), "no compressed frame"),
]


@pytest.mark.parametrize(("path", "change", "complaint"), DAMAGES)
def test_damaged_state_is_refused_and_changes_nothing(small_blocks, path, change, complaint):
    store = FrameStore(40, SHAPE)
    store.write(np.arange(40), Play(2, 3).rows(40))
    before, references = on_disk(store.state_dict(40)), store._frames.references()
    with pytest.raises(CheckpointError, match=complaint):
        store.load_state_dict(changed(saved_store(), path, change), 40)
    assert_equal(on_disk(store.state_dict(40)), before)
    assert store._frames.references() == references


def test_missing_frame_is_refused(small_blocks):
    """A block that is well formed, but lacks a frame that a transition refers to."""
    store = FrameStore(40, SHAPE)
    store.write(np.arange(40), Play(1, 2).rows(40))
    state = on_disk(store.state_dict(40))
    store._frames._blocks[1].frames[5] = None
    state["frames"]["blocks"] = on_disk(store.state_dict(40))["frames"]["blocks"]
    with pytest.raises(CheckpointError, match="frame 21 is missing"):
        FrameStore(40, SHAPE).load_state_dict(state, 40)


def test_frame_of_another_size_is_refused(small_blocks):
    other = FrameStore(40, (3, 6, 4))
    state = saved_store()
    wide = np.random.default_rng(0).integers(256, size=(40, 3, 6, 4), dtype=np.uint8)
    rows = Play(1, 2).rows(40)
    other.write(np.arange(40), rows._replace(observation=wide, next_observation=wide[::-1].copy()))
    blocks = on_disk(other.state_dict(40))["frames"]["blocks"]
    state["frames"]["blocks"] = {key: blocks[key] for key in state["frames"]["blocks"]}
    with pytest.raises(CheckpointError, match="no compressed frame of this size"):
        FrameStore(40, SHAPE).load_state_dict(state, 40)
