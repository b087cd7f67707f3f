"""The command line as a person meets it: what works prints paths and numbers, what cannot work one clear line."""

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from cdqn.cli.main import main
from cdqn.presets import PRESETS
from cdqn.report.runs import read_run
from cdqn.storage.checkpoint import newest_step
from run_files import assert_same_end, newest_checkpoint, one_line, without_clock

SMALL = ["--hidden", "16", "16", "--warmup-steps", "200", "--memory-size", "5000", "--evaluation-episodes", "4"]
SMALL += ["--update-period-steps", "4"]
SMALL += ["--log-period-steps", "200", "--checkpoint-period-steps", "1000", "--compile", "off"]
TESTS = Path(__file__).parent.parent


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def train(run: str | Path, *flags: str, env: str = "CartPole-v1", steps: int = 2000) -> int:
    return main(["train", env, "--out", str(run), "--steps", str(steps), *SMALL, *flags])


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("cli") / "run"
    assert train(run) == 0
    return run


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A run of 3000 steps that nothing happened to."""
    run = tmp_path_factory.mktemp("cli") / "whole"
    assert train(run, steps=3000) == 0
    return run


# What works


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


def test_tensorboard_gets_the_same_numbers(finished_run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(finished_run / "tensorboard"))
    events.Reload()
    logged = [event.value for event in events.Scalars("progress/loss")]
    np.testing.assert_allclose(logged, read_run(finished_run).curve("loss")[1], rtol=1e-6)


def test_evaluate_prints_json_for_scripts(finished_run, capsys):
    assert main(["evaluate", str(finished_run), "--episodes", "5", "--epsilon", "0.1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["episodes"] == len(result["returns"]) == 5
    assert result["mean"] == pytest.approx(np.mean(result["returns"]))


def test_evaluate_does_not_change_the_run(finished_run):
    before = {path: path.read_bytes() for path in finished_run.rglob("*") if path.is_file()}
    assert main(["evaluate", str(finished_run), "--episodes", "2"]) == 0
    assert before == {path: path.read_bytes() for path in finished_run.rglob("*") if path.is_file()}


def test_play_writes_videos(finished_run, here):
    from PIL import Image

    assert main(["play", str(finished_run), "--video", "out.gif"]) == 0
    with Image.open("out.gif") as video:
        assert video.n_frames > 5
    assert main(["play", str(finished_run), "--video", "out.mp4"]) == 0
    assert Path("out.mp4").read_bytes()[4:8] == b"ftyp"


def test_play_cuts_an_episode_off(finished_run, here, capsys):
    assert main(["play", str(finished_run), "--video", "short.gif", "--max-steps", "3"]) == 0
    assert capsys.readouterr().out.startswith("returns: 3\n")
    assert main(["play", str(finished_run), "--video", "short.gif", "--max-steps", "0"]) == 1
    assert "max_steps is 0" in capsys.readouterr().err


def test_list_shows_algorithms_presets_environments_and_runs(finished_run, capsys):
    assert main(["list", "--runs", str(finished_run.parent)]) == 0
    text = capsys.readouterr().out
    for word in ("C-DQN", "classic-control", "minatar", "CartPole-v1", "2,000 of 2,000"):
        assert word in text


def test_compare_runs_each_algorithm_and_seed_and_draws(here, capsys):
    flags = [
        "--algorithms",
        "cdqn,rg",
        "--seeds",
        "2",
        "--steps",
        "600",
        "--jobs",
        "2",
        "--target-period-updates",
        "30",
    ]
    assert main(["compare", "CartPole-v1", "--out", "both", *flags, *SMALL]) == 0
    text = capsys.readouterr().out
    assert "C-DQN" in text
    assert "RG" in text
    names = {path.parent.name for path in here.glob("both/*/config.json")}
    assert names == {"cdqn-seed0", "cdqn-seed1", "rg-seed0", "rg-seed1"}
    assert (here / "both" / "comparison.png").stat().st_size > 10_000
    assert (here / "both" / "comparison.csv").read_text().count("\n") == 3
    # A run of a comparison is the run that `train` makes.
    assert train("alone", "--seed", "1", "--target-period-updates", "30", steps=600) == 0
    assert_same_end(here / "both" / "cdqn-seed1", here / "alone")
    # A comparison that lost a run to a crash does what is left.
    shutil.rmtree(here / "both" / "rg-seed1")
    assert main(["resume", "both", "--jobs", "1"]) == 0
    assert newest_checkpoint(here / "both" / "rg-seed1").name == "step-000000600"


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


# A run that dies


def start(run: Path, *flags: str, steps: int) -> subprocess.Popen:
    return spawn("train", "CartPole-v1", "--out", str(run), "--steps", str(steps), *SMALL, *flags)


def resume(run: Path, steps: int) -> subprocess.Popen:
    return spawn("resume", str(run))


def spawn(*arguments: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "cdqn", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition, process: subprocess.Popen) -> None:
    """Wait for something a running process does, as long as it runs."""
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


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


@pytest.mark.slow
def test_comparison_that_is_killed_leaves_no_process_behind_and_resumes(here):
    flags = ["--algorithms", "cdqn", "--seeds", "2", "--steps", "12000", "--jobs", "2", "--out", "both"]
    seldom = ["16" if before == "--update-period-steps" else flag for before, flag in pairwise(["", *SMALL])]
    process = spawn("compare", "CartPole-v1", *flags, *seldom)
    runs = [here / "both" / f"cdqn-seed{seed}" for seed in (0, 1)]
    wait_for(lambda: all((run / "checkpoints" / "step-000001000").exists() for run in runs), process)
    process.kill()
    _, err = process.communicate()  # returns when the last worker has closed the pipe, that is, when it is gone
    assert process.returncode == -signal.SIGKILL
    assert "Traceback" not in err
    stopped = [newest_step(run) for run in runs]
    assert all(0 < step < 12000 for step in stopped)
    assert any(step % 1000 for step in stopped), "the runs under way were not saved where they stopped"
    assert main(["resume", "both", "--jobs", "1"]) == 0
    assert all(newest_step(run) == 12000 for run in runs)


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


# What cannot work: one line, and nothing is lost


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["CartPol-v1"], ["CartPol-v1", "CartPole-v1"]),
        (["no_such_module:Env-v0"], ["no_such_module"]),
        (["cli_envs:Nothing-v0"], ["Nothing"]),
        (["Pendulum-v1"], ["Box", "Discrete"]),
        (["cli_envs:DictObservation-v0"], ["Dict", "FilterObservation"]),
        (["cli_envs:TextTypedObservation-v0"], ["float16", "DtypeObservation"]),
        (["cli_envs:Picture-v0"], ["(84, 84, 3)"]),
        (["CartPole-v1", "--gamma", "1.5"], ["gamma", "1.5", "[0, 1]"]),
        (["CartPole-v1", "--gamma", "nan"], ["gamma", "nan"]),
        (["CartPole-v1", "--preset", "minatar"], ["minatar", "(4,)"]),
        (["CartPole-v1", "--preset", "paper-9.9"], ["paper-9.9", "classic-control"]),
        (["CartPole-v1", "--algorithm", "rg", "--target-period-updates", "20"], ["rg", "target_period_updates"]),
        (["CartPole-v1", "--replay", "uniform", "--alpha", "0.5"], ["uniform", "alpha"]),
        (["CartPole-v1", "--memory-size", "10"], ["memory_size", "batch_size"]),
        (["CartPole-v1", "--priority-scheme", "original", "--floor-divisor", "5"], ["floor_divisor"]),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(arguments, words, here, capsys):
    assert main(["train", *arguments]) == 1
    text = one_line(capsys)
    for word in words:
        assert word in text
    assert list(here.iterdir()) == []


def test_missing_package_names_the_line_that_installs_it(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "minatar.gym", None)
    assert main(["train", "MinAtar/Breakout-v1"]) == 1
    assert "pip install 'cdqn[minatar]'" in one_line(capsys)


@pytest.mark.parametrize("arguments", [["fly"], ["train"], ["train", "CartPole-v1", "--gama", "0.9"]])
def test_wrong_command_line_is_exit_code_2(arguments, here, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


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


@pytest.mark.parametrize("command", ["resume", "evaluate", "play"])
def test_folder_that_is_no_run_is_told(command, here, capsys):
    Path("empty").mkdir()
    for folder in ("empty", "missing"):
        assert main([command, folder]) == 1
        assert folder in one_line(capsys)


@pytest.mark.parametrize("damage", ["cut", "flipped", "gone", "config", "foreign"])
def test_damaged_or_foreign_checkpoint_is_told(damage, finished_run, here, capsys):
    run = here / "run"
    shutil.copytree(finished_run, run)
    shutil.rmtree(run / "checkpoints" / "step-000001000")
    arrays = newest_checkpoint(run) / "arrays.safetensors"
    content = bytearray(arrays.read_bytes())
    if damage == "cut":
        arrays.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        content[-100] ^= 1
        arrays.write_bytes(content)
    elif damage == "gone":
        arrays.unlink()
    elif damage == "config":
        (run / "config.json").write_text('{"cdqn": "0.1.0", "config": {"env_id": "CartPole-v1", "gamma": 7}}')
    elif damage == "foreign":
        (newest_checkpoint(run) / "state.json").write_text('{"model": "of another program"}')
    assert main(["evaluate", str(run)]) == 1
    assert str(run) in one_line(capsys)


def test_run_with_a_damaged_newest_checkpoint_goes_on_from_the_one_before(finished_run, here, capsys):
    shutil.copytree(finished_run, here / "run")
    (newest_checkpoint(here / "run") / "state.json").write_text("{")
    assert main(["evaluate", "run", "--episodes", "1"]) == 0
    out, err = capsys.readouterr()
    assert "after 1,000 steps" in out
    assert "step 1000 is taken instead" in err
    assert main(["resume", "run"]) == 0
    assert_same_end(here / "run", finished_run)


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
