"""Independent tasks in processes of their own, with one progress for all of them."""

import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, TypeVar

from cdqn.errors import CdqnError
from cdqn.runs.process import tune_process
from cdqn.runs.stopping import Stop
from cdqn.runs.workers.tasks import Pool, perform_all

T = TypeVar("T")

TELL_PERIOD_SECONDS = 0.2
ATTEMPTS = 2
"""A process may die of another one's hunger for memory; one that dies twice at the same task will do so again."""


def run_tasks(
    tasks: Mapping[str, Callable[..., T]],
    pool: Pool,
    size: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[T]:
    """The results of `tasks`, each in a process of the pool, with one thread.

    A task is called with `on_progress`, to be told how much of its `size` is done. One whose process dies is begun
    again once, with a warning. Ctrl-C, or an error in one task, ends them all, and the error says which task it was;
    if this process is killed, they end as well.
    """
    done = dict.fromkeys(tasks, 0)
    results: dict[str, T] = {}
    died: set[str] = set()
    with closing(perform_all(tasks, _run, pool, attempts=ATTEMPTS)) as events:
        for name, kind, value in events:
            if kind == "failed" or (kind == "died" and name in died):
                raise CdqnError(f"{name} failed in its process: {value}")
            if kind == "died":
                died.add(name)
                warnings.warn(f"{name}: {value}; it is begun again", stacklevel=2)
                value = 0
            elif kind == "returned":
                results[name] = value
            done[name] = size if kind == "returned" else value
            if on_progress:
                on_progress(sum(done.values()), size * len(tasks))
    return [results[name] for name in tasks]


def _run(task: Callable[..., T], tell: Callable[[Any], None], _: Stop) -> T:
    told = 0.0

    def note(amount: int) -> None:
        nonlocal told
        if time.monotonic() - told > TELL_PERIOD_SECONDS:
            told = time.monotonic()
            tell(amount)

    tune_process()
    return task(on_progress=note)
