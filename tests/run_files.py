"""What the command line leaves behind, on disk and on stderr, for the tests that compare it."""

import json
from pathlib import Path


def one_line(capsys) -> str:
    """What stood on stderr: exactly one line, and no traceback."""
    text = capsys.readouterr().err.strip()
    assert text.startswith("cdqn: ")
    assert "\n" not in text
    assert "Traceback" not in text
    return text


def without_clock(run: Path) -> list[dict]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        row.pop("steps_per_second", None)
    return rows


def newest_checkpoint(run: Path) -> Path:
    return max((run / "checkpoints").glob("step-*"))


def assert_same_end(run: Path, other: Path) -> None:
    """Two runs ended bit for bit in the same place, and said the same on their way."""
    mine, theirs = newest_checkpoint(run), newest_checkpoint(other)
    assert mine.name == theirs.name
    assert (mine / "arrays.safetensors").read_bytes() == (theirs / "arrays.safetensors").read_bytes()
    state, other_state = (json.loads((place / "state.json").read_text())["state"] for place in (mine, theirs))
    assert state["trainer"] == other_state["trainer"]
    assert without_clock(run) == without_clock(other)
