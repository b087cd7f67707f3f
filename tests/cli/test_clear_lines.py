"""What once was a traceback, and is one clear line."""

import json
import shutil
import zlib
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import cdqn
from cdqn.cli.main import main
from cdqn.errors import CdqnError, CheckpointError, UnsupportedEnvironmentError
from helpers import CountingEnv, WalkEnv
from run_files import one_line

SMALL = {"hidden": (8,), "warmup_steps": 40, "batch_size": 8, "log_period_steps": 20, "compile": "off"}


@pytest.fixture(scope="module")
def saved_run(tmp_path_factory) -> Path:
    return cdqn.CDQN("CartPole-v1", **SMALL).learn(80).save(tmp_path_factory.mktemp("lines") / "run")


@pytest.fixture
def run(saved_run, tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(saved_run, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "..foo:X"], ["..foo"]),
        (["train", ":CartPole-v1"], ["no module"]),
        (["train", "CartPole-v1", "--steps", "500"], ["steps is 500, below warmup_steps 1000"]),
        (["train", "CartPole-v1", "--num-envs", "100000000000000000000"], ["num_envs"]),
        (["train", "CartPole-v1", "--num-envs", "1000000"], ["num_envs is 1000000"]),
        (["train", "CartPole-v1", "--hidden", "10000000000000000000"], ["hidden"]),
        (["train", "CartPole-v1", "--out", "x" * 300], ["too long"]),
        (["compare", "CartPole-v1", "--seeds", "1000000"], ["seeds is 1000000", "1000"]),
        (["compare", "CartPole-v1", "--checkpoint-period-steps", "10"], ["checkpoint_period_steps is 10"]),
        (["demo", "--seeds", "1000000"], ["seeds is 1000000"]),
        (["reproduce", "fig1", "--scale", "smoke", "--seed", "-1"], ["seed is -1"]),
        (["play", "run", "--video", "a.gif", "--seed", "-9223372036854775809"], ["seed is -9223372036854775809"]),
        (["evaluate", "run", "--seed", "-1"], ["seed is -1"]),
        (["evaluate", "run", "--protocol", "paper", "--seed", "-1"], ["seed is -1"]),
        (["evaluate", "x" * 300], ["x" * 50]),
        (["resume", "x" * 300], ["x" * 50]),
    ],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, list) else None,
)
def test_command_that_cannot_work_is_one_line(arguments, words, run, capsys):
    assert main(arguments) == 1
    text = one_line(capsys)
    for word in words:
        assert word in text


@pytest.mark.parametrize("content", [b"\xff\xfe", b"{", b"[" * 100_000, b"\n\nnot json\n"])
def test_load_with_damaged_metrics_names_the_file(content, run):
    size = (run / "metrics.jsonl").stat().st_size
    (run / "metrics.jsonl").write_bytes(content.ljust(size, b" "))
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl"):
        cdqn.load(run)


def test_config_nested_without_end_is_refused(run, capsys):
    (run / "config.json").write_text('{"config": ' + "[" * 100_000)
    for arguments in (["evaluate", "run"], ["resume", "run"]):
        assert main(arguments) == 1
        assert "config.json" in one_line(capsys)
    assert main(["list", "--runs", "."]) == 0


EDITED = [
    (place, value)
    for place in ("", "trainer", "learner", "replay", "collector", "tally", "rng", "metrics_bytes")
    for value in (None, 3, "x", [], {})
    if (place, value) != ("metrics_bytes", 3)  # a number is what it should be
]


@pytest.mark.parametrize(("place", "value"), EDITED)
def test_state_that_was_edited_with_a_right_checksum_is_refused(place, value, run):
    (path,) = run.glob("checkpoints/*/state.json")
    content = json.loads(path.read_text())
    if place == "":
        content["state"] = value
    elif place in ("trainer", "metrics_bytes"):
        content["state"][place] = value
    else:
        content["state"]["trainer"][place] = value
    content["crc32"]["state"] = zlib.crc32(json.dumps(content["state"], sort_keys=True).encode())
    path.write_text(json.dumps(content))
    with pytest.raises(CdqnError):
        cdqn.load(run)


@pytest.mark.parametrize("env", [None, 7, WalkEnv, ["CartPole-v1"]], ids=["None", "7", "class", "list"])
def test_what_is_no_environment_is_told(env):
    with pytest.raises(UnsupportedEnvironmentError, match="the environment is"):
        cdqn.CDQN(env)


class OldStep(CountingEnv):
    def step(self, action):
        observation, reward, terminated, truncated, infos = super().step(action)
        return observation, reward, terminated or truncated, infos


class OldReset(CountingEnv):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed, options=options)[0]


class WrongShape(CountingEnv):
    def _observation(self):
        return np.zeros(5, np.float32)


@pytest.mark.parametrize("env", [OldStep, OldReset, WrongShape])
def test_environment_of_an_old_or_wrong_kind_is_told_what_gymnasium_wants(env):
    with pytest.raises(UnsupportedEnvironmentError, match=r"shape \(3,\)"):
        cdqn.CDQN(env(), **SMALL).learn(50)


class Clumsy(CountingEnv):
    def step(self, action):
        raise ValueError("a mistake of its author")


def test_mistake_in_somebodys_environment_keeps_its_traceback():
    with pytest.raises(ValueError, match="a mistake of its author") as caught:
        cdqn.CDQN(Clumsy(), **SMALL).learn(50)
    assert not isinstance(caught.value, CdqnError)


def test_learn_within_the_warm_up_warns():
    with pytest.warns(UserWarning, match="warmup_steps 1000"):
        cdqn.CDQN(gym.make("CartPole-v1")).learn(20)
