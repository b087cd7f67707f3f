"""Checkpoints: a nested state on disk and back, bit for bit, without ever executing what is loaded.

    RUN/checkpoints/step-000050000/arrays.safetensors    every array, named by its path in the state
                                   state.json            the rest, with a checksum of the arrays
    RUN/checkpoints/shared/NAME.safetensors              a large array that the next checkpoint may keep

A checkpoint is written to a hidden folder, flushed to the disk and renamed into place; those before it, except the
last, are deleted only then. A crash at any moment leaves a complete one, and a damaged one has an older one behind it.

A `SharedArray` is written once: the next checkpoint refers to the same file, which stays as long as one of the two
checkpoints needs it. A file is kept only if a checkpoint refers to it: what a killed run left is written again.
"""

import json
import re
import shutil
import zlib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from cdqn.errors import CheckpointError
from cdqn.storage.files import read_json, sync, write_json, writing
from cdqn.storage.shared_array import SharedArray

FORMAT = 1
"""Raised when the layout changes, so that an old file is recognised and not misread."""

State = dict[str, Any]

_NAME = re.compile(r"(\.replaced-)?step-[0-9]+")


def save_checkpoint(run: Path, step: int, state: State) -> Path:
    """Write `state` as the run's newest checkpoint; of the others only the one before it stays.

    Those of later steps go as well: the run has gone back behind them.
    """
    folder = run / "checkpoints"
    place = folder / f"step-{step:09d}"
    with writing(run):
        folder.mkdir(parents=True, exist_ok=True)
        for stale in folder.glob(".writing-*"):
            shutil.rmtree(stale)
        draft = folder / f".writing-{place.name}"
        draft.mkdir()
        shared = _SharedFiles(run)
        try:
            _write(draft, state, shared)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            shared.remove_all_but(shared.known)
            raise
        if place.exists():  # saved twice at one step: the old one steps aside, and is found if we die here
            aside = folder / f".replaced-{place.name}"
            shutil.rmtree(aside, ignore_errors=True)
            place.rename(aside)
        draft.rename(place)
        sync(folder)
        before = next((old for old in reversed(_places(run)) if _step(old) < step and old in shared.of_place), None)
        for old in _places(run):
            if old not in (place, before):
                shutil.rmtree(old)
        shared.remove_all_but({*shared.checksums, *shared.of_place.get(before, {})})
    return place


def load_checkpoint(run: Path, warn: Callable[[str], None] = lambda text: None) -> State:
    """The state of the run's newest checkpoint, or, after a word to `warn`, of the one before if that is damaged."""
    state: State = _newest_good(run, _read, warn)
    return state


def load_checkpoint_values(run: Path) -> State:
    """The state of the run's newest checkpoint without its arrays, which may be large: in their places are texts."""
    state: State = _newest_good(run, _read_values)["state"]
    return state


def newest_step(run: Path) -> int:
    """The step of the run's newest checkpoint; 0 before the first."""
    return max(map(_step, _places(run)), default=0)


def has_checkpoint(run: Path) -> bool:
    """Whether there is one, complete or damaged."""
    return bool(_places(run))


def write_weights(path: Path, theta: NDArray[np.float32]) -> None:
    """Write the parameters of a network: `write_policy` of nothing else."""
    write_policy(path, {"theta": theta})


def write_policy(path: Path, policy: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays by name, with a checksum, beside; flush to the disk and rename into place."""
    draft = path.with_name(f".{path.name}.writing")
    save_file(dict(policy), draft, {"crc32": str(_arrays_checksum(policy))})
    _open_like_its_folder(draft)
    sync(draft)
    draft.rename(path)
    sync(path.parent)


def read_weights(path: Path) -> NDArray[np.float32]:
    """The inverse of `write_weights`."""
    policy = read_policy(path)
    if "theta" not in policy:
        raise CheckpointError(f"{path} is damaged: it holds no theta")
    return policy["theta"]


def read_policy(path: Path) -> dict[str, NDArray[Any]]:
    """The inverse of `write_policy`."""
    try:
        with safe_open(path, "np") as file:
            policy: dict[str, NDArray[Any]] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            wanted = int(file.metadata()["crc32"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged and cannot be read: {error}") from error
    _require_checksum(path, wanted, _arrays_checksum(policy))
    return policy


class _SharedFiles:
    """The files of the shared arrays of a run, while a checkpoint is being written."""

    def __init__(self, run: Path) -> None:
        self.folder = run / "checkpoints" / "shared"
        self.checksums: dict[str, int] = {}
        """Of the files that the new checkpoint refers to, by name."""
        self.of_place: dict[Path | None, dict[str, int]] = {}
        """Of the files that the checkpoints on disk refer to; one that is damaged has nothing to say."""
        for place in _places(run):
            with suppress(CheckpointError):
                self.of_place[place] = _read_values(place)["crc32"].get("shared", {})
        self.known = {name: checksum for files in self.of_place.values() for name, checksum in files.items()}

    def keep(self, shared: SharedArray) -> str:
        """Make sure that there is a file; returns its name."""
        if shared.name in self.checksums:
            return shared.name
        if shared.name in self.known and _shared_file(self.folder, shared.name).exists():
            self.checksums[shared.name] = self.known[shared.name]
            return shared.name
        name, array = shared.content()
        if name not in self.checksums:
            self.folder.mkdir(exist_ok=True)
            path = _shared_file(self.folder, name)
            draft = path.with_name(f".{path.name}.writing")
            save_file({"array": array}, draft)
            _open_like_its_folder(draft)
            sync(draft)
            self.checksums[name] = _checksum(draft)
            draft.rename(path)
        return name

    def sync(self) -> None:
        if self.folder.exists():
            sync(self.folder)

    def remove_all_but(self, names: Collection[str]) -> None:
        """Remove files that no checkpoint refers to, of this save or of a run that was killed."""
        kept = {_shared_file(self.folder, name) for name in names}
        for path in [*self.folder.glob("*.safetensors"), *self.folder.glob(".*.writing")]:
            if path not in kept:
                path.unlink(missing_ok=True)
        if not kept and self.folder.exists() and not any(self.folder.iterdir()):
            self.folder.rmdir()


def _shared_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.safetensors"


def _write(draft: Path, state: State, shared: _SharedFiles) -> None:
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    plain = _split(state, "", arrays, shared)
    shared.sync()
    file = draft / "arrays.safetensors"
    save_file(arrays, file)
    _open_like_its_folder(file)
    sync(file)
    checksums: dict[str, Any] = {"arrays": _checksum(file), "state": _text_checksum(plain)}
    if shared.checksums:
        checksums["shared"] = shared.checksums
    write_json(draft / "state.json", {"format": FORMAT, "crc32": checksums, "state": plain})
    sync(draft)


def _places(run: Path) -> list[Path]:
    """The checkpoints of a run, the newest last; one that stepped aside counts less than its successor."""
    found = [place for place in (run / "checkpoints").glob("*") if _NAME.fullmatch(place.name)]
    return sorted(found, key=lambda place: (_step(place), not place.name.startswith(".")))


def _step(place: Path) -> int:
    return int(place.name.rpartition("-")[2])


def _newest_good(run: Path, read: Callable[[Path], Any], warn: Callable[[str], None] = lambda text: None) -> Any:
    """What `read` makes of the newest checkpoint, or of an older one if the newest is damaged."""
    places = _places(run)
    if not places:
        raise CheckpointError(f"{run} has no checkpoint: the run ended before its first one; start it anew")
    problem: CheckpointError | None = None
    for place in reversed(places):
        try:
            content = read(place)
        except CheckpointError as error:
            problem = problem or error
            continue
        if problem is not None:
            warn(f"{problem}; the checkpoint of step {_step(place)} is taken instead")
        return content
    raise problem or AssertionError


def _read_values(place: Path) -> dict[str, Any]:
    """state.json: the values beside the arrays, and the checksums of both."""
    path = place / "state.json"
    content = read_json(path, "a checkpoint")
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else None
        raise CheckpointError(f"{place} is not a checkpoint of this version of cdqn (format {found}, not {FORMAT})")
    try:
        _require_checksum(path, content["crc32"]["state"], _text_checksum(content["state"]))
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{place} is damaged and cannot be read: {error}") from error
    if not isinstance(content["state"], dict) or not isinstance(content["crc32"].get("shared", {}), dict):
        raise CheckpointError(f"{path} is damaged: it holds no state of a run")
    return content


def _read(place: Path) -> State:
    content = _read_values(place)
    file = place / "arrays.safetensors"
    try:
        _require_checksum(file, content["crc32"]["arrays"], _checksum(file))
        arrays = load_file(file)
        for name, wanted in content["crc32"].get("shared", {}).items():
            file = _shared_file(place.parent / "shared", name)
            _require_checksum(file, wanted, _checksum(file))
            arrays[f"shared:{name}"] = load_file(file)["array"]
        state: State = _join(content["state"], arrays)
    except (OSError, SafetensorError, KeyError, TypeError) as error:
        raise CheckpointError(f"{place} is damaged and cannot be read: {error}") from error
    return state


def _require_checksum(path: Path, wanted: Any, found: int) -> None:
    if wanted != found:
        raise CheckpointError(f"{path} is damaged: its checksum is not the one it was written with")


def _split(value: Any, path: str, arrays: dict[str, np.ndarray[Any, Any]], shared: _SharedFiles) -> Any:
    """Move the arrays of a nested state into `arrays`; in their places stands "array:" and their name.

    Shared arrays go to their files at once: "array:shared:" and their name. A text that begins in the same way is
    marked as a text, so that nothing is taken for what it is not.
    """
    if isinstance(value, dict):
        return {key: _split(item, f"{path}.{key}" if path else key, arrays, shared) for key, item in value.items()}
    if isinstance(value, SharedArray):
        return f"array:shared:{shared.keep(value)}"
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        taken = path in arrays or path.startswith("shared:")
        name = f"#{len(arrays)}.{path}" if taken else path
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


def _arrays_checksum(arrays: Mapping[str, NDArray[Any]]) -> int:
    """Of the numbers, in the order of their names."""
    checksum = 0
    for name in sorted(arrays):
        checksum = zlib.crc32(np.ascontiguousarray(arrays[name]).data, checksum)
    return checksum


def _checksum(file: Path) -> int:
    checksum = 0
    with open(file, "rb") as stream:
        while chunk := stream.read(1 << 22):
            checksum = zlib.crc32(chunk, checksum)
    return checksum


def _open_like_its_folder(file: Path) -> None:
    """safetensors lets nobody but the owner read; whoever may read the folder, by the umask, may read the file."""
    file.chmod(file.parent.stat().st_mode & 0o666)
