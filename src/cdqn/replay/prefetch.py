"""Drawing the next batch in a thread while the environments are stepped.

Rebuilding stacks of frames takes about as long as stepping four emulators, and both leave Python's lock: done at
the same time, one of them is free. Nothing may be stored between drawing a batch and learning from it: the rows
of the step at hand enter the memory afterwards. A batch is taken in the step in which it was requested.
"""

from concurrent.futures import Future, ThreadPoolExecutor

from cdqn.replay.buffer import UniformReplay
from cdqn.replay.transitions import Batch


class Prefetcher:
    """One batch ahead of the learner."""

    def __init__(self, replay: UniformReplay) -> None:
        self._replay = replay
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="prefetch")
        self._next: Future[Batch] | None = None

    def request(self, batch_size: int, beta: float) -> None:
        """Begin to draw the next batch; leave the memory alone until it is taken."""
        self._next = self._thread.submit(self._replay.sample, batch_size, beta)

    def take(self) -> Batch | None:
        """The batch that was requested; None if none was."""
        if self._next is None:
            return None
        batch = self._next.result()
        self._next = None
        return batch
