"""Frames by number: kept while somebody refers to them, packed without loss, refused where damaged."""

import numpy as np
import pytest
from frame_play import small_blocks  # noqa: F401  a fixture

from cdqn.errors import CheckpointError
from cdqn.replay.frame_blocks import FrameBlocks, pack, unpack
from cdqn.storage.shared_array import SharedArray


def anything(frame):
    return True


def test_frame_goes_with_its_last_reference():
    blocks = FrameBlocks()
    one, two = blocks.add(b"one"), blocks.add(b"two")
    blocks.retain([one, two, one])
    blocks.release([one, two, 0])
    assert blocks[one] == b"one"
    assert (len(blocks), blocks.bytes_alive, blocks.references()) == (1, 3, {one: 1})
    with pytest.raises(KeyError):
        blocks[two]
    blocks.release([one])
    assert (len(blocks), blocks.bytes_alive, blocks.nbytes) == (0, 0, 0)


def test_number_is_never_used_twice():
    blocks = FrameBlocks()
    numbers = []
    for _ in range(3):
        numbers.append(blocks.add(b"x"))
        blocks.retain(numbers[-1:])
        blocks.release(numbers[-1:])
    assert numbers == [1, 2, 3]


@pytest.mark.parametrize("frames", [(), (None, None), (b"a", None, b"bcd")])
def test_packed_frames_are_unpacked_at_their_places(frames):
    content = pack(frames)
    assert unpack(content, 0, anything) == {i: frame for i, frame in enumerate(frames) if frame is not None}


@pytest.mark.parametrize("damage", [lambda c: c[:-1], lambda c: c[:2], lambda c: c.astype(np.int32), np.roll])
def test_damaged_block_is_refused(damage):
    content = pack((b"a", None, b"bcd"))
    with pytest.raises(CheckpointError, match="damaged"):
        unpack(np.roll(content, 4) if damage is np.roll else damage(content), 0, anything)


@pytest.mark.usefixtures("small_blocks")
def test_saved_frames_come_back_with_their_references_and_complete_blocks_are_shared():
    blocks = FrameBlocks()
    numbers = [blocks.add(bytes([i])) for i in range(1, 41)]
    blocks.retain([*numbers, *numbers[:5]])
    blocks.release(numbers[20:25])
    state = blocks.state_dict()
    assert [type(block) is SharedArray for block in state["blocks"].values()] == [True, True, False]
    referred = np.array([*numbers[:20], *numbers[25:], *numbers[:5]])
    loaded = FrameBlocks.from_state(state, referred, anything)
    assert loaded.references() == blocks.references()
    assert all(loaded[number] == bytes([number]) for number in blocks.references())
    assert loaded.add(b"next") == 41
