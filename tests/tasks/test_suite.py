"""Scores of the suite's tasks: 0 for play that achieves nothing, 1 for the reference."""

import pytest

from cdqn.tasks.suite import TASKS


@pytest.mark.parametrize("name", TASKS)
def test_score_is_0_at_the_floor_and_1_at_the_reference(name):
    task = TASKS[name]
    floor = task.random if task.idle is None else task.idle
    assert task.name == name
    assert floor < task.reference
    assert task.normalized(floor) == 0
    assert task.normalized(task.reference) == 1
    assert task.normalized((floor + task.reference) / 2) == pytest.approx(0.5)
    assert task.normalized(floor - 1000) == 0, "worse than doing nothing is not worse than nothing"
    assert task.normalized(task.reference + (task.reference - floor)) == pytest.approx(2)


def test_no_two_tasks_are_the_same_environment():
    assert len({task.env_id for task in TASKS.values()}) == len(TASKS)
