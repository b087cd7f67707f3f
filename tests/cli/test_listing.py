"""`cdqn list`: what it shows, and that it fits the terminal."""

import io
import os
import shutil
import sys

import gymnasium as gym
import pytest
from gymnasium.spaces import Discrete
from rich.console import Console

from cdqn.cli.listing import LISTS, environment_ids, figures, listing, tasks
from cdqn.cli.main import main
from cdqn.errors import ConfigError, MissingPackageError
from cdqn.presets import PRESETS
from run_files import one_line


def text_of(what, tmp_path, width=80):
    console = Console(width=width, file=io.StringIO())
    for part in listing(what, tmp_path, console):
        console.print(part)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_every_preset_begins_a_line_with_its_kind_and_source(tmp_path, width):
    lines = text_of("presets", tmp_path, width).splitlines()
    assert max(map(len, lines)) <= width
    for name, preset in PRESETS.items():
        (line,) = [line.split() for line in lines if line.startswith(f"{name} ")]
        first_words = preset.source.split()[:2]
        assert line[:4] == [name, preset.kind, *first_words]


def test_games_of_a_preset_are_shown(tmp_path):
    lines = text_of("presets", tmp_path, 120).splitlines()
    (line,) = [line for line in lines if line.startswith("paper-5.3 ")]
    assert line.rstrip().endswith("Sec. 5.3, Fig. 7, Table 1: Skiing, Tennis, PrivateEye, Venture")


def test_short_list_fits_a_screen_or_two_and_says_where_there_is_more(tmp_path):
    text = text_of("all", tmp_path)
    lines = text.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert "paper-5.1" not in text
    assert "Zaxxon" not in text
    for words in ("presets", "atari", "environments"):
        assert f"cdqn list {words}" in text
    assert {"classic-control", "LunarLander-v3"} <= set(text.split())


def test_tasks_of_the_short_list_have_discrete_actions():
    by_family = tasks()
    assert list(by_family) == ["classic control", "toy text", "Box2D", "MinAtar", "cdqn's own"]
    assert "CartPole-v1" in by_family["classic control"]
    assert "cdqn/CliffWalking-v0" not in by_family["toy text"]
    for family in ("classic control", "toy text", "cdqn's own"):
        for env_id in by_family[family]:
            env = gym.make(env_id)
            assert isinstance(env.action_space, Discrete), env_id
            env.close()
    pytest.importorskip("Box2D")
    for env_id in by_family["Box2D"]:
        env = gym.make(env_id, continuous=False)
        assert isinstance(env.action_space, Discrete), env_id
        env.close()


def test_atari_games_are_shown_by_their_usual_names_and_not_among_the_registered(tmp_path):
    pytest.importorskip("ale_py")  # which registers hundreds of ids
    words = text_of("atari", tmp_path).replace("\n", " ").split()
    assert {"SpaceInvaders,", "MsPacman,", "Zaxxon"} <= set(words)
    assert "CartPole-v1" in environment_ids()
    assert not [env_id for env_id in environment_ids() if "Pong" in env_id or env_id.startswith("ALE/")]


def test_environments_of_others_are_shown_with_their_package_and_those_that_cannot_be_learned_are_not(tmp_path):
    gym.register("Somebodys/Maze-v0", "somebodys_package.mazes:Maze")
    try:
        text = text_of("environments", tmp_path, 120)
    finally:
        del gym.registry["Somebodys/Maze-v0"]
    assert "somebodys_package  Somebodys/Maze-v0" in text
    assert not [name for name in ("Ant-", "Pendulum", "BipedalWalker", "phys2d", "GymV") if name in text]


def test_without_the_emulator_the_line_that_installs_it_is_shown(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    monkeypatch.setitem(sys.modules, "ale_py.roms", None)
    text = text_of("atari", tmp_path)
    assert "pip install 'cdqn[atari]'" in text
    assert "Zaxxon" not in text


def test_empty_folder_has_no_runs(tmp_path):
    for what in ("all", "runs"):
        assert "no runs in" in text_of(what, tmp_path)


def test_short_list_has_the_newest_runs_only(finished_run, tmp_path):
    for number in range(7):
        (tmp_path / f"run{number}").mkdir()
        shutil.copy(finished_run / "config.json", tmp_path / f"run{number}")
        os.utime(tmp_path / f"run{number}" / "config.json", (number, number))
    text = text_of("all", tmp_path, 200)
    assert [number for number in range(7) if f"run{number} " in text] == [2, 3, 4, 5, 6]
    assert "the newest 5 of 7 runs" in text
    assert text_of("runs", tmp_path, 200).count("CartPole-v1") == 7


def test_list_shows_algorithms_presets_environments_and_runs(finished_run, capsys):
    assert main(["list", "--runs", str(finished_run.parent)]) == 0
    text = capsys.readouterr().out
    for word in ("C-DQN", "classic-control", "minatar", "CartPole-v1", "2,000 of 2,000"):
        assert word in text


@pytest.mark.parametrize(("word", "hint"), [("atary", "did you mean atari?"), ("everything", ", ".join(LISTS))])
def test_unknown_list_is_answered_with_the_nearest(word, hint, capsys):
    assert main(["list", word]) == 1
    assert hint in one_line(capsys)
    with pytest.raises(ConfigError):
        listing(word, None, None)


def test_figures_are_listed_with_what_they_take(monkeypatch, capsys):
    from cdqn.experiments import reproduce
    from cdqn.experiments.costs import Cost

    def cost(name, scale):
        if name == "fig5":
            raise MissingPackageError("MinAtar needs minatar: pip install 'cdqn[minatar]'")
        return Cost(6, 300_000_000, "steps", {"smoke": 0.001, "laptop": 0.5, "paper": 1234.5}[scale], 1_100_000_000)

    monkeypatch.setattr(reproduce, "cost", cost)
    monkeypatch.setenv("COLUMNS", "200")
    console = Console(width=200, file=io.StringIO())
    for part in figures(None, console):
        console.print(part)
    text = console.file.getvalue()
    for name, figure in reproduce.FIGURES.items():
        (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
        assert figure.label in line
    for words in ("6 runs, 300M steps", "seconds", "30 min", "1,234.5 h", "1.1 GB", "pip install 'cdqn[minatar]'"):
        assert words in " ".join(text.split())
