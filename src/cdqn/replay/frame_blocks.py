"""Compressed frames under increasing numbers, each kept as long as somebody refers to it.

Numbers are never used twice. So frames lie in blocks of `BLOCK_FRAMES` successive numbers, a block that is complete
only ever loses frames, and a checkpoint can keep the file of a block until half of it is gone.
"""

import hashlib
from array import array
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from cdqn.errors import CheckpointError
from cdqn.replay.transitions import Array, Ints
from cdqn.storage.shared_array import SharedArray

BLOCK_FRAMES = 8192
_HEADER = np.dtype("<i4")
_OBJECT_BYTES = 48
"""Of each frame beside its content: 33 of a Python bytes object, and what allocators round up to."""
_PLACE_BYTES = 12
"""Of each number in a block, whether its frame is still there or not: a reference and a count."""

Bytes = npt.NDArray[np.uint8]


class _Block:
    """Frames of successive numbers; None where nobody refers to it any more, or it is still to come."""

    __slots__ = ("alive", "bytes_alive", "bytes_named", "frames", "name", "references")

    def __init__(self) -> None:
        self.frames: list[bytes | None] = [None] * BLOCK_FRAMES
        self.references = array("i", bytes(4 * BLOCK_FRAMES))
        self.alive = 0
        self.bytes_alive = 0
        self.name: str | None = None
        """Of the file that a checkpoint keeps for it; None while the block grows."""
        self.bytes_named = 0
        """Of the frames in that file: those alive when it was named."""

    def put(self, place: int, frame: bytes) -> None:
        self.frames[place] = frame
        self.alive += 1
        self.bytes_alive += len(frame)

    def saved(self, key: str) -> SharedArray:
        """What a checkpoint keeps of a complete block, under a new name once less than half of it is alive."""
        snapshot = tuple(self.frames)
        if self.name is None or 2 * self.bytes_alive < self.bytes_named:
            self.content(key, snapshot)
        assert self.name is not None
        return SharedArray(self.name, partial(self.content, key, snapshot))

    def content(self, key: str, snapshot: tuple[bytes | None, ...]) -> tuple[str, Bytes]:
        """A file for the frames of the snapshot; from now on the block goes by its name."""
        content = pack(snapshot)
        self.rename(key, content, sum(len(frame) for frame in snapshot if frame is not None))
        assert self.name is not None
        return self.name, content

    def rename(self, key: str, content: Bytes, frame_bytes: int) -> None:
        """The name has a digest of the content, so that two runs in one folder do not take each other's frames."""
        self.name = f"frames-{key}-{hashlib.blake2b(content.data, digest_size=8).hexdigest()}"
        self.bytes_named = frame_bytes


class FrameBlocks:
    """Frames as bytes, by number. A frame is gone when its last reference is released."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._next_number = 1
        self._alive = 0
        self._bytes_alive = 0

    def __len__(self) -> int:
        return self._alive

    @property
    def bytes_alive(self) -> int:
        """Of the compressed frames alone."""
        return self._bytes_alive

    @property
    def nbytes(self) -> int:
        """Bytes in use, with what Python needs to hold them."""
        return self._bytes_alive + _OBJECT_BYTES * self._alive + _PLACE_BYTES * BLOCK_FRAMES * len(self._blocks)

    def __getitem__(self, number: int) -> bytes:
        frame = self._blocks[number // BLOCK_FRAMES].frames[number % BLOCK_FRAMES]
        if frame is None:
            raise KeyError(number)
        return frame

    def add(self, frame: bytes) -> int:
        """Number a frame. Nobody refers to it yet: `retain` it before anything is released."""
        number = self._next_number
        index, place = divmod(number, BLOCK_FRAMES)
        if index not in self._blocks:
            self._blocks[index] = _Block()
        self._blocks[index].put(place, frame)
        self._next_number = number + 1
        self._alive += 1
        self._bytes_alive += len(frame)
        return number

    def retain(self, numbers: Iterable[int]) -> None:
        """One more reference for each number given, as often as it is given."""
        blocks = self._blocks
        for number in numbers:
            blocks[number // BLOCK_FRAMES].references[number % BLOCK_FRAMES] += 1

    def release(self, numbers: Iterable[int]) -> None:
        """One reference less for each number given; 0 is no frame."""
        blocks = self._blocks
        for number in numbers:
            if number == 0:
                continue
            index, place = divmod(number, BLOCK_FRAMES)
            references = blocks[index].references
            references[place] -= 1
            if references[place] == 0:
                self._free(index, place)

    def references(self) -> dict[int, int]:
        """How often each frame is referred to."""
        return {
            BLOCK_FRAMES * index + place: block.references[place]
            for index, block in self._blocks.items()
            for place, frame in enumerate(block.frames)
            if frame is not None
        }

    def state_dict(self) -> dict[str, Any]:
        """All frames, block by block; complete blocks as arrays that a checkpoint may share with the one before."""
        growing = self._next_number // BLOCK_FRAMES
        blocks = {
            f"{index:06d}": pack(tuple(block.frames)) if index == growing else block.saved(f"{index:06d}")
            for index, block in sorted(self._blocks.items())
        }
        return {"next_number": self._next_number, "blocks": blocks}

    @classmethod
    def from_state(cls, state: dict[str, Any], referred: Ints, check: Callable[[bytes], bool]) -> "FrameBlocks":
        """Frames of a saved state, with one reference for each number in `referred`; CheckpointError if damaged."""
        loaded = cls()
        try:
            loaded._next_number = int(state["next_number"])
            contents = {int(key): _content(block) for key, block in state["blocks"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _damaged(f"frames have no usable index ({error})") from error
        numbers, counts = np.unique(referred, return_counts=True)
        if loaded._next_number < 1 or (numbers.size and not 1 <= numbers[0] <= numbers[-1] < loaded._next_number):
            raise _damaged(f"a transition refers to frames outside 1 … {loaded._next_number - 1}")
        indices, starts = np.unique(numbers // BLOCK_FRAMES, return_index=True)
        bounds = [*starts.tolist(), numbers.size]
        wanted = {index: slice(bounds[i], bounds[i + 1]) for i, index in enumerate(indices.tolist())}
        growing = loaded._next_number // BLOCK_FRAMES
        if missing := wanted.keys() - contents.keys():
            raise _damaged(f"block {min(missing)} of the frames is missing")
        for index, content in contents.items():
            if not 0 <= index <= growing:
                raise _damaged(f"block {index} of the frames is beyond number {loaded._next_number}")
            frames = unpack(content, index, check)
            block = loaded._blocks[index] = _Block()
            if index < growing:
                block.rename(f"{index:06d}", content, sum(map(len, frames.values())))
            part = wanted.get(index, slice(0, 0))
            for number, count in zip(numbers[part].tolist(), counts[part].tolist(), strict=True):
                place = number % BLOCK_FRAMES
                if place not in frames:
                    raise _damaged(f"frame {number} is missing")
                block.put(place, frames[place])
                block.references[place] = count
            loaded._alive += block.alive
            loaded._bytes_alive += block.bytes_alive
            if block.alive == 0:
                del loaded._blocks[index]
        return loaded

    def _free(self, index: int, place: int) -> None:
        block = self._blocks[index]
        frame = block.frames[place]
        assert frame is not None
        block.frames[place] = None
        block.alive -= 1
        block.bytes_alive -= len(frame)
        self._alive -= 1
        self._bytes_alive -= len(frame)
        if block.alive == 0:
            del self._blocks[index]


def pack(frames: tuple[bytes | None, ...]) -> Bytes:
    """A block as one array: how many frames are alive, their places, their lengths, their bytes."""
    places = [place for place, frame in enumerate(frames) if frame is not None]
    alive = [frame for frame in frames if frame is not None]
    header = np.array([len(alive), *places, *map(len, alive)], _HEADER)
    return np.frombuffer(header.tobytes() + b"".join(alive), np.uint8)


def unpack(content: Array, index: int, check: Callable[[bytes], bool]) -> dict[int, bytes]:
    """The inverse of `pack`, by place; CheckpointError where the array contradicts itself."""
    if content.dtype != np.uint8 or content.ndim != 1 or content.size < _HEADER.itemsize:
        raise _damaged(f"block {index} of the frames has shape {content.shape} and dtype {content.dtype}")
    data = content.tobytes()
    count = int(np.frombuffer(data, _HEADER, 1)[0])
    start = (1 + 2 * count) * _HEADER.itemsize
    if not 0 <= count <= BLOCK_FRAMES or start > len(data):
        raise _damaged(f"block {index} of the frames claims {count} frames in {len(data)} bytes")
    places, lengths = np.frombuffer(data, _HEADER, 2 * count, _HEADER.itemsize).reshape(2, count).astype(np.int64)
    in_order = count == 0 or (places[0] >= 0 and places[-1] < BLOCK_FRAMES and (np.diff(places) > 0).all())
    if not in_order or (lengths <= 0).any() or start + lengths.sum() != len(data):
        raise _damaged(f"places or lengths in block {index} of the frames contradict each other")
    ends = (start + np.cumsum(lengths)).tolist()
    frames = {
        place: data[end - length : end]
        for place, length, end in zip(places.tolist(), lengths.tolist(), ends, strict=True)
    }
    for place, frame in frames.items():
        if not check(frame):
            raise _damaged(f"frame {BLOCK_FRAMES * index + place} is no compressed frame of this size")
    return frames


def _content(block: Any) -> Array:
    """A state that has not been to the disk holds the shared arrays themselves."""
    return block.content()[1] if isinstance(block, SharedArray) else np.ascontiguousarray(block)


def _damaged(what: str) -> CheckpointError:
    return CheckpointError(f"replay state: {what}: the checkpoint is damaged")
