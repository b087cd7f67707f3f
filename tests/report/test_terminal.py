"""Text that is not ours reaches the terminal as text: no markup, no control characters, one line."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from cdqn.cli import common
from cdqn.cli.main import main
from cdqn.config import Config
from cdqn.report.terminal import cell, harmless, say


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("runs/a[/x] [red]", "runs/a[/x] [red]"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("two\nlines\r", "two\\nlines\\r"),
        ("left\u202eright", "left\\u202eright"),
        ("not utf-8: \udcff", "not utf-8: \\udcff"),
        ("ε = 0.1 · “Q”", "ε = 0.1 · “Q”"),
    ],
)
def test_text_of_others_is_shown_as_it_is_and_does_nothing(text, shown):
    assert harmless(text) == shown
    assert cell(text).plain == shown
    console = Console(file=io.StringIO(), width=20, force_terminal=False)
    say(console, text)
    assert console.file.getvalue() == shown + "\n"


def write_run(folder: Path, env_id) -> None:
    folder.mkdir(parents=True)
    content = {"cdqn": "0", "config": {"env_id": env_id, **Config().resolved().to_json()}}
    (folder / "config.json").write_text(json.dumps(content))


@pytest.mark.parametrize("env_id", ["[/]", "\x1b[2J", ["CartPole-v1"], 7, "a[/x]b"])
def test_list_shows_a_run_whatever_its_names_are(env_id, tmp_path, capsys):
    write_run(tmp_path / "run[/x]", env_id)
    assert main(["list", "--runs", str(tmp_path)]) == 0
    assert "\x1b[2J" not in capsys.readouterr().out


def test_path_with_brackets_is_printed_whole(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("cdqn.report.learning_curve.learning_curve", lambda run, picture: None)
    write_run(tmp_path / "r[/x]" / "r[v2]", "CartPole-v1")
    outcome = type("Outcome", (), {"finished": False, "steps": 5})
    common.conclude(tmp_path / "r[/x]" / "r[v2]", outcome)
    assert f"run folder: {tmp_path}/r[/x]/r[v2]\n" in capsys.readouterr().out
