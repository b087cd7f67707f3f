"""`cdqn evaluate`: numbers for people and scripts, and a line that says what is wrong with a run."""

import json
import shutil

import gymnasium as gym
import numpy as np
import pytest

import cdqn
from cdqn.cli.main import main
from run_files import assert_same_end, newest_checkpoint, one_line


def test_evaluate_prints_json_for_scripts(finished_run, capsys):
    assert main(["evaluate", str(finished_run), "--episodes", "5", "--epsilon", "0.1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["episodes"] == len(result["returns"]) == 5
    assert result["mean"] == pytest.approx(np.mean(result["returns"]))


def test_evaluate_does_not_change_the_run(finished_run):
    before = {path: path.read_bytes() for path in finished_run.rglob("*") if path.is_file()}
    assert main(["evaluate", str(finished_run), "--episodes", "2"]) == 0
    assert before == {path: path.read_bytes() for path in finished_run.rglob("*") if path.is_file()}


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


@pytest.fixture(scope="module")
def object_run(tmp_path_factory):
    """An agent that was made from an Env, and saved."""
    settings = {"hidden": (8,), "warmup_steps": 40, "batch_size": 8, "log_period_steps": 50, "compile": "off"}
    agent = cdqn.CDQN(gym.make("CartPole-v1"), steps=200, evaluation_episodes=2, **settings)
    return agent.learn(100).save(tmp_path_factory.mktemp("object") / "run")


def test_run_on_an_environment_object_is_evaluated_with_the_one_that_is_named(object_run, capsys):
    assert main(["evaluate", str(object_run), "--episodes", "2"]) == 1
    assert "--env my_module:make_env" in one_line(capsys)
    assert main(["evaluate", str(object_run), "--episodes", "2", "--env", "CartPole-v1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    agent = cdqn.load(object_run, env=gym.make("CartPole-v1"))
    assert result["returns"] == agent.evaluate(2).returns.tolist()


def test_environment_is_made_and_wrapped_as_asked(object_run, here, capsys):
    (here / "my_wrappers.py").write_text(
        "import gymnasium\ndef doubled(env):\n    return gymnasium.wrappers.TransformReward(env, lambda r: 2 * r)\n"
    )
    named = [
        "--env",
        "CartPole-v1",
        "--env-kwargs",
        '{"sutton_barto_reward": true}',
        "--wrapper",
        "my_wrappers:doubled",
    ]
    assert main(["evaluate", str(object_run), "--episodes", "2", "--json", *named]) == 0
    assert json.loads(capsys.readouterr().out)["returns"] == [-2.0, -2.0]


def test_run_on_an_environment_object_is_played_with_the_one_that_is_named(object_run, here, capsys):
    play = ["play", str(object_run), "--video", "a.gif", "--max-steps", "3", "--env", "CartPole-v1"]
    assert main(play) == 0
    assert capsys.readouterr().out.startswith("return: 3\n")


def test_run_on_an_environment_object_is_resumed_with_the_one_that_is_named(object_run, here, monkeypatch):
    monkeypatch.setattr("cdqn.cli.train.conclude", lambda run, outcome: 0)  # no picture
    shutil.copytree(object_run, "run")
    assert main(["resume", "run", "--env", "CartPole-v1"]) == 0
    agent = cdqn.load("run", env=gym.make("CartPole-v1"))
    whole = cdqn.load(object_run, env=gym.make("CartPole-v1")).learn(100)
    assert agent.steps == 200
    assert agent.weights.tobytes() == whole.weights.tobytes()
