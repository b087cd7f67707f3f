"""Help: every flag in one group, words before symbols, readable at 80 columns, with the defaults that hold."""

import dataclasses
import io
import re

import pytest
import tyro
from rich.cells import cell_len
from rich.console import Console

from cdqn.cli.help import GROUPS, describe_command, flags_of, sentences
from cdqn.cli.main import COMMANDS, main
from cdqn.config import Config
from cdqn.presets import make_config


def help_of(capsys, monkeypatch, *arguments, width=80):
    monkeypatch.setattr("cdqn.cli.main.console", Console(width=width, file=io.StringIO()))
    assert main([*arguments, "--help"]) == 0
    from cdqn.cli import main as module

    return module.console.file.getvalue()


def entry(text, flag):
    """What is said of a flag, on one line."""
    lines = text.splitlines()
    (place,) = [number for number, line in enumerate(lines) if re.match(rf"  {flag}(,| |$)", line)]
    rest = lines[place + 1 :]
    end = next(number for number, line in enumerate(rest) if not line.startswith("      "))
    return " ".join(" ".join(rest[:end]).split())


def test_every_setting_has_a_sentence_and_is_in_one_group():
    names = [field.name for field in dataclasses.fields(Config)]
    members = [name for group in GROUPS.values() for name in group]
    assert sorted(set(members)) == sorted(members)
    assert set(names) <= set(members)
    assert set(sentences(Config)) == set(names)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_flag_that_the_parser_knows_is_missing_and_none_is_invented(command, capsys, monkeypatch):
    text = help_of(capsys, monkeypatch, command)
    with pytest.raises(SystemExit):
        tyro.cli(COMMANDS[command], args=["--help"])
    known = set(re.findall(r"^\W{0,3}(--[a-z][a-z-]+)", capsys.readouterr().out, re.MULTILINE)) - {"--help"}
    if command == "compare":  # it takes --algorithms
        known.remove("--algorithm")
    assert set(re.findall(r"^  (--[a-z-]+)", text, re.MULTILINE)) == known


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("width", [80, 120])
def test_help_keeps_to_the_width(command, width, capsys, monkeypatch):
    assert max(map(cell_len, help_of(capsys, monkeypatch, command, width=width).splitlines())) <= width


def test_groups_stand_in_their_order_with_their_flags(capsys, monkeypatch):
    lines = help_of(capsys, monkeypatch, "train").splitlines()
    titles = ["Run", "Task", "Learning", "Exploration", "Replay", "Network", "Atari", "Output"]
    places = [lines.index(title) for title in titles]
    assert places == sorted(places)
    assert places[2] < lines.index("  --gamma NUMBER") < places[3]


def test_words_come_before_symbols():
    for name, sentence in sentences(Config).items():
        assert re.match(r"['a-zA-Z0-9-]{2,}|A ", sentence), (name, sentence)
    assert sentences(Config)["gamma"].startswith("Discount factor (γ)")


@pytest.mark.parametrize(
    ("arguments", "preset"),
    [(["train"], "classic-control"), (["train", "--preset", "paper-5.1"], "paper-5.1"), (["train", "Pong"], "laptop")],
)
def test_defaults_are_those_of_the_preset(arguments, preset, capsys, monkeypatch):
    if preset != "classic-control":
        pytest.importorskip("ale_py")
    text = help_of(capsys, monkeypatch, *arguments)
    config = make_config("cdqn", preset).resolved()
    assert f"Defaults are those of the preset {preset}" in text
    for flag, value in (("steps", config.steps), ("gamma", config.gamma), ("n-step", config.n_step)):
        assert entry(text, f"--{flag}").endswith(f"[default: {value:g}]" if flag != "steps" else f"[default: {value}]")
    assert entry(text, "--target-period-updates").endswith(f"[default: {config.target_period_updates}]")
    assert "Default: 0.99" not in text, "the default of the preset stands in its place"


def test_switches_and_values_are_shown_as_one_types_them():
    @dataclasses.dataclass
    class Command:
        """A command."""

        switch: bool = True
        """Turns it on."""
        sizes: tuple[int, ...] = (1, 2)
        """How large. Default: small."""
        rate: float | None = None
        """How fast. Default: as it comes."""

    flags = {name: (flag.typed(), flag.explained()) for name, flag in flags_of(Command, {}).items()}
    assert flags == {
        "switch": ("--switch, --no-switch", "Turns it on. [default: on]"),
        "sizes": ("--sizes N …", "How large. [default: 1 2]"),
        "rate": ("--rate NUMBER", "How fast. Default: as it comes."),
    }
    assert flags_of(Command, {"rate": 0.5})["rate"].explained() == "How fast. [default: 0.5]"
    parts = [str(getattr(part, "renderable", part)) for part in describe_command("c", Command, {}, "")]
    assert "Turns it on. [default: on]" in parts


def test_short_help_begins_with_three_commands_that_exist(capsys, monkeypatch):
    text = help_of(capsys, monkeypatch)
    lines = text.splitlines()
    begin, middle = lines.index("Begin with"), lines.index("All commands")
    first = [line.split()[1] for line in lines[begin:middle] if line.startswith("  cdqn ")]
    assert first == ["train", "evaluate", "compare"]
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[middle:] if line.startswith("  ")] == list(COMMANDS)
