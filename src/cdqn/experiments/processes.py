"""Independent tasks in processes of their own, with one progress for all of them."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

from cdqn.errors import CdqnError, ConfigError
from cdqn.runtime import tune_process

T = TypeVar("T")

_done: Any = None
"""In a worker: what is done of each task, in memory shared with the parent."""


def run_tasks(
    tasks: Mapping[str, Callable[..., T]],
    jobs: int,
    size: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[T]:
    """The results of `tasks`, at most `jobs` at a time, each in a process with one thread.

    A task is called with `on_progress`, to be told how much of its `size` is done. Ctrl-C, or an error in one task,
    ends them all, and the error says which task it was; if this process is killed, they end as well.
    """
    if jobs < 1:
        raise ConfigError(f"jobs is {jobs}: it must be a whole number of at least 1")
    context = multiprocessing.get_context("spawn")
    done = context.Array("q", len(tasks), lock=False)
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(min(jobs, len(tasks)), context, _begin, (done, os.getpid()))
    told = -1
    try:
        with _sigint_ignored():  # inherited by the workers: Ctrl-C is for this process, which ends them
            futures = {pool.submit(_run, number, task): name for number, (name, task) in enumerate(tasks.items())}
        pending = set(futures)
        while pending:
            finished, pending = wait(pending, timeout=0.2, return_when=FIRST_EXCEPTION)
            for future in finished:
                if error := future.exception():
                    what = str(error) if isinstance(error, CdqnError) else f"{type(error).__name__}: {error}"
                    raise CdqnError(f"{futures[future]} failed in its process: {what}") from error
            if on_progress and sum(done) != told:
                told = sum(done)
                on_progress(told, size * len(tasks))
        return [future.result() for future in futures]
    except BaseException:
        for child in multiprocessing.active_children():
            if child not in others:
                child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _sigint_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # signals are somebody else's
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _begin(done: Any, parent: int) -> None:
    global _done
    _done = done
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    tune_process()


def _leave_with(parent: int) -> None:
    """A task that outlives its parent would write into the folder of the one that takes its place."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


def _run(number: int, task: Callable[..., T]) -> T:
    def note(amount: int) -> None:
        _done[number] = amount

    return task(on_progress=note)
