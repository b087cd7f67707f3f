"""The command line as a person meets it: what works prints paths and numbers, what cannot work one clear line."""

import sys
from pathlib import Path

import pytest

from cdqn.cli.main import main
from run_files import one_line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["CartPol-v1"], ["CartPol-v1", "CartPole-v1"]),
        (["no_such_module:Env-v0"], ["no_such_module"]),
        (["cli_envs:Nothing-v0"], ["Nothing"]),
        (["Pendulum-v1"], ["Box", "Discrete"]),
        (["cli_envs:DictObservation-v0"], ["Dict", "--wrapper my_module:MyWrapper"]),
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


def test_unknown_command_is_answered_with_the_nearest(capsys):
    with pytest.raises(SystemExit):
        main(["trian"])
    assert "did you mean train?" in one_line(capsys)


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


@pytest.mark.parametrize("command", ["resume", "evaluate", "play"])
def test_folder_that_is_no_run_is_told(command, here, capsys):
    Path("empty").mkdir()
    for folder in ("empty", "missing"):
        assert main([command, folder]) == 1
        assert folder in one_line(capsys)
