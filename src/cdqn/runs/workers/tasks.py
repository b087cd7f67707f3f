"""Named tasks in processes of their own: what they say, how each ended, and which one's process died.

A worker does one task after the other, because importing PyTorch takes seconds. Where workers are is the business of
their pool: `local.LocalPool` or `cluster.RayPool`.
"""

import traceback
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from cdqn.errors import CdqnError
from cdqn.runs.stopping import Stop

Perform = Callable[[Any, Callable[[Any], None], Stop], Any]
"""Does a task in its worker: given the task, a way to say something to the parent, and the wish to stop."""
Kind = Literal["said", "returned", "failed", "died"]
"""It has something to say; it came to its end; it raised an error; its process died."""
WAIT_SECONDS = 0.2
"""How often the wish to stop is looked at."""


class Event(NamedTuple):
    """Something a task did."""

    name: str
    kind: Kind
    value: Any
    """What it said or returned; the text of its error; how its process died."""


class Worker(Protocol):
    """A process, as its parent sees it."""

    def send(self, task: Any) -> None:
        """A task, or None: stop the one under way."""

    def receive(self) -> tuple[Kind, Any]:
        """Kind and value of the next event; `Pool.wait` says when there is one."""

    def dismiss(self) -> None:
        """Let it go: a task under way is stopped, or lost where nobody can ask it to stop."""

    def join(self) -> None:
        """Wait for its end."""


class Pool(Protocol):
    """Where workers come from."""

    @property
    def jobs(self) -> int:
        """How many there are at a time."""

    def hire(self, perform: Perform, heeds_stop: bool) -> Worker:
        """One more."""

    def wait(self, workers: Sequence[Any], seconds: float) -> Iterable[Any]:
        """Those that have an event to receive; at the latest after so many seconds."""


def perform_all(
    tasks: Mapping[str, Any], perform: Perform, pool: Pool, stop: Stop | None = None, attempts: int = 1
) -> Generator[Event, None, None]:
    """Do all tasks, as many at a time as the pool has workers, and yield what happens.

    A task whose process dies is begun again while it has `attempts`: there is an event "died" for each of them.
    After `stop` no other task is begun; those under way are told, and end when they heed it. Without a `stop` tasks
    are not asked: they end with this generator, or with this process.
    """
    waiting = list(tasks)
    deaths = dict.fromkeys(tasks, 0)
    idle: list[Worker] = []
    busy: dict[Worker, str] = {}
    told = False
    try:
        while busy or (waiting and not (stop and stop.requested())):
            if stop and stop.requested() and not told:
                told = True
                for worker in busy:
                    worker.send(None)
            while waiting and len(busy) < pool.jobs and not told:
                worker = idle.pop() if idle else pool.hire(perform, stop is not None)
                busy[worker] = waiting.pop(0)
                worker.send(tasks[busy[worker]])
            for worker in pool.wait(list(busy), WAIT_SECONDS):
                name = busy[worker]
                kind, value = worker.receive()
                if kind != "said":
                    del busy[worker]
                if kind == "died":
                    deaths[name] += 1
                    if deaths[name] < attempts:
                        waiting.insert(0, name)
                elif kind != "said":
                    idle.append(worker)
                yield Event(name, kind, value)
    finally:
        workers = [*idle, *busy]
        for worker in workers:
            worker.dismiss()
        for worker in workers:
            worker.join()


def carry_out(perform: Perform, task: Any, tell: Callable[[Kind, Any], None], stop: Stop) -> None:
    """In a worker: do a task, and tell how it ended."""
    try:
        result = perform(task, lambda value: tell("said", value), stop)
    except Exception as error:  # whatever somebody's environment raises ends this task alone
        tell("failed", describe_error(error))
    else:
        tell("returned", result)


def describe_error(error: Exception) -> str:
    """One line: our own errors tell enough, those of others need their type and place."""
    if isinstance(error, CdqnError):
        return str(error)
    text = f"{type(error).__name__}: {error}"
    if places := traceback.extract_tb(error.__traceback__):
        text += f" (in {places[-1].filename}, line {places[-1].lineno})"
    return " ".join(text.split())
