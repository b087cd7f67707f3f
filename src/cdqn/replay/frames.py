"""The frame store: observations are stacks of images, and each distinct image is kept once, compressed.

Successive stacks of one environment share all frames but one, and the two stacks of a transition do too. A frame is
recognised by its content among the last frames of its stream: nothing is assumed about episodes, discarded rows or
the order in which slots are overwritten. A stack that shares nothing with the one before stores all its frames.

benchmarks/frame_replay.py measures what this takes, on real play.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from cdqn.errors import CheckpointError, ConfigError
from cdqn.integrations.optional import zstandard_module
from cdqn.replay.frame_blocks import FrameBlocks
from cdqn.replay.transitions import Array, Fields, Ints, Transitions

zstandard = zstandard_module()

COMPRESSION_LEVEL = 3
"""Half the size of lz4 at twice its time for a batch; higher levels save another fifth for twice the time to write."""
BYTES_PER_PIXEL = 0.1
"""Of a compressed frame, to estimate with: random play gives 0.053 in Space Invaders, 0.017 in Pong, and less than
0.1 in 19 of 20 games tried (Yars' Revenge: 0.147)."""
FRAMES_PER_TRANSITION = {"fifo": 1.1, "random": 2.3}
"""Alive per stored transition: under "random" the transitions before and after it are mostly gone."""
_FRAME_OVERHEAD_BYTES = 120
"""To estimate with: the object of Python, and places in blocks, of which few are alive under "random"."""
_MOST_STREAMS = 1024
"""Whose last stack is kept uncompressed to compare with; a stream that returns later stores its frames again."""


def estimated_bytes(
    capacity: int, observation_shape: Sequence[int], eviction: Literal["fifo", "random"], new_frames: int = 1
) -> int:
    """Bytes of a full memory, from the size of Atari frames; other images may compress less.

    `new_frames`: how many of a stack are new with each step; all of them where channels are colours.
    """
    stack, *frame_shape = observation_shape
    frame_bytes = BYTES_PER_PIXEL * math.prod(frame_shape) + _FRAME_OVERHEAD_BYTES
    return int(capacity * (new_frames * FRAMES_PER_TRANSITION[eviction] * frame_bytes + _row_bytes(stack)))


class FrameStore:
    """Transitions between stacks of frames: uint8 observations of shape (stack, height, width).

    eviction: what the memory will do once it is full; here it only decides how much `nbytes` expects.
    reach: steps from one stack of a transition to the other; it decides how many frames are remembered to compare with.
    """

    def __init__(
        self,
        capacity: int,
        observation_shape: Sequence[int],
        eviction: Literal["fifo", "random"] = "fifo",
        reach: int = 1,
    ) -> None:
        if capacity < 1:
            raise ConfigError(f"replay capacity is {capacity}: a memory holds at least 1 transition")
        if len(observation_shape) != 3 or min(observation_shape) < 1:
            raise ConfigError(
                f"observations have shape {tuple(observation_shape)}: a memory of frames needs (stack, height, width)"
            )
        if eviction not in FRAMES_PER_TRANSITION:
            raise ConfigError(f"eviction is {eviction!r}: choose 'fifo' or 'random'")
        self._shape = tuple(observation_shape)
        self._stack = self._shape[0]
        self._reach = reach
        # Beside the last stack those since the observation; after an episode's border two frames are new in each row.
        self._remembered = self._stack + 2 * (reach - 1)
        self._frame_bytes = math.prod(self._shape[1:])
        self._eviction: Literal["fifo", "random"] = eviction
        # Zeros are allocated when they are first written to; frames are numbered from 1.
        self._numbers: Ints = np.zeros((capacity, 2 * self._stack), np.int64)
        self._action: Array = np.zeros(capacity, np.int64)
        self._reward: Array = np.zeros(capacity, np.float32)
        self._terminated: Array = np.zeros(capacity, np.bool_)
        self._frames = FrameBlocks()
        self._last: dict[int, tuple[list[bytes], list[int]]] = {}
        self._compressor = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL)
        self._decompressor = zstandard.ZstdDecompressor()

    @property
    def capacity(self) -> int:
        """How many transitions fit."""
        return len(self._action)

    @property
    def nbytes(self) -> int:
        """Bytes this store takes when it is full, estimated as by `estimated_bytes`."""
        return estimated_bytes(self.capacity, self._shape, self._eviction)

    @property
    def nbytes_used(self) -> int:
        """Bytes of the arrays and of the frames that are stored now."""
        cached = sum(sum(map(len, frames)) for frames, _ in self._last.values())
        return self.capacity * _row_bytes(self._stack) + self._frames.nbytes + cached

    @property
    def frame_count(self) -> int:
        """Distinct frames stored now."""
        return len(self._frames)

    @property
    def frame_bytes(self) -> int:
        """Bytes of these frames, compressed, without the memory that holds them together."""
        return self._frames.bytes_alive

    def write(self, slots_N: Ints, transitions: Transitions) -> None:
        """Put row n in slots_N[n]; the slots are distinct."""
        self._check_observation("observation", transitions.observation)
        self._check_observation("next_observation", transitions.next_observation)
        overwritten = self._numbers[slots_N].ravel().tolist()
        numbers = [
            self._number_row([frame.tobytes() for frame in (*stack, *next_stack)], stream)
            for stack, next_stack, stream in zip(
                transitions.observation, transitions.next_observation, transitions.stream.tolist(), strict=True
            )
        ]
        self._frames.release(overwritten)
        self._numbers[slots_N] = np.array(numbers, np.int64).reshape(-1, 2 * self._stack)
        self._action[slots_N] = transitions.action
        self._reward[slots_N] = transitions.reward
        self._terminated[slots_N] = transitions.terminated

    def read(self, slots_B: Ints) -> Fields:
        """The rows in these slots; the observations of both times are the two halves of one array."""
        count = len(slots_B)
        numbers_BK = self._numbers[slots_B]
        numbers_CK = np.concatenate([numbers_BK[:, : self._stack], numbers_BK[:, self._stack :]])
        distinct, where = np.unique(numbers_CK, return_inverse=True)
        decompress, frames = self._decompressor.decompress, self._frames
        images = np.frombuffer(b"".join([decompress(frames[number]) for number in distinct.tolist()]), np.uint8)
        stacks = images.reshape(-1, *self._shape[1:])[where.reshape(2 * count, self._stack)]
        return Fields(
            stacks[:count], self._action[slots_B], self._reward[slots_B], stacks[count:], self._terminated[slots_B]
        )

    def state_dict(self, size: int) -> dict[str, Any]:
        """Copies of the filled part and of all frames; frames in blocks that a checkpoint need not write again."""
        return {
            "observation_shape": list(self._shape),
            "numbers": self._numbers[:size].copy(),
            "action": self._action[:size].copy(),
            "reward": self._reward[:size].copy(),
            "terminated": self._terminated[:size].copy(),
            "streams": np.array(list(self._last), np.int64),
            "last_numbers": self._last_numbers(),
            "frames": self._frames.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any], size: int) -> None:
        """Take back a state as it was; a damaged one is refused as a whole."""
        if list(state.get("observation_shape", ())) != list(self._shape):
            raise CheckpointError(
                f"replay state: frames of shape {state.get('observation_shape')}, this memory has "
                f"{list(self._shape)}: resume with the environment of the saved run"
            )
        columns = {
            "numbers": self._numbers,
            "action": self._action,
            "reward": self._reward,
            "terminated": self._terminated,
        }
        saved = {name: np.asarray(state.get(name)) for name in (*columns, "streams", "last_numbers")}
        streams = saved["streams"]
        expected = {name: ((size, *column.shape[1:]), column.dtype) for name, column in columns.items()}
        expected["streams"] = (streams.shape[:1], np.dtype(np.int64))
        expected["last_numbers"] = ((*streams.shape[:1], self._remembered), np.dtype(np.int64))
        for name, (shape, dtype) in expected.items():
            if saved[name].shape != shape or saved[name].dtype != dtype:
                raise CheckpointError(
                    f"replay state: {name} has shape {saved[name].shape} and dtype {saved[name].dtype} in place of "
                    f"{shape} and {dtype}: it is damaged or of another kind"
                )
        if len(np.unique(streams)) < len(streams):
            raise CheckpointError("replay state: a stream occurs twice: the checkpoint is damaged")
        referred = np.concatenate([saved["numbers"].ravel(), saved["last_numbers"].ravel()])
        frames = FrameBlocks.from_state(state.get("frames", {}), referred, self._is_frame)
        try:
            last = {
                stream: ([self._decompressor.decompress(frames[number]) for number in numbers], numbers)
                for stream, numbers in zip(streams.tolist(), saved["last_numbers"].tolist(), strict=True)
            }
        except zstandard.ZstdError as error:
            raise CheckpointError(f"replay state: a frame is damaged: {error}") from error
        self._frames, self._last = frames, last
        for name, column in columns.items():
            column[:size] = saved[name]
            column[size:] = 0

    def _number_row(self, frames: list[bytes], stream: int) -> list[int]:
        """The numbers of the frames of both stacks; those the stream has not just had are compressed and stored."""
        last_frames, last_numbers = self._last.pop(stream, ([], []))
        known, known_numbers = last_frames.copy(), last_numbers.copy()
        numbers = []
        for i, frame in enumerate(frames):
            # Most often both stacks are those of the last row, one frame on: look there first.
            place = self._reach - 1 + i if i < self._stack else self._remembered + 1 + i - 2 * self._stack
            if place >= len(known) or known[place] != frame:
                place = known.index(frame) if frame in known else len(known)
            if place == len(known):
                known.append(frame)
                known_numbers.append(self._frames.add(self._compress(frame)))
            numbers.append(known_numbers[place])
        remembered = self._to_remember(numbers[self._stack :], known_numbers)
        # What is remembered is referred to as well, so that its numbers stay valid whatever is overwritten.
        self._frames.retain(numbers)
        self._frames.retain(remembered)
        self._frames.release(last_numbers)
        frame_of = dict(zip(known_numbers, known, strict=True))
        self._last[stream] = [frame_of[number] for number in remembered], remembered
        if len(self._last) > _MOST_STREAMS:
            self._frames.release(self._last.pop(next(iter(self._last)))[1])
        return numbers

    def _to_remember(self, last_stack: list[int], known_numbers: list[int]) -> list[int]:
        """The last stack, and before it the newest of the other frames; where there are too few, its first frame."""
        others = [number for number in dict.fromkeys(reversed(known_numbers)) if number not in last_stack]
        newest = others[: self._remembered - self._stack][::-1]
        missing = self._remembered - self._stack - len(newest)
        return last_stack[:1] * missing + newest + last_stack

    def _compress(self, frame: bytes) -> bytes:
        """A copy of its own size: what zstandard returns keeps the memory of an uncompressed frame behind its end."""
        return bytes(memoryview(self._compressor.compress(frame)))

    def _last_numbers(self) -> Ints:
        return np.array([numbers for _, numbers in self._last.values()], np.int64).reshape(-1, self._remembered)

    def _is_frame(self, compressed: bytes) -> bool:
        try:
            return bool(zstandard.frame_content_size(compressed) == self._frame_bytes)
        except zstandard.ZstdError:
            return False

    def _check_observation(self, name: str, rows: Array) -> None:
        if rows.shape[1:] != self._shape or rows.dtype != np.uint8:
            raise ConfigError(
                f"transitions.{name} has observations of shape {rows.shape[1:]} and dtype {rows.dtype}, the store was "
                f"made for {self._shape} and uint8: build the store from the environment's observation space"
            )


def _row_bytes(stack: int) -> int:
    """Frame numbers, action, reward, terminated."""
    return 8 * 2 * stack + 8 + 4 + 1
