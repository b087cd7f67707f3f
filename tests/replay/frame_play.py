"""A tiny game for the frame store: episodes of random frames, with everything that happens at their borders."""

import numpy as np
import pytest

from cdqn.replay import Transitions, frame_blocks

SHAPE = (3, 5, 4)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 16 frames, so that a test sees many of them come and go."""
    monkeypatch.setattr(frame_blocks, "BLOCK_FRAMES", 16)


class Play:
    """Streams of stacks. After a reset the stack is repeated or black; some frames stand still; some flicker.

    Episodes end in termination or truncation with their true final frame, or (a lost life) go on regardless.
    """

    def __init__(self, seed, streams):
        self.rng = np.random.default_rng(seed)
        self.stacks = [self._reset() for _ in range(streams)]
        self.first = [True] * streams

    def rows(self, count):
        """The next transitions; a stream may have several in one call, in order of time."""
        made = [self._step(int(self.rng.integers(len(self.stacks)))) for _ in range(count)]
        columns = list(zip(*made, strict=True)) or [()] * len(Transitions._fields)
        dtypes = (np.uint8, np.int64, np.float32, np.uint8, bool, np.int64, bool)
        shapes = ((-1, *SHAPE), -1, -1, (-1, *SHAPE), -1, -1, -1)
        arrays = [
            np.array(c, d).reshape(s) if c else np.zeros((0, *np.ravel(s)[1:]), d)
            for c, d, s in zip(columns, dtypes, shapes, strict=True)
        ]
        return Transitions(*arrays)

    def _step(self, stream):
        stack = self.stacks[stream]
        roll = self.rng.random()
        if roll < 0.15:
            frame = stack[-1]  # nothing moves
        elif roll < 0.25:
            frame = stack[0]  # a flicker: what was seen before
        else:
            frame = self._frame()
        next_stack = np.concatenate([stack[1:], frame[None]])
        ending = self.rng.random()
        first, self.first[stream] = self.first[stream], ending < 0.15
        self.stacks[stream] = self._reset() if ending < 0.15 else next_stack
        row = stack, int(self.rng.integers(6)), float(self.rng.random()), next_stack
        return *row, ending < 0.08 or ending > 0.97, stream, first

    def _reset(self):
        frame = self._frame()
        return np.stack([frame if self.rng.random() < 0.5 else np.zeros_like(frame)] * (SHAPE[0] - 1) + [frame])

    def _frame(self):
        return self.rng.integers(256, size=SHAPE[1:], dtype=np.uint8)


def stored_rows(observation, next_observation, stream=0):
    count = len(observation)
    return Transitions(
        observation,
        np.arange(count),
        np.ones(count, np.float32),
        next_observation,
        np.zeros(count, bool),
        np.full(count, stream),
        np.zeros(count, bool),
    )
