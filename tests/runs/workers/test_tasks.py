"""Tasks in processes of their own."""

import os
import signal

from cdqn.errors import ConfigError
from cdqn.runs.workers.local import LocalPool
from cdqn.runs.workers.tasks import describe_error, perform_all, perform_next
from run_files import InlinePool


def begun(task, say, stop):
    raise AssertionError("there was nothing to do")


def echo(task, say, stop):
    """Says what it is given, then returns it, raises an error, or dies."""
    say(f"about {task}")
    if task == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "fail":
        raise ConfigError("it cannot be done")
    return task


def test_events_tell_what_each_task_said_and_how_it_ended():
    """One process at a time: a task that failed leaves its worker to the next, one that died is begun again."""
    events = list(perform_all({"a": "fail", "b": "die", "c": "done"}, echo, pool=LocalPool(1), attempts=2))
    killed = "its process was killed by signal 9 (SIGKILL): probably the machine was out of memory"
    assert events == [
        ("a", "said", "about fail"),
        ("a", "failed", "it cannot be done"),
        ("b", "said", "about die"),
        ("b", "died", killed),
        ("b", "said", "about die"),
        ("b", "died", killed),
        ("c", "said", "about done"),
        ("c", "returned", "done"),
    ]


def test_error_of_ours_is_its_text_and_that_of_others_has_its_type_and_place():
    assert describe_error(ConfigError("gamma is 2")) == "gamma is 2"
    try:
        raise RuntimeError("the game\nhas crashed")
    except RuntimeError as error:
        text = describe_error(error)
    assert text.startswith("RuntimeError: the game has crashed (in ")
    assert "test_tasks.py, line " in text


def test_nothing_is_begun_without_tasks():
    assert list(perform_all({}, begun, pool=LocalPool(2))) == []


def test_what_is_next_may_depend_on_all_that_has_happened():
    """A free worker is not the end: more may come of the one that is busy."""
    known, given = ["first"], []

    def take():
        if not known:
            return None
        given.append(known.pop(0))
        return given[-1], given[-1]

    for name, kind, _ in perform_next(take, echo, InlinePool()):
        if kind == "returned" and name == "first":
            known += ["second", "third"]
    assert given == ["first", "second", "third"]
