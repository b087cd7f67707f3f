"""Damaged run folders × every command: a plain refusal or the true weights, never a traceback, never others."""

import json
import shutil
from functools import cache

import pytest
from fuzzing import examples
from hypothesis import given
from hypothesis import strategies as st

import cdqn
from cdqn.cli.main import main

SMALL = {"hidden": (8,), "warmup_steps": 40, "batch_size": 8, "log_period_steps": 50, "compile": "off", "num_envs": 2}
SMALL |= {"checkpoint_period_steps": 100, "evaluation_episodes": 2, "candidate_period_steps": 100}
GAMES = {
    "vector": ("CartPole-v1", SMALL | {"memory_size": 300}),
    "frames": (
        "Breakout",
        SMALL
        | {"preset": "paper-5.1", "frame_size": (40, 36), "channels": (4, 4, 4), "memory_size": 120}
        | {"time_limit_steps": 60, "target_period_updates": 20},
    ),
}
"""A run of frames has blocks of its memory outside of its checkpoints, shared by both of them."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """By kind: two runs that differ in their seed, with two checkpoints each, and the true evaluations of the first."""

    @cache
    def make(kind):
        env_id, settings = GAMES[kind]
        folder = tmp_path_factory.mktemp(kind)
        for seed in (0, 1):
            cdqn.train_run(cdqn.CDQN(env_id, steps=300, seed=seed, **settings), folder / str(seed))
        truths = []
        for older in (False, True):
            copy = folder / f"copy{older}"
            shutil.copytree(folder / "0", copy)
            if older:
                shutil.rmtree(sorted((copy / "checkpoints").glob("step-*"))[-1])
            truths.append(cdqn.load(copy).evaluate(2).returns.tolist())
        return folder / "0", folder / "1", truths

    return make


KINDS = st.sampled_from(["truncate", "flip", "delete", "empty", "garbage", "swap", "json", "link", "folder", "append"])


def damage(run, other, kind, where, amount):
    """One file of the run changed for the worse; which, and where in it, is up to the fuzzer."""
    files = sorted(path for path in run.rglob("*") if path.is_file() and not path.is_symlink())
    if not files:
        return
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
        path.write_bytes(bytes((amount * i * 31) % 256 for i in range(200)))
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
    ["train", "CartPole-v1", "--out", "run", "--steps", "100", "--warmup-steps", "40", "--compile", "off"],
)
DAMAGES = st.lists(st.tuples(KINDS, st.integers(0, 10**6), st.integers(0, 10**9)), min_size=1, max_size=3)


@examples(3, in_round=85)
@given(DAMAGES)
def test_damaged_folder_is_refused_or_gives_the_true_weights(runs, tmp_path_factory, damages):
    damage_and_try(runs("vector"), tmp_path_factory, "CartPole-v1", damages)


@examples(1, in_round=15)
@given(DAMAGES)
def test_damaged_folder_of_frames_is_refused_or_gives_the_true_weights(runs, tmp_path_factory, damages):
    damage_and_try(runs("frames"), tmp_path_factory, "Breakout", damages)


def damage_and_try(run, tmp_path_factory, env_id, damages):
    """The same damage, and every command on a copy of its own."""
    original, other, truths = run
    for command in COMMANDS:
        place = tmp_path_factory.mktemp("damaged")
        shutil.copytree(original, place / "run")
        for kind, where, amount in damages:
            damage(place / "run", other, kind, where, amount)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(place)
            code = main(command)
            assert code in (0, 1), (command, damages)
            if command[0] == "list" and all(kind != "swap" for kind, *_ in damages):
                _require_true_weights(place / "run", env_id, truths)
        shutil.rmtree(place)


def _require_true_weights(run, env_id, truths):
    """If it loads, and its settings are those it was made with, it plays as the newest or the older checkpoint did."""
    try:
        settings = json.loads((run / "config.json").read_bytes())["config"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        settings = {"seed": None, "env_id": None}
    try:
        agent = cdqn.load(run)
    except cdqn.CdqnError:
        return
    if agent.steps <= 300 and settings["seed"] == 0 and settings["env_id"] == env_id:
        assert agent.evaluate(2).returns.tolist() in truths
