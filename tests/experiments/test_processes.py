"""Runs of an experiment in processes: one that dies is named."""

import os
import signal
import time

import pytest

from cdqn.errors import CdqnError
from cdqn.experiments.processes import run_tasks


def die(on_progress) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def sleep(on_progress) -> None:
    time.sleep(60)


def test_task_whose_process_died_is_named_and_the_others_end():
    begun = time.monotonic()
    with pytest.raises(CdqnError, match="second failed in its process: its process was killed by signal 9"):
        run_tasks({"first": sleep, "second": die}, jobs=2, size=1)
    assert time.monotonic() - begun < 50
