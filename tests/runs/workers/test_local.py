"""Processes of this machine."""

import os

import pytest

from cdqn.errors import ConfigError
from cdqn.runs.workers.local import LocalPool
from cdqn.runs.workers.tasks import perform_all


def own_process(task, say, stop):
    return os.getpid()


def test_there_is_one_process_for_each_core_or_as_many_as_one_says():
    assert LocalPool().jobs == os.cpu_count()
    assert LocalPool(3).jobs == 3
    with pytest.raises(ConfigError, match="jobs is 0"):
        LocalPool(0)


def test_a_worker_does_one_task_after_the_other_in_a_process_that_is_not_ours():
    processes = {value for _, kind, value in perform_all({"a": 1, "b": 2}, own_process, LocalPool(1))}
    assert len(processes) == 1
    assert os.getpid() not in processes
