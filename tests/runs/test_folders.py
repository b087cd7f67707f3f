"""Folders that one process at a time may write to."""

import os
import subprocess
import sys

import pytest

from cdqn.errors import CheckpointError
from cdqn.runs.folders import locked, locked_run, new_folder, remove_run, require_new
from helpers import small_agent

TRY = """
import fcntl, os, sys
lock = os.open(sys.argv[1], os.O_RDWR)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print("refused")
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such lock")


def test_second_lock_is_refused_while_the_first_lasts_and_no_longer(tmp_path):
    with locked(tmp_path):
        with pytest.raises(CheckpointError, match="another process"), locked(tmp_path):
            pytest.fail("two of them hold one lock")
        said = subprocess.run([sys.executable, "-c", TRY, str(tmp_path / ".lock")], capture_output=True, text=True)
        assert said.stdout == "refused\n", said.stderr
    with locked(tmp_path):
        pass


def test_lock_goes_with_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), locked(tmp_path):
        raise ZeroDivisionError
    with locked(tmp_path):
        pass


def test_folder_with_something_in_it_is_not_new_and_stays_as_it_is(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis").touch()
    (tmp_path / "file").touch()
    for name in ("run", "file"):
        with pytest.raises(CheckpointError, match="exists already"), new_folder(tmp_path / name):
            pytest.fail("it was taken for a new folder")
    assert os.listdir(tmp_path / "run") == ["thesis"]


def test_folder_without_settings_is_no_run(tmp_path):
    with pytest.raises(CheckpointError, match=r"it has no config\.json"), locked_run(tmp_path):
        pytest.fail("it was taken for a run")
    assert list(tmp_path.iterdir()) == []


def test_lock_is_never_made_through_a_link(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match="is a symbolic link to"), locked(tmp_path / "run"):
        pytest.fail("the link was followed")
    assert not (tmp_path / "elsewhere").exists()


def test_run_is_removed_and_nothing_else(tmp_path):
    run = small_agent().save(tmp_path / "run")
    (run / "best").mkdir()
    (run / "best" / "step-000000100.safetensors").touch()
    (run / "thesis.tex").write_text("years of work")
    with pytest.raises(CheckpointError, match=r"holds thesis\.tex besides a run"):
        remove_run(run)
    assert (run / "checkpoints").exists()
    (run / "thesis.tex").unlink()
    with locked(run), pytest.raises(CheckpointError, match="another process"):
        remove_run(run)
    remove_run(run)
    require_new(run)


def test_what_is_no_run_is_not_removed(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(CheckpointError, match="not a run folder"):
        remove_run(tmp_path)
    assert (tmp_path / "checkpoints").exists()
    remove_run(tmp_path / "nothing")
