"""Files on disk: written whole or not at all, never through a link, and refusals in plain words."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from cdqn.errors import CheckpointError

VERSION = "0.1.0"
"""Of this package; it stands in every run folder."""


def require_no_links(run: Path) -> None:
    """A run folder leads nowhere: through a link in a folder from elsewhere we would read, cut or empty its target."""
    for place, folders, files in os.walk(run):
        for name in (*folders, *files):
            path = Path(place) / name
            if path.is_symlink():
                raise CheckpointError(
                    f"{path} is a symbolic link to {os.readlink(path)}: cdqn follows none inside a run folder; "
                    "replace it by what it points to, or delete it"
                )


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Turn the disk's refusals into one line that says what to do."""
    try:
        yield
    except (OSError, SafetensorError) as error:  # safetensors wraps what the disk said
        reason = getattr(error, "strerror", None) or error
        raise CheckpointError(
            f"cannot write to {place}: {reason}; free some space or choose another --out. "
            "What was saved before is intact"
        ) from error


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON; a reader never sees half a file."""
    write_text(path, json.dumps(value, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write beside, flush to the disk and rename into place."""
    draft = path.with_name(f".{path.name}.writing")
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)


def read_json(path: Path, what: str) -> Any:
    """A JSON file, or an error in plain words."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} does not exist: {path.parent} is not {what} of cdqn") from error
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}; the file is damaged or not {what} of cdqn") from error


def sync(path: Path) -> None:
    """Wait until the disk has it."""
    if os.name == "nt" and path.is_dir():
        return  # Windows opens no folders
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
