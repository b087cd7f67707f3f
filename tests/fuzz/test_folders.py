"""Damaged run folders × every command: a plain refusal or the true weights, never a traceback, never others."""

import json
import os
import shutil

import pytest
from fuzzing import examples
from hypothesis import given
from hypothesis import strategies as st

import cdqn
from cdqn.cli.main import main

SMALL = {"hidden": (8,), "warmup_steps": 40, "batch_size": 8, "log_period_steps": 50, "compile": "off", "num_envs": 2}
SMALL |= {"checkpoint_period_steps": 100, "evaluation_episodes": 2, "candidate_period_steps": 100, "memory_size": 300}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two complete runs of the same settings but the seed, with two checkpoints each, and their true evaluations."""
    folder = tmp_path_factory.mktemp("runs")
    truths = []
    for seed in (0, 1):
        cdqn.train_run(cdqn.CDQN("CartPole-v1", steps=300, seed=seed, **SMALL), folder / str(seed))
    for older in (False, True):
        copy = folder / f"copy{older}"
        shutil.copytree(folder / "0", copy)
        if older:
            shutil.rmtree(sorted((copy / "checkpoints").glob("step-*"))[-1])
        truths.append(cdqn.load(copy).evaluate(2).returns.tolist())
    return folder / "0", folder / "1", truths


KINDS = st.sampled_from(["truncate", "flip", "delete", "empty", "garbage", "swap", "json", "link", "folder", "append"])


def damage(run, other, kind, where, amount):
    """One file of the run changed for the worse; which, and where in it, is up to the fuzzer."""
    files = sorted(path for path in run.rglob("*") if path.is_file())
    path = files[where % len(files)]
    content = path.read_bytes()
    place = amount % max(len(content), 1)
    if kind == "truncate":
        path.write_bytes(content[:place])
    elif kind == "flip" and content:
        path.write_bytes(content[:place] + bytes([content[place] ^ (1 << amount % 8)]) + content[place + 1 :])
    elif kind == "delete":
        path.unlink()
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "garbage":
        path.write_bytes(os.urandom(0) + bytes((amount * i * 31) % 256 for i in range(200)))
    elif kind == "swap":
        twin = other / path.relative_to(run)
        if twin.exists():
            shutil.copyfile(twin, path)
    elif kind == "json":
        path.write_text(["null", "[]", '{"config": 3}', "1e999", '"\\u001b[2J"', "{" * 2000][amount % 6])
    elif kind == "link":
        path.unlink()
        path.symlink_to(other / "config.json")
    elif kind == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(content + b"\x00[red]trailing")


COMMANDS = (
    ["evaluate", "run", "--episodes", "2", "--json"],
    ["resume", "run", "--steps", "400"],
    ["list", "--runs", "."],
    ["play", "run", "--video", "out.gif", "--max-steps", "2"],
    ["evaluate", "run", "--protocol", "paper", "--episodes", "1", "--json"],
)


@examples(12)
@given(KINDS, st.integers(0, 10**6), st.integers(0, 10**9), st.sampled_from(range(len(COMMANDS))))
def test_damaged_folder_is_refused_or_gives_the_true_weights(runs, tmp_path_factory, kind, where, amount, command):
    original, other, truths = runs
    place = tmp_path_factory.mktemp("damaged")
    shutil.copytree(original, place / "run")
    damage(place / "run", other, kind, where, amount)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        code = main(COMMANDS[command])
        assert code in (0, 1), (kind, where, amount)
        assert not (place / "imported").exists()
        if (place / "run" / "config.json").is_file() and kind != "swap":
            _require_true_weights(place / "run", truths)
    shutil.rmtree(place)


def _require_true_weights(run, truths):
    """If it loads, and its settings are those it was made with, it plays as the newest or the older checkpoint did."""
    try:
        settings = json.loads((run / "config.json").read_bytes())["config"]
        agent = cdqn.load(run)
    except (cdqn.CdqnError, ValueError, KeyError, TypeError):
        return
    if agent.steps <= 300 and settings["seed"] == 0 and settings["env_id"] == "CartPole-v1":
        assert agent.evaluate(2).returns.tolist() in truths
