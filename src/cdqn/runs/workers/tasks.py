"""Named tasks in processes of their own: what they say, how each ended, and which one's process died.

A worker does one task after the other, because importing PyTorch takes seconds. Where workers are is the business of
their pool: `local.LocalPool` or `cluster.RayPool`.
"""

import traceback
from collections import Counter
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
    """Do all tasks, as many at a time as the pool has workers, and yield what happens; more in `perform_next`."""
    remaining = iter(tasks.items())
    return perform_next(lambda: next(remaining, None), perform, pool, stop, attempts)


def perform_next(
    take: Callable[[], tuple[str, Any] | None],
    perform: Perform,
    pool: Pool,
    stop: Stop | None = None,
    attempts: int = 1,
) -> Generator[Event, None, None]:
    """Do what `take` gives, name and task, whenever a worker is free, and yield what happens.

    `take` knows of all events so far, and may give None now and more after another event; it ends when nothing is
    under way. A task whose process dies is begun again while it has `attempts`: there is an event "died" for each of
    them. After `stop` no other task is begun; those under way are told, and end when they heed it. Without a `stop`
    tasks are not asked: they end with this generator, or with this process.
    """
    again: list[tuple[str, Any]] = []
    deaths: Counter[str] = Counter()
    idle: list[Worker] = []
    busy: dict[Worker, tuple[str, Any]] = {}
    told = False
    try:
        while True:
            if stop and stop.requested() and not told:
                told = True
                for worker in busy:
                    worker.send(None)
            while len(busy) < pool.jobs and not told and (item := again.pop(0) if again else take()) is not None:
                worker = idle.pop() if idle else pool.hire(perform, stop is not None)
                busy[worker] = item
                worker.send(item[1])
            if not busy:
                break
            for worker in pool.wait(list(busy), WAIT_SECONDS):
                kind, value = worker.receive()
                item = busy[worker] if kind == "said" else busy.pop(worker)
                name = item[0]
                if kind == "died":
                    deaths[name] += 1
                    if deaths[name] < attempts:
                        again.append(item)
                elif kind != "said":
                    idle.append(worker)
                yield Event(name, kind, value)
    finally:
        _dismiss([*idle, *busy])


def _dismiss(workers: Sequence[Worker]) -> None:
    """All are told before the first is waited for."""
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
