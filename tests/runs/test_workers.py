"""Tasks in processes of their own."""

import pytest

from cdqn.errors import ConfigError
from cdqn.runs.workers import describe_error, perform_all


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
        next(perform_all({"a": 1}, print, jobs=0))


def test_nothing_is_begun_without_tasks():
    assert list(perform_all({}, print, jobs=2)) == []
