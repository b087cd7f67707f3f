"""A run folder from elsewhere: it imports nothing, and leads nowhere outside itself."""

import json
import shutil
import sys
from pathlib import Path

import pytest

import cdqn
from cdqn.cli.main import main
from cdqn.config import Config
from cdqn.envs import make_vec
from cdqn.errors import CheckpointError
from cdqn.report.runs import read_run

SMALL = {"hidden": (8,), "warmup_steps": 40, "batch_size": 8, "log_period_steps": 20, "compile": "off"}
EVIL = """
import pathlib
import gymnasium
from helpers import WalkEnv

pathlib.Path("imported").touch()
gymnasium.register("Trap-v0", entry_point=WalkEnv)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("trap_module", None)


@pytest.fixture(scope="module")
def small_run(tmp_path_factory) -> Path:
    return cdqn.CDQN("CartPole-v1", **SMALL).learn(80).save(tmp_path_factory.mktemp("small") / "run")


@pytest.fixture
def run(here, small_run) -> Path:
    """A run of CartPole that was edited: its environment is another, made by a module that leaves a trace."""
    shutil.copytree(small_run, "run")
    (here / "trap_module.py").write_text(EVIL)
    content = json.loads((here / "run" / "config.json").read_text())
    content["config"]["env_id"] = "trap_module:Trap-v0"
    (here / "run" / "config.json").write_text(json.dumps(content))
    return here / "run"


@pytest.mark.parametrize("command", ["evaluate", "resume", "play", "list", "protocol"])
def test_no_command_imports_what_a_folder_names(command, run, here, capsys):
    arguments = {
        "evaluate": ["evaluate", "run", "--episodes", "1"],
        "resume": ["resume", "run", "--steps", "120"],
        "play": ["play", "run", "--video", "a.gif"],
        "list": ["list", "--runs", "."],
        "protocol": ["evaluate", "run", "--protocol", "paper"],
    }[command]
    assert main(arguments) == (0 if command == "list" else 1)
    assert not Path("imported").exists()
    if command != "list":
        text = capsys.readouterr().err
        for word in ("trap_module:Trap-v0", "--allow-import trap_module", "allow_import=", "env=..."):
            assert word in text


def test_load_imports_what_the_caller_names_and_nothing_else(run, here):
    for allowed in ((), "other", ["other", "trap"]):
        with pytest.raises(CheckpointError, match="--allow-import trap_module"):
            cdqn.load(run, allow_import=allowed)
    assert not Path("imported").exists()
    with pytest.raises(CheckpointError, match=r"^(?!.*allow-import)"):  # imported, made, and found to be another
        cdqn.load(run, allow_import="trap_module")
    assert Path("imported").exists()


def test_environment_that_is_passed_needs_no_import(run, here):
    assert cdqn.load(run, env=make_vec("CartPole-v1", 4)).steps == 80
    assert not Path("imported").exists()


def test_comparison_that_names_a_module_is_resumed_only_if_it_is_allowed(here, capsys):
    config = Config(**SMALL).resolved().to_json()
    Path("both").mkdir()
    Path("both/comparison.json").write_text(json.dumps({"env_id": "trap_module:T-v0", "runs": {"cdqn-seed0": config}}))
    assert main(["resume", "both"]) == 1
    assert "--allow-import trap_module" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", [".lock", "metrics.jsonl", "config.json", "checkpoints", "protocol.json", "candidates"]
)
@pytest.mark.parametrize("command", ["evaluate", "resume", "protocol", "load", "list"])
def test_links_in_a_run_folder_are_refused_and_their_targets_not_touched(name, command, small_run, here, capsys):
    shutil.copytree(small_run, "run")
    target = here / "thesis"
    inside = Path("run") / name
    if inside.exists():
        inside.rename(target)
    else:
        target.write_text("all my work")
    before = sorted((path, path.read_bytes()) for path in [target, *target.rglob("*")] if path.is_file())
    inside.symlink_to(target)
    if command == "load":
        with pytest.raises(CheckpointError, match="symbolic link"):
            cdqn.load("run")
    else:
        arguments = {
            "evaluate": ["evaluate", "run", "--episodes", "1"],
            "resume": ["resume", "run", "--steps", "120"],
            "protocol": ["evaluate", "run", "--protocol", "paper"],
            "list": ["list", "--runs", "."],
        }[command]
        assert main(arguments) == (0 if command == "list" else 1)
        out, err = capsys.readouterr()
        assert "symbolic" in (out if command == "list" else err)
    after = sorted((path, path.read_bytes()) for path in [target, *target.rglob("*")] if path.is_file())
    assert before == after


def test_metrics_that_are_a_folder_are_named(tmp_path):
    """Found by the fuzzer: a folder in the place of the file was a traceback."""
    cdqn.CDQN("CartPole-v1", steps=100, **SMALL).learn(60).save(tmp_path / "run")
    (tmp_path / "run" / "metrics.jsonl").unlink()
    (tmp_path / "run" / "metrics.jsonl").mkdir()
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl"):
        cdqn.load(tmp_path / "run")
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl cannot be read"):
        read_run(tmp_path / "run")
