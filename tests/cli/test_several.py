"""Several runs at once: what is told of them, and what a kill leaves."""

import signal
from itertools import pairwise

import pytest

from cdqn.cli.main import main
from cdqn.cli.several import tell_missing, tell_written
from cdqn.storage.checkpoint import newest_step
from run_files import SMALL, spawn, wait_for


def test_what_is_missing_is_told_with_the_remedy_and_fails(capsys):
    assert tell_missing({}, "do it again") == 0
    assert capsys.readouterr().err == ""
    assert tell_missing({"a": "it died"}, "do it again") == 1
    assert capsys.readouterr().err.splitlines() == ["cdqn: a is not complete: it died", "cdqn: do it again"]


def test_each_file_that_was_written_is_a_line(tmp_path, capsys):
    tell_written(tmp_path, "a.csv", "b.png")
    assert capsys.readouterr().out.splitlines() == [f"wrote {tmp_path / name}" for name in ("a.csv", "b.png")]


@pytest.mark.slow
def test_comparison_that_is_killed_leaves_no_process_behind_and_resumes(here):
    flags = ["--algorithms", "cdqn", "--seeds", "2", "--steps", "6000", "--jobs", "2", "--out", "both"]
    seldom = ["16" if before == "--update-period-steps" else flag for before, flag in pairwise(["", *SMALL])]
    process = spawn("compare", "CartPole-v1", *flags, *seldom)
    runs = [here / "both" / f"cdqn-seed{seed}" for seed in (0, 1)]
    wait_for(lambda: all((run / "checkpoints" / "step-000001000").exists() for run in runs), process)
    process.kill()
    _, err = process.communicate()  # returns when the last worker has closed the pipe, that is, when it is gone
    assert process.returncode == -signal.SIGKILL
    assert "Traceback" not in err
    stopped = [newest_step(run) for run in runs]
    assert all(0 < step < 6000 for step in stopped)
    assert any(step % 1000 for step in stopped), "the runs under way were not saved where they stopped"
    assert main(["resume", "both", "--jobs", "1"]) == 0
    assert all(newest_step(run) == 6000 for run in runs)
