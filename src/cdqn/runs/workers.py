"""Named tasks in processes of their own: what they say, how each ended, and which one's process died.

A worker process does one task after the other, because importing PyTorch takes seconds. It obeys its parent alone:
Ctrl-C and `kill` reach every process of a terminal or a job, and are for the parent, which tells its workers. If the
parent is gone, however it went, the pipe between them is closed, and its workers leave.
"""

import multiprocessing
import os
import queue
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import connection
from typing import Any, Literal, NamedTuple

from cdqn.errors import CdqnError, ConfigError
from cdqn.runs.stopping import SIGNALS, Stop

Perform = Callable[[Any, Callable[[Any], None], Stop], Any]
"""Does a task in its worker: given the task, a way to say something to the parent, and the wish to stop."""


class Event(NamedTuple):
    """Something a task did."""

    name: str
    kind: Literal["said", "returned", "failed", "died"]
    """It has something to say; it came to its end; it raised an error; its process died."""
    value: Any
    """What it said or returned; the text of its error; how its process died."""


def perform_all(
    tasks: Mapping[str, Any], perform: Perform, jobs: int, stop: Stop | None = None, attempts: int = 1
) -> Generator[Event, None, None]:
    """Do all tasks, at most `jobs` at a time, and yield what happens.

    A task whose process dies is begun again while it has `attempts`: there is an event "died" for each of them.
    After `stop` no other task is begun; those under way are told, and end when they heed it. Without a `stop` tasks
    are not asked: they end with this generator, or with this process.
    """
    if jobs < 1:
        raise ConfigError(f"jobs is {jobs}: it must be a whole number of at least 1")
    waiting = list(tasks)
    deaths = dict.fromkeys(tasks, 0)
    idle: list[_Worker] = []
    busy: dict[Any, tuple[_Worker, str]] = {}
    told = False
    try:
        while busy or (waiting and not (stop and stop.requested())):
            if stop and stop.requested() and not told:
                told = True
                for worker, _ in busy.values():
                    worker.send(None)
            while waiting and len(busy) < jobs and not told:
                worker = idle.pop() if idle else _Worker(perform, stop is not None)
                name = waiting.pop(0)
                worker.send(tasks[name])
                busy[worker.connection] = worker, name
            for ready in connection.wait(list(busy), timeout=0.2):
                worker, name = busy[ready]
                kind, value = worker.receive()
                if kind != "said":
                    del busy[ready]
                if kind == "died":
                    deaths[name] += 1
                    if deaths[name] < attempts:
                        waiting.insert(0, name)
                elif kind != "said":
                    idle.append(worker)
                yield Event(name, kind, value)
    finally:
        workers = [*idle, *(worker for worker, _ in busy.values())]
        for worker in workers:
            worker.dismiss()
        for worker in workers:
            worker.join()


class _Worker:
    """A process, as its parent sees it."""

    def __init__(self, perform: Perform, heeds_stop: bool) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, perform, heeds_stop))
        with _signals_held():  # until the worker is ready for them
            self._process.start()
        theirs.close()  # ours: so that the death of the worker is the end of the pipe

    def send(self, task: Any) -> None:
        """A task, or None: stop the one under way."""
        with suppress(OSError):  # it has died: `receive` tells
            self.connection.send(task)

    def receive(self) -> tuple[Any, Any]:
        """Kind and value of the next event."""
        try:
            kind, value = self.connection.recv()
            return kind, value
        except (EOFError, OSError):
            self._process.join()
            return "died", _cause_of_death(self._process.exitcode or 0)

    def dismiss(self) -> None:
        """Let it go; if it does not heed a stop, it leaves at once."""
        self.connection.close()

    def join(self) -> None:
        self._process.join()


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
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(parent, tasks, stop, heeds_stop), daemon=True).start()

    def tell(kind: str, value: Any) -> None:
        with suppress(OSError):  # the parent is gone: the run at hand ends as at Ctrl-C, and nobody asks how
            parent.send((kind, value))

    while (task := tasks.get()) is not None:
        try:
            result = perform(task, lambda value: tell("said", value), stop)
        except Exception as error:  # whatever somebody's environment raises ends this task alone
            tell("failed", describe_error(error))
        else:
            tell("returned", result)


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
        if not heeds_stop:
            os._exit(1)
        stop.request()
        tasks.put(None)


def describe_error(error: Exception) -> str:
    """One line: our own errors tell enough, those of others need their type and place."""
    if isinstance(error, CdqnError):
        return str(error)
    text = f"{type(error).__name__}: {error}"
    if places := traceback.extract_tb(error.__traceback__):
        text += f" (in {places[-1].filename}, line {places[-1].lineno})"
    return " ".join(text.split())
