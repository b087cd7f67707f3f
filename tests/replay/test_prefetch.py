"""One batch ahead: drawn in another thread, once for each request, the same as without it."""

import threading

import numpy as np
import pytest
from replay_twins import make_replay, make_rows

from cdqn.replay import Prefetcher


def filled():
    replay = make_replay(8, seed=5)
    replay.add(make_rows(range(8)))
    return replay


def test_batch_is_the_one_that_the_memory_would_have_drawn():
    prefetcher, plain = Prefetcher(filled()), filled()
    for _ in range(3):
        prefetcher.request(4, 0.5)
        ours, theirs = prefetcher.take(), plain.sample(4, 0.5)
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)


def test_request_is_taken_once():
    prefetcher = Prefetcher(filled())
    assert prefetcher.take() is None
    prefetcher.request(4, 0.5)
    assert prefetcher.take() is not None
    assert prefetcher.take() is None


class Slow:
    """A memory that draws only when it is let, and remembers in which thread."""

    def __init__(self):
        self.may_draw = threading.Event()
        self.thread = None

    def sample(self, batch_size, beta):
        assert self.may_draw.wait(60)
        self.thread = threading.current_thread()
        if batch_size == 0:
            raise ValueError("an empty batch")
        return batch_size, beta


def test_request_does_not_wait_for_the_batch():
    memory = Slow()
    prefetcher = Prefetcher(memory)
    prefetcher.request(4, 0.5)  # would wait for a minute, and fail, if it were drawn here
    memory.may_draw.set()
    assert prefetcher.take() == (4, 0.5)
    assert memory.thread is not threading.current_thread()


def test_error_of_the_memory_reaches_the_one_who_takes():
    memory = Slow()
    memory.may_draw.set()
    prefetcher = Prefetcher(memory)
    prefetcher.request(0, 0.5)
    with pytest.raises(ValueError, match="an empty batch"):
        prefetcher.take()
