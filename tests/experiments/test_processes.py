"""Runs of an experiment in processes: one that dies is named."""

import os
import signal
import time
from functools import partial

import pytest

from cdqn.errors import CdqnError
from cdqn.experiments.processes import run_tasks
from cdqn.runs.workers.local import LocalPool


def die(on_progress) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def sleep(on_progress) -> None:
    time.sleep(60)


def die_once(file, on_progress) -> str:
    on_progress(1)
    if not file.exists():
        file.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def test_task_whose_process_died_is_begun_again_once(tmp_path):
    told = []
    tasks = {"first": partial(die_once, tmp_path / "a"), "second": partial(die_once, tmp_path / "b")}
    with pytest.warns(UserWarning, match="killed by signal 9.*it is begun again") as warned:
        results = run_tasks(
            tasks, pool=LocalPool(1), size=5, on_progress=lambda done, total: told.append((done, total))
        )
    assert results == ["alive", "alive"]
    assert [str(warning.message).partition(":")[0] for warning in warned] == ["first", "second"]
    assert told[-1] == (10, 10)


@pytest.mark.filterwarnings("ignore:second")
def test_task_whose_process_died_twice_is_named_and_the_others_end():
    begun = time.monotonic()
    with pytest.raises(CdqnError, match="second failed in its process: its process was killed by signal 9"):
        run_tasks({"first": sleep, "second": die}, pool=LocalPool(2), size=1)
    assert time.monotonic() - begun < 50
