"""Tasks in processes of their own."""

import os
import signal
import time

import pytest

from cdqn.errors import CdqnError, ConfigError
from cdqn.experiments.processes import run_tasks
from cdqn.runs.workers import describe_error, perform_all


def die(on_progress) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def sleep(on_progress) -> None:
    time.sleep(60)


def test_task_whose_process_died_is_named_and_the_others_end():
    begun = time.monotonic()
    with pytest.raises(CdqnError, match="second failed in its process: its process was killed by signal 9"):
        run_tasks({"first": sleep, "second": die}, jobs=2, size=1)
    assert time.monotonic() - begun < 50


def test_error_of_ours_is_its_text_and_that_of_others_has_its_type_and_place():
    assert describe_error(ConfigError("gamma is 2")) == "gamma is 2"
    try:
        raise RuntimeError("the game\nhas crashed")
    except RuntimeError as error:
        text = describe_error(error)
    assert text.startswith("RuntimeError: the game has crashed (in ")
    assert "test_workers.py, line " in text


def test_without_a_process_there_is_no_work():
    with pytest.raises(ConfigError, match="jobs is 0"):
        next(perform_all({"a": 1}, die, jobs=0))


def test_nothing_is_begun_without_tasks():
    assert list(perform_all({}, die, jobs=2)) == []
