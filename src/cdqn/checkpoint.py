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
        for stale in folder.glob(".writing-*"):
            shutil.rmtree(stale)
        draft = folder / f".writing-{place.name}"
        draft.mkdir()
        try:
            _write(draft, state)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        if place.exists():  # saved twice at one step: the old one steps aside, and is found if we die here
            aside = folder / f".replaced-{place.name}"
            shutil.rmtree(aside, ignore_errors=True)
            place.rename(aside)
        draft.rename(place)
        _sync(folder)
        for old in [*folder.glob("step-*"), *folder.glob(".replaced-*")]:
            if old != place:
                shutil.rmtree(old)
    return place


def load_checkpoint(run: Path) -> State:
    """The state of the run's newest checkpoint."""
    folder = run / "checkpoints"
    places = sorted(folder.glob("step-*")) or sorted(folder.glob(".replaced-step-*"))
    if not places:
        raise CheckpointError(f"{run} has no checkpoint: the run ended before its first one; start it anew")
    return _read(places[-1])


def newest_step(run: Path) -> int:
    """The step of the run's newest checkpoint; 0 before the first."""
    return max((int(place.name.removeprefix("step-")) for place in (run / "checkpoints").glob("step-*")), default=0)


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
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}; the file is damaged or not {what} of cdqn") from error


def _write(draft: Path, state: State) -> None:
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    plain = _split(state, "", arrays)
    file = draft / "arrays.safetensors"
    save_file(arrays, file)
    _sync(file)
    checksums = {"arrays": _checksum(file), "state": _text_checksum(plain)}
    write_json(draft / "state.json", {"format": FORMAT, "crc32": checksums, "state": plain})
    _sync(draft)


def _read(place: Path) -> State:
    content = read_json(place / "state.json", "a checkpoint")
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else None
        raise CheckpointError(f"{place} is not a checkpoint of this version of cdqn (format {found}, not {FORMAT})")
    file = place / "arrays.safetensors"
    try:
        checksums, plain = content["crc32"], content["state"]
        for path, wanted, found in (
            (place / "state.json", checksums["state"], _text_checksum(plain)),
            (file, checksums["arrays"], _checksum(file)),
        ):
            if wanted != found:
                raise CheckpointError(f"{path} is damaged: its checksum is not the one it was written with")
        state: State = _join(plain, load_file(file))
    except (OSError, SafetensorError, KeyError, TypeError) as error:
        raise CheckpointError(f"{place} is damaged and cannot be read: {error}") from error
    return state


def _split(value: Any, path: str, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    """Move the arrays of a nested state into `arrays`; in their places stands "array:" and their name.

    A text that begins in the same way is marked as a text, so that nothing is taken for what it is not.
    """
    if isinstance(value, dict):
        return {key: _split(item, f"{path}.{key}" if path else key, arrays) for key, item in value.items()}
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        name = path if path not in arrays else f"{path}#{len(arrays)}"
        arrays[name] = np.asarray(value, order="C")
        return f"array:{name}"
    if isinstance(value, str) and value.startswith(("array:", "text:")):
        return f"text:{value}"
    return value


def _join(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    """The inverse of `_split`."""
    if isinstance(value, dict):
        return {key: _join(item, arrays) for key, item in value.items()}
    if isinstance(value, str):
        kind, _, rest = value.partition(":")
        if kind == "array":
            return arrays[rest]
        return rest if kind == "text" and rest.startswith(("array:", "text:")) else value
    return value


def _text_checksum(plain: Any) -> int:
    """Of the values, not of the layout of the file."""
    return zlib.crc32(json.dumps(plain, sort_keys=True).encode())


def _checksum(file: Path) -> int:
    checksum = 0
    with open(file, "rb") as stream:
        while chunk := stream.read(1 << 22):
            checksum = zlib.crc32(chunk, checksum)
    return checksum


def _sync(path: Path) -> None:
    """Wait until the disk has it."""
    if os.name == "nt" and path.is_dir():
        return  # Windows opens no folders
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
