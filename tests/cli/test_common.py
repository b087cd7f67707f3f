"""What commands share: names, folders, and how a run is concluded."""

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from cdqn.cli import common
from helpers import small_agent


def test_names_are_separated_by_commas_with_or_without_spaces():
    assert common.names("cdqn, dqn,mine:Own") == ["cdqn", "dqn", "mine:Own"]


def test_default_folder_has_no_character_that_means_something_in_a_path():
    assert common.default_folder("mine:MinAtar/Breakout-v1-dqn") == Path("runs/mine-MinAtar-Breakout-v1-dqn")


@pytest.mark.parametrize(("finished", "code"), [(True, 0), (False, common.INTERRUPTED)])
def test_run_is_concluded_with_its_picture_and_what_to_do_next(finished, code, tmp_path, monkeypatch, capsys):
    drawn = []
    monkeypatch.setattr("cdqn.report.runs.read_run", lambda run: run)
    monkeypatch.setattr("cdqn.report.learning_curve.learning_curve", lambda run, path: drawn.append((run, path)))
    assert common.conclude(tmp_path, SimpleNamespace(finished=finished, steps=1234)) == code
    assert drawn == [(tmp_path, tmp_path / "learning_curve.png")]
    assert ("stopped at step 1,234: `cdqn resume" in capsys.readouterr().out) is not finished


def test_display_of_a_run_is_told_when_its_update_is_compiled(tmp_path):
    agent = small_agent()
    with ExitStack() as stack:
        display, *_ = common.callbacks_for(tmp_path, agent, stack, 200)
        assert agent.trainer.learner.while_compiling == display.compiling
