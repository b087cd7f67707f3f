"""`cdqn list`: what it shows, and that it fits the terminal."""

import io
import sys

import pytest
from rich.console import Console

from cdqn.cli.listing import catalogue, environment_ids, figures
from cdqn.cli.main import main
from cdqn.errors import MissingPackageError
from cdqn.presets import PRESETS


def listing(tmp_path, width=80):
    console = Console(width=width, file=io.StringIO())
    for part in catalogue(tmp_path):
        console.print(part)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_every_preset_begins_a_line_with_its_kind_and_source(tmp_path, width):
    lines = listing(tmp_path, width).splitlines()
    assert max(map(len, lines)) <= width
    for name, preset in PRESETS.items():
        (line,) = [line.split() for line in lines if line.startswith(f"{name} ")]
        first_words = preset.source.split()[:2]
        assert line[:4] == [name, preset.kind, *first_words]


def test_games_of_a_preset_are_shown(tmp_path):
    lines = listing(tmp_path, 120).splitlines()
    (line,) = [line for line in lines if line.startswith("paper-5.3 ")]
    assert line.rstrip().endswith("Sec. 5.3, Fig. 7, Table 1: Skiing, Tennis, PrivateEye, Venture")


def test_atari_games_are_shown_by_their_usual_names_and_not_among_the_registered(tmp_path):
    pytest.importorskip("ale_py")  # which registers hundreds of ids
    words = listing(tmp_path).replace("\n", " ").split()
    assert {"SpaceInvaders,", "MsPacman,", "Zaxxon"} <= set(words)
    assert "CartPole-v1" in environment_ids()
    assert not [env_id for env_id in environment_ids() if "Pong" in env_id or env_id.startswith("ALE/")]


def test_without_the_emulator_the_line_that_installs_it_is_shown(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    monkeypatch.setitem(sys.modules, "ale_py.roms", None)
    text = listing(tmp_path)
    assert "pip install 'cdqn[atari]'" in text
    assert "Zaxxon" not in text


def test_empty_folder_has_no_runs(tmp_path):
    assert "no runs in" in listing(tmp_path)


def test_list_shows_algorithms_presets_environments_and_runs(finished_run, capsys):
    assert main(["list", "--runs", str(finished_run.parent)]) == 0
    text = capsys.readouterr().out
    for word in ("C-DQN", "classic-control", "minatar", "CartPole-v1", "2,000 of 2,000"):
        assert word in text


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
    for part in figures(console):
        console.print(part)
    text = console.file.getvalue()
    for name, figure in reproduce.FIGURES.items():
        (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
        assert figure.label in line
    for words in ("6 runs, 300M steps", "seconds", "30 min", "1,234.5 h", "1.1 GB", "pip install 'cdqn[minatar]'"):
        assert words in " ".join(text.split())
