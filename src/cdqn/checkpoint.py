"""Checkpoints: a nested state on disk and back, bit for bit, without ever executing what is loaded.

    RUN/checkpoints/step-000050000/arrays.safetensors    every array, named by its path in the state
                                   state.json            the rest, with a checksum of the arrays

A checkpoint is written to a hidden folder, flushed to the disk and renamed into place; the one before it is
deleted only then. A crash at any moment leaves a complete one.
"""

import json
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from cdqn.errors import CheckpointError

FORMAT = 1
"""Raised when the layout changes, so that an old file is recognised and not misread."""

State = dict[str, Any]


def save_checkpoint(run: Path, step: int, state: State) -> Path:
    """Write `state` as the run's newest checkpoint and remove the ones before it."""
    folder = run / "checkpoints"
    place = folder / f"step-{step:09d}"
    with writing(run):
        folder.mkdir(parents=True, exist_ok=True)
        for stale in folder.glob(".*"):
            shutil.rmtree(stale)
        draft = folder / f".writing-{place.name}"
        draft.mkdir()
        try:
            _write(draft, state)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        if place.exists():  # saved twice at one step: keep the old one under a name that is never loaded
            place.rename(folder / f".replaced-{place.name}")
        draft.rename(place)
        _sync(folder)
        for old in folder.iterdir():
            if old != place:
                shutil.rmtree(old)
    return place


def load_checkpoint(run: Path) -> State:
    """The state of the run's newest checkpoint."""
    places = sorted((run / "checkpoints").glob("step-*"))
    if not places:
        raise CheckpointError(f"{run} has no checkpoint: the run ended before its first one; start it anew")
    return _read(places[-1])


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
    """Write beside and rename: a reader never sees half a file."""
    draft = path.with_name(f".{path.name}.writing")
    with open(draft, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)


def read_json(path: Path, what: str) -> Any:
    """A JSON file, or an error in plain words."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} does not exist: {path.parent} is not {what} of cdqn") from error
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}; the file is damaged or not {what} of cdqn") from error


def _write(draft: Path, state: State) -> None:
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    plain = _split(state, "", arrays)
    file = draft / "arrays.safetensors"
    save_file(arrays, file)
    _sync(file)
    write_json(draft / "state.json", {"format": FORMAT, "crc32": _checksum(file), "state": plain})
    _sync(draft)


def _read(place: Path) -> State:
    content = read_json(place / "state.json", "a checkpoint")
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else None
        raise CheckpointError(f"{place} is not a checkpoint of this version of cdqn (format {found}, not {FORMAT})")
    file = place / "arrays.safetensors"
    try:
        intact = _checksum(file) == content["crc32"]
        arrays = load_file(file) if intact else {}
    except (OSError, SafetensorError, KeyError) as error:
        raise CheckpointError(f"{file} cannot be read: {error}") from error
    if not intact:
        raise CheckpointError(f"{file} is damaged: its checksum is not the one it was written with")
    state: State = _join(content["state"], arrays)
    return state


def _split(value: Any, path: str, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    """Move the arrays of a nested state into `arrays`; return the rest, with their names in their places."""
    if isinstance(value, dict):
        return {key: _split(item, f"{path}.{key}" if path else key, arrays) for key, item in value.items()}
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        arrays[path] = np.ascontiguousarray(value)
        return {"array": path}
    return value


def _join(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if not isinstance(value, dict):
        return value
    if value.keys() == {"array"}:
        return arrays[value["array"]]
    return {key: _join(item, arrays) for key, item in value.items()}


def _checksum(file: Path) -> int:
    checksum = 0
    with open(file, "rb") as stream:
        while chunk := stream.read(1 << 22):
            checksum = zlib.crc32(chunk, checksum)
    return checksum


def _sync(path: Path) -> None:
    """Wait until the disk has it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
