"""Workers on this machine.

A worker obeys its parent alone: Ctrl-C and `kill` reach every process of a terminal or a job, and are for the parent,
which tells its workers. If the parent is gone, however it went, the pipe between them is closed, and its workers leave.

On Linux workers are forked from a server that has imported PyTorch and done nothing else: the first takes seconds to
begin, the others milliseconds, and they share its memory.
"""

import multiprocessing
import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import connection
from typing import Any

from cdqn.runs.stopping import SIGNALS, Stop
from cdqn.runs.workers.tasks import Kind, Perform, carry_out
from cdqn.storage.plain_values import COUNT, require_number

PRELOADED = ["cdqn.runs.workers.preloaded"]
"""What the server of workers imports."""


class LocalPool:
    """Processes of this machine, at most `jobs` of them; unset: one for each core."""

    def __init__(self, jobs: int | None = None) -> None:
        require_number("jobs", jobs, COUNT)
        self.jobs = jobs or os.cpu_count() or 1

    def hire(self, perform: Perform, heeds_stop: bool) -> "_Worker":
        return _Worker(perform, heeds_stop)

    def wait(self, workers: Sequence["_Worker"], seconds: float) -> list["_Worker"]:
        by_connection: dict[Any, _Worker] = {worker.connection: worker for worker in workers}
        return [by_connection[ready] for ready in connection.wait(list(by_connection), seconds)]


class _Worker:
    """A process, as its parent sees it."""

    def __init__(self, perform: Perform, heeds_stop: bool) -> None:
        context = _context()
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, perform, heeds_stop))
        with _signals_held():  # until the worker is ready for them
            self._process.start()
        theirs.close()  # ours: so that the death of the worker is the end of the pipe

    def send(self, task: Any) -> None:
        with suppress(OSError):  # it has died: `receive` tells
            self.connection.send(task)

    def receive(self) -> tuple[Kind, Any]:
        try:
            kind, value = self.connection.recv()
            return kind, value
        except (EOFError, OSError):
            self._process.join()
            return "died", _cause_of_death(self._process.exitcode or 0)

    def dismiss(self) -> None:
        self.connection.close()

    def join(self) -> None:
        self._process.join()


def _context() -> Any:
    """How processes are started: only on Linux can a process that has imported PyTorch be forked without danger."""
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)  # heeded by the first start of a server in this process
    return context


def _cause_of_death(code: int) -> str:
    if code >= 0:
        return f"its process ended by itself with exit code {code}"
    hint = ": probably the machine was out of memory" if code == -signal.SIGKILL else ""
    return f"its process was killed by signal {-code} ({signal.Signals(-code).name}){hint}"


@contextmanager
def _signals_held() -> Iterator[None]:
    """Signals wait, here and in a process that is started, which inherits this."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(parent: connection.Connection, perform: Perform, heeds_stop: bool) -> None:
    """The life of a worker process."""
    for number in SIGNALS:  # a function, not SIG_IGN, which programs started by an environment would inherit
        signal.signal(number, lambda *_: None)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    stop = Stop()
    tasks: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=_listen, args=(parent, tasks, stop, heeds_stop), daemon=True).start()

    def tell(kind: Kind, value: Any) -> None:
        with suppress(OSError):  # the parent is gone: the run at hand ends as at Ctrl-C, and nobody asks how
            parent.send((kind, value))

    while (task := tasks.get()) is not None:
        carry_out(perform, task, tell, stop)
        tasks.task_done()


def _listen(parent: connection.Connection, tasks: Any, stop: Stop, heeds_stop: bool) -> None:
    """In a thread of a worker: what the parent has to say, to the end of the pipe, which is the end of the parent."""
    try:
        while True:
            task = parent.recv()
            if task is None:
                stop.request()
            else:
                tasks.put(task)
    except (EOFError, OSError):
        if not heeds_stop and tasks.unfinished_tasks:  # else it may leave in good order
            os._exit(1)
        stop.request()
        tasks.put(None)
