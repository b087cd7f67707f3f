"""`cdqn train` and `cdqn resume`: what a run leaves, and how it goes on after whatever happened to it."""

import dataclasses
import errno
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cdqn.cli.main import main
from cdqn.cli.train import announce
from cdqn.config import Config
from cdqn.envs import EnvSpec
from cdqn.presets import PRESETS
from cdqn.report.runs import read_run
from cdqn.training.build import memory_estimate
from run_files import SMALL, assert_same_end, newest_checkpoint, one_line, spawn, train, wait_for, without_clock


def test_train_leaves_config_metrics_checkpoint_evaluation_and_picture(finished_run):
    run = read_run(finished_run)
    assert run.config["algorithm"] == "cdqn"
    assert run.config["steps"] == 2000
    assert run.final_evaluation["episodes"] == 4
    assert newest_checkpoint(finished_run).name == "step-000002000"
    assert (finished_run / "learning_curve.png").stat().st_size > 10_000


def test_train_default_folder_names_environment_algorithm_and_seed(here, capsys):
    flags = ["--algorithm", "dqn", "--seed", "3", "--steps", "400"]
    assert main(["train", "CartPole-v1", *flags, *SMALL]) == 0
    assert (here / "runs" / "CartPole-v1-dqn-seed3" / "config.json").exists()
    assert "CartPole-v1-dqn-seed3" in capsys.readouterr().out


def test_minatar_trains_with_its_preset_and_resumes_exactly(here):
    command = ["train", "MinAtar/Breakout-v1", "--preset", "minatar", "--steps", "500", "--warmup-steps", "200"]
    command += ["--compile", "off", "--evaluation-episodes", "1", "--checkpoint-period-steps", "1000", "--hidden", "16"]
    assert main([*command, "--out", "whole"]) == 0
    assert main([*command, "--out", "half", "--until", "400"]) == 0
    config = json.loads((here / "whole" / "config.json").read_text())["config"]
    assert config["update_period_steps"] == PRESETS["minatar"].settings["update_period_steps"] == 2
    assert config["hidden"] == [16]
    assert main(["resume", "half"]) == 0
    assert newest_checkpoint(here / "half").name == "step-000000500"
    mine, theirs = (newest_checkpoint(here / name) / "arrays.safetensors" for name in ("half", "whole"))
    assert mine.read_bytes() == theirs.read_bytes()


def test_resume_with_more_steps_goes_on(here):
    assert train("run", steps=1000) == 0
    assert main(["resume", "run", "--steps", "1600"]) == 0
    assert newest_checkpoint(here / "run").name == "step-000001600"
    steps = [row["step"] for row in without_clock(here / "run") if row["kind"] == "progress"]
    assert steps == sorted(set(steps))


def start(run: Path, *flags: str, steps: int) -> subprocess.Popen:
    return spawn("train", "CartPole-v1", "--out", str(run), "--steps", str(steps), *SMALL, *flags)


def resume(run: Path, steps: int) -> subprocess.Popen:
    return spawn("resume", str(run))


DIE_WHILE_WRITING = """
import os, signal, sys
from cdqn.storage import checkpoint
from cdqn.cli.main import main

def write_half_and_die(arrays, file):
    file.write_bytes(b"half of a checkpoint")
    os.kill(os.getpid(), signal.SIGKILL)

checkpoint.save_file = write_half_and_die
main(["resume", sys.argv[1]])
"""


def test_run_killed_at_any_moment_resumes_bit_for_bit(here, whole):
    """kill -9 three times: before the first periodic checkpoint, after one, and while one is being written."""
    for begin, moment in ((start, "step-000000000"), (resume, "step-000001000")):
        process = begin(here / "run", steps=3000)
        wait_for(lambda moment=moment: (here / "run" / "checkpoints" / moment).exists(), process)
        process.kill()
        process.communicate()
    process = subprocess.run([sys.executable, "-c", DIE_WHILE_WRITING, str(here / "run")], capture_output=True)
    assert process.returncode == -signal.SIGKILL
    assert list((here / "run" / "checkpoints").glob(".writing-*")), "it did not die while writing"
    assert main(["resume", "run"]) == 0
    assert_same_end(here / "run", whole)


def test_ctrl_c_ends_a_run_with_a_checkpoint(here, whole):
    process = start(here / "run", steps=3000)
    wait_for(lambda: (here / "run" / "checkpoints" / "step-000001000").exists(), process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "cdqn resume" in out
    assert "Traceback" not in err
    stopped = int(newest_checkpoint(here / "run").name.removeprefix("step-"))
    assert 1000 <= stopped < 3000
    assert main(["resume", "run"]) == 0
    assert_same_end(here / "run", whole)


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ("cli_envs:NaNReward-v0", ["reward", "nan"]),
        ("cli_envs:InfiniteObservation-v0", ["observation", "inf"]),
    ],
)
def test_non_finite_number_stops_the_run_and_keeps_the_last_checkpoint(env, words, here, capsys):
    import cli_envs

    for kind in (cli_envs.NaNReward, cli_envs.InfiniteObservation):
        kind.steps_made = 0
    assert train("run", env=env, steps=4000) == 1
    text = one_line(capsys)
    for word in [*words, "environment", "step 25"]:
        assert word in text
    assert newest_checkpoint(here / "run").name == "step-000002000"
    for kind in (cli_envs.NaNReward, cli_envs.InfiniteObservation):
        kind.steps_made = 0
    assert main(["evaluate", "run", "--episodes", "1", "--allow-import", "cli_envs"]) == 0, "the checkpoint loads"
    assert read_run(here / "run").curve("loss")[0][-1] == 2400


def test_diverging_to_infinity_is_told_with_step_and_remedy(here, capsys):
    flags = ["--algorithm", "dqn", "--learning-rate", "1e30", "--gradient-clip-norm", "inf"]
    assert train("run", *flags) == 1
    text = one_line(capsys)
    for word in ("DQN diverged", "step", "learning_rate"):
        assert word in text
    assert newest_checkpoint(here / "run").exists()


def test_existing_run_folder_is_not_touched(finished_run, capsys):
    before = {path: path.stat().st_mtime_ns for path in finished_run.rglob("*")}
    assert train(finished_run) == 1
    assert "cdqn resume" in one_line(capsys)
    assert before == {path: path.stat().st_mtime_ns for path in finished_run.rglob("*")}


def test_complete_run_is_not_resumed_by_mistake(finished_run, capsys):
    assert main(["resume", str(finished_run)]) == 1
    assert "complete" in one_line(capsys)


def test_no_write_permission_is_told_before_anything_is_done(here, capsys):
    Path("locked").mkdir(mode=0o555)
    was_root = os.geteuid() == 0
    here.parent.chmod(0o755)
    here.chmod(0o755)
    if was_root:  # root may write everywhere: be nobody for a moment
        os.seteuid(65534)
    try:
        code = train("locked/run", steps=400)
    finally:
        if was_root:
            os.seteuid(0)
    assert code == 1
    text = one_line(capsys)
    assert "locked" in text
    assert os.strerror(errno.EACCES) in text


def test_full_disk_is_told_and_the_last_checkpoint_stays(here, whole, capsys):
    """The limit on the size of a file stands in for the disk: it refuses a write in the same way."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, hard))
    try:
        code = train("run", steps=3000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == 1
    assert "cannot write" in one_line(capsys)
    assert not list((here / "run" / "checkpoints").glob(".*")), "half a checkpoint was left behind"
    assert main(["resume", "run"]) == 0
    assert_same_end(here / "run", whole)


def test_two_processes_cannot_train_one_run(finished_run, capsys):
    from cdqn.runs.folders import locked

    with locked(finished_run):
        assert main(["resume", str(finished_run), "--steps", "9000"]) == 1
    assert "another process" in one_line(capsys)


def test_existing_run_is_told_with_the_lines_that_work_and_replaced_if_asked(finished_run, here, capsys, monkeypatch):
    monkeypatch.setattr("cdqn.cli.train.conclude", lambda run, outcome: 0)  # no picture
    shutil.copytree(finished_run, "run")
    assert train("run", steps=400) == 1
    line = one_line(capsys)
    for words in ("`cdqn resume run`", "--out run-2", "--overwrite"):
        assert words in line
    assert train("run", "--overwrite", "--seed", "1", steps=400) == 0
    assert {path.name for path in (here / "run" / "checkpoints").iterdir()} <= {"step-000000000", "step-000000400"}
    assert json.loads((here / "run" / "config.json").read_text())["config"]["seed"] == 1
    assert train("new", "--overwrite", steps=400) == 0


def test_setting_that_cannot_act_leaves_the_run_that_was_to_be_overwritten(finished_run, here, capsys):
    shutil.copytree(finished_run, "run")
    assert train("run", "--overwrite", "--channels", "4", "4", "4") == 1
    assert "channels is for images" in one_line(capsys)
    assert (here / "run" / "config.json").exists()


@pytest.mark.parametrize(
    ("steps", "memory_size", "sentence"),
    [
        (1_000, 1_000, r"replay memory: about 1 MB once it is full, with 1,000 transitions$"),
        (1_000, 5_000, r"replay memory: about 1 MB at the end of the run; a full one, 5,000 transitions, takes 5 MB$"),
    ],
)
def test_memory_of_frames_is_told_as_it_will_be_at_the_end_and_when_full(steps, memory_size, sentence, capsys):
    pytest.importorskip("zstandard")
    shape = (1, 80, 100)  # 0.1 bytes for each of 8000 pixels, and what a frame and a row take besides
    spec = EnvSpec("image", shape, np.dtype(np.uint8), 2, 0)
    config = Config(steps=steps, memory_size=memory_size, warmup_steps=100)
    announce(SimpleNamespace(spec=spec, config=config), "images")
    said = " ".join(capsys.readouterr().out.split())
    assert re.match("images of 1×80×100, 2 actions · preset images · " + sentence, said)
    half = dataclasses.replace(config, discard_fraction=0.5)
    assert memory_estimate(spec, half) == memory_estimate(spec, config, 500)


@pytest.mark.parametrize(
    "flags", [("--steps", "9"), ("--schedules", "restart"), ("--learning-rate", "0.1"), ("--env", "CartPole-v1")]
)
def test_changes_of_a_single_run_are_refused_for_several(flags, here, capsys):
    (here / "several").mkdir()
    (here / "several" / "comparison.json").write_text("{}")
    assert main(["resume", "several", *flags]) == 1
    assert f"{flags[0]}" in one_line(capsys)
