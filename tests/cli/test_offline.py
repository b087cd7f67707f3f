"""`cdqn offline`: what it prints and leaves, how it is resumed after a kill, and what it refuses."""

import json
import signal

import gymnasium as gym
import numpy as np
import pytest

from cdqn.cli.main import main
from offline_data import record, walk
from run_files import assert_same_end, one_line, spawn, wait_for

TINY = ["--hidden", "8", "--batch-size", "8", "--log-period-steps", "20", "--checkpoint-period-steps", "20"]
TINY += ["--evaluation-episodes", "2", "--compile", "off"]


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("cart.npz", **record(gym.make("CartPole-v1")))
    return "cart.npz"


def test_data_becomes_a_run_that_can_be_evaluated(data, tmp_path, capsys):
    assert main(["offline", data, "--env", "CartPole-v1", "--updates", "60", "--algorithm", "dqn", *TINY]) == 0
    run = tmp_path / "runs" / "cart-dqn-seed0"
    printed = capsys.readouterr().out
    assert "rows of cart.npz, 60 updates" in printed
    assert "step 60: greedy return" in printed
    assert {path.name for path in run.iterdir()} >= {"config.json", "metrics.jsonl", "learning_curve.png"}
    assert json.loads((run / "config.json").read_text())["data"] == "cart.npz"
    assert main(["evaluate", str(run), "--episodes", "2"]) == 0
    assert main(["offline", str(run), "--updates", "20", *TINY, "--out", "again"]) == 0


def test_data_alone_is_trained_on_and_the_missing_evaluation_is_said(data, capsys):
    assert main(["offline", data, "--epochs", "1", "--out", "run", *TINY]) == 0
    printed = capsys.readouterr()
    assert "the policy is not evaluated" in printed.err
    assert "greedy return" not in printed.out
    assert main(["evaluate", "run", "--episodes", "2"]) == 1
    assert "trained on data alone" in one_line(capsys)
    assert main(["evaluate", "run", "--env", "CartPole-v1", "--episodes", "2"]) == 0


def test_killed_and_resumed_it_ends_bit_for_bit_the_same(data, tmp_path):
    flags = ["--updates", "3000", "--env", "CartPole-v1", *TINY]
    process = spawn("offline", data, *flags, "--out", "killed")
    checkpoints = tmp_path / "killed" / "checkpoints"
    wait_for(lambda: any(checkpoints.glob("step-0000000[2-9]*")), process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (tmp_path / data).rename(tmp_path / "elsewhere.npz")
    assert main(["resume", "killed", "--steps", "400"]) == 0
    (tmp_path / "elsewhere.npz").rename(tmp_path / data)
    assert main(["offline", data, *flags, "--out", "whole", "--until", "400"]) == 0
    assert_same_end(tmp_path / "killed", tmp_path / "whole")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--updates", "10", "--until", "11"], "--until 11 is outside the budget of 10 updates"),
        (["--updates", "10", "--warmup-steps", "5"], "warmup_steps does not act on fixed data"),
        (["--steps", "10"], "--updates"),
        (["--updates", "10", "--epochs", "1"], "give one of the two"),
        (["--updates", "10", "--env", "Acrobot-v1"], "observations has shape (200, 4)"),
        (["--updates", "10", "--checkpoint-period-steps", "5"], "below log_period_steps"),
    ],
)
def test_wrong_flags_are_refused_in_one_line(data, tmp_path, flags, message, capsys):
    assert main(["offline", data, *flags, "--out", "run"]) == 1
    assert message in one_line(capsys)
    assert not (tmp_path / "run").exists()


def test_bad_rows_are_refused_in_one_line(tmp_path, capsys):
    rows = walk()
    rows["rewards"][17] = np.nan
    np.savez(tmp_path / "bad.npz", **rows)
    assert main(["offline", str(tmp_path / "bad.npz"), "--out", str(tmp_path / "run")]) == 1
    assert "row 17 of rewards is nan" in one_line(capsys)
    assert not (tmp_path / "run").exists()


def test_run_is_replaced_only_when_asked_for(data, capsys):
    flags = ["offline", data, "--updates", "10", *TINY, "--out", "run"]
    assert main(flags) == 0
    capsys.readouterr()
    assert main(flags) == 1
    assert "--overwrite replaces it" in one_line(capsys)
    assert main([*flags, "--overwrite"]) == 0
