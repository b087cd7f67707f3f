"""Several runs in processes: what ends one leaves the others alone, and a signal stops them all with a checkpoint."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cdqn.agent import Agent
from cdqn.cli.main import main
from cdqn.errors import ConfigError
from cdqn.runs import run_pool
from cdqn.runs.run_pool import _callbacks, run_all
from cdqn.runs.runner import has_rows, train_run
from cdqn.runs.workers.local import LocalPool
from cdqn.storage.checkpoint import newest_step
from helpers import progress, small_agent
from run_files import planned


def test_what_ends_one_run_leaves_the_others_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("deaths").mkdir()
    Path("deaths/once").touch()
    runs = {
        "line/always-dies": planned("cli_envs:AlwaysDies-v0"),
        "raises": planned("cli_envs:Raises-v0"),
        "dies-once": planned("cli_envs:Dies-v0"),
        "unknown": planned("NoSuchEnvironment-v0"),
        "complete": planned("cli_envs:Line-v0"),
        "good": planned("cli_envs:Line-v0"),
    }
    train_run(Agent.from_config(*runs["complete"]), tmp_path / "all" / "complete")
    complete = (tmp_path / "all" / "complete" / "metrics.jsonl").read_bytes()
    rows: list[tuple[str, dict]] = []
    outcomes = run_all(tmp_path / "all", runs, pool=LocalPool(1), on_row=lambda name, row: rows.append((name, row)))
    assert [outcome.name for outcome in outcomes] == list(runs)
    by_name = {outcome.name: outcome for outcome in outcomes}
    assert [name for name, outcome in by_name.items() if outcome.finished] == ["dies-once", "complete", "good"]
    assert {by_name[name].problem for name in ("dies-once", "complete", "good")} == {None}
    assert "killed by signal 9" in by_name["line/always-dies"].problem
    assert by_name["raises"].problem.startswith("RuntimeError: the game has crashed (in ")
    assert "NoSuchEnvironment-v0" in by_name["unknown"].problem
    warnings = {}
    for name, row in rows:
        if row["kind"] == "warning":
            warnings.setdefault(name, []).append(row["message"])
    assert len(warnings["line/always-dies"]) == 2, "it was not tried a second time, or not warned of"
    assert "signal 9" in warnings["dies-once"][0]
    assert "resumes from its checkpoint" in warnings["dies-once"][0]
    steps = [row["step"] for name, row in rows if name == "dies-once" and row["kind"] == "progress"]
    assert 700 in steps
    assert 100 not in steps[steps.index(700) :], "it began anew instead of going on from its checkpoint"
    assert newest_step(tmp_path / "all" / "dies-once") == 900
    # What is complete is not done again.
    assert "complete" not in {name for name, _ in rows}
    assert (tmp_path / "all" / "complete" / "metrics.jsonl").read_bytes() == complete


def test_no_jobs_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="jobs is 0"):
        run_all(tmp_path, {"a": planned("CartPole-v1")}, pool=LocalPool(0))


def test_compare_shows_what_there_is_and_what_is_missing_and_why(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_pool, "ATTEMPTS", 1)
    Path("deaths").mkdir()
    Path("deaths/once").touch()
    flags = ["--algorithms", "cdqn", "--seeds", "2", "--jobs", "1", "--steps", "900", "--hidden", "8", "--out", "both"]
    flags += ["--warmup-steps", "100", "--log-period-steps", "100", "--compile", "off", "--evaluation-episodes", "2"]
    assert main(["compare", "cli_envs:Dies-v0", *flags]) == 1
    out, err = capsys.readouterr()
    assert "C-DQN" in out
    assert "comparison.png" in out
    assert "cdqn-seed0 is not complete: its process was killed by signal 9" in err
    assert "cdqn-seed1 is not" not in err
    assert "Traceback" not in err


def start_comparison(jobs: int) -> subprocess.Popen:
    """Of one run more than can be under way; no run comes to a periodic checkpoint, nor to its end."""
    small = ["--hidden", "8", "--warmup-steps", "100", "--log-period-steps", "10", "--compile", "off"]
    small += ["--checkpoint-period-steps", "1000000", "--jobs", str(jobs), "--seeds", str(jobs + 1)]
    command = [sys.executable, "-m", "cdqn", "compare", "CartPole-v1", "--algorithms", "cdqn"]
    command += ["--steps", "1000000", "--out", "both", *small]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("send", "number", "jobs"),
    [(os.kill, signal.SIGINT, 2), (os.kill, signal.SIGTERM, 1), (os.killpg, signal.SIGINT, 1)],
    ids=["parent-int", "parent-term", "terminal-int"],
)
def test_signal_stops_all_runs_with_a_checkpoint_and_starts_no_other(send, number, jobs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    process = start_comparison(jobs)
    *runs, waiting = [tmp_path / "both" / f"cdqn-seed{seed}" for seed in range(jobs + 1)]
    while not all(has_rows(run) for run in runs):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    send(process.pid, number)
    out, err = process.communicate(timeout=60)  # returns when the last worker has closed the pipe
    assert process.returncode == 130
    assert "Traceback" not in err
    for run in runs:
        assert newest_step(run) > 0, "a run under way was not saved where it stopped"
    assert not waiting.exists(), "another run was started"
    assert "cdqn resume" in out


def test_run_says_that_its_update_is_compiled():
    rows, agent = [], small_agent()
    callback, another = _callbacks(rows.append, (len,), agent, 200)
    assert another is len
    with agent.trainer.learner.while_compiling():
        assert rows == [{"kind": "compiling", "step": 0}]
    callback(progress(), agent)
    assert [row["kind"] for row in rows] == ["compiling", "progress"]
