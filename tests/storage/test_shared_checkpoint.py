"""Arrays that successive checkpoints share: written once, never trusted without a reference, removed when unused."""

import itertools
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from cdqn.errors import CheckpointError
from cdqn.storage.checkpoint import load_checkpoint, save_checkpoint
from cdqn.storage.shared_array import SharedArray
from helpers import assert_same_state, largest_file


class Shelf:
    """Shared arrays by name, each of its own content, and a count of how often one was asked for its content."""

    def __init__(self):
        self.asked = []

    def content(self, name):
        return np.frombuffer(name.encode() * 50, np.uint8)

    def __call__(self, *names, **plain):
        return {"blocks": {name: SharedArray(name, lambda name=name: self._give(name)) for name in names}} | plain

    def loaded(self, *names, **plain):
        return {"blocks": {name: self.content(name) for name in names}} | plain

    def _give(self, name):
        self.asked.append(name)
        return name, self.content(name)


def shared_files(run):
    folder = run / "checkpoints" / "shared"
    return sorted(path.name.removesuffix(".safetensors") for path in folder.iterdir()) if folder.exists() else []


def test_shared_array_comes_back_as_a_plain_one(tmp_path):
    shelf = Shelf()
    save_checkpoint(tmp_path, 1, shelf("a", "b", other=np.arange(3), text="array:shared:a"))
    assert_same_state(load_checkpoint(tmp_path), shelf.loaded("a", "b", other=np.arange(3), text="array:shared:a"))


def test_array_under_a_name_that_looks_shared_is_not_confused(tmp_path):
    shelf = Shelf()
    state = shelf("a") | {"shared:a": np.arange(4), "#1": {"shared:a": np.arange(5)}}
    save_checkpoint(tmp_path, 1, state)
    assert_same_state(load_checkpoint(tmp_path), shelf.loaded("a") | {k: state[k] for k in ("shared:a", "#1")})


def test_what_the_checkpoint_before_has_is_not_written_again(tmp_path):
    shelf = Shelf()
    before = ""
    for step, names in enumerate(["a", "ab", "abc", "bc", "bcd", "d", "d"]):
        save_checkpoint(tmp_path, step, shelf(*names))
        assert_same_state(load_checkpoint(tmp_path), shelf.loaded(*names))
        assert shared_files(tmp_path) == sorted({*names, *before}), "not what the two newest checkpoints need"
        before = names
    assert shelf.asked == ["a", "b", "c", "d"]


def test_older_checkpoint_finds_its_shared_files(tmp_path):
    shelf = Shelf()
    save_checkpoint(tmp_path, 1, shelf("a", "b"))
    (save_checkpoint(tmp_path, 2, shelf("b", "c")) / "state.json").write_text("{")
    assert_same_state(load_checkpoint(tmp_path), shelf.loaded("a", "b"))
    save_checkpoint(tmp_path, 3, shelf("b", "d"))
    assert shared_files(tmp_path) == ["a", "b", "d"]


def test_array_that_occurs_twice_is_written_once(tmp_path):
    shelf = Shelf()
    save_checkpoint(tmp_path, 1, {"one": shelf("a"), "other": shelf("a")})
    assert shelf.asked == ["a"]
    assert_same_state(load_checkpoint(tmp_path), {"one": shelf.loaded("a"), "other": shelf.loaded("a")})


def test_content_may_take_another_name_when_it_is_written(tmp_path):
    """The store names what is left of a block when it is asked, and offers that name from then on."""
    less = np.arange(5, dtype=np.uint8)
    save_checkpoint(tmp_path, 1, {"x": SharedArray("all", lambda: ("less", less))})
    assert shared_files(tmp_path) == ["less"]
    save_checkpoint(tmp_path, 2, {"x": SharedArray("less", lambda: pytest.fail("it is there"))})
    assert_same_state(load_checkpoint(tmp_path), {"x": less})


def test_folder_of_shared_files_goes_with_the_last_of_them(tmp_path):
    shelf = Shelf()
    save_checkpoint(tmp_path, 1, shelf("a"))
    for step in (2, 3):
        save_checkpoint(tmp_path, step, {"value": 1})
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["step-000000002", "step-000000003"]


def test_file_that_a_killed_run_left_is_not_trusted(tmp_path):
    """It has the name that is needed, but no checkpoint refers to it, so nobody knows what is in it."""
    shelf = Shelf()
    save_checkpoint(tmp_path, 1, shelf("a"))
    shared = tmp_path / "checkpoints" / "shared"
    shutil.copy(shared / "a.safetensors", shared / "b.safetensors")
    (shared / ".c.safetensors.writing").write_bytes(b"half")
    assert_same_state(load_checkpoint(tmp_path), shelf.loaded("a"))
    save_checkpoint(tmp_path, 2, shelf("a", "b"))
    assert_same_state(load_checkpoint(tmp_path), shelf.loaded("a", "b"))
    assert shelf.asked == ["a", "b"]
    assert shared_files(tmp_path) == ["a", "b"]


def test_shared_file_that_was_lost_is_written_again(tmp_path):
    shelf = Shelf()
    save_checkpoint(tmp_path, 1, shelf("a"))
    (tmp_path / "checkpoints" / "shared" / "a.safetensors").unlink()
    save_checkpoint(tmp_path, 2, shelf("a"))
    assert_same_state(load_checkpoint(tmp_path), shelf.loaded("a"))


def test_damaged_checkpoint_before_lends_nothing(tmp_path):
    shelf = Shelf()
    (save_checkpoint(tmp_path, 1, shelf("a")) / "state.json").write_text("{")
    save_checkpoint(tmp_path, 2, shelf("a"))
    assert shelf.asked == ["a", "a"]
    assert_same_state(load_checkpoint(tmp_path), shelf.loaded("a"))


def flip(data):
    return data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]


@pytest.mark.parametrize("damage", [flip, lambda data: data[:-1], lambda data: b""])
def test_damaged_shared_file_is_an_error_that_names_it(tmp_path, damage):
    save_checkpoint(tmp_path, 1, Shelf()("a"))
    path = tmp_path / "checkpoints" / "shared" / "a.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match=r"a\.safetensors"):
        load_checkpoint(tmp_path)


def test_missing_shared_file_is_an_error_that_names_it(tmp_path):
    save_checkpoint(tmp_path, 1, Shelf()("a"))
    (tmp_path / "checkpoints" / "shared" / "a.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"a\.safetensors"):
        load_checkpoint(tmp_path)


def test_reference_to_another_shared_file_is_noticed(tmp_path):
    """One changed letter that leads to a file which exists, with a right checksum of its own."""
    path = save_checkpoint(tmp_path, 1, Shelf()("a", "b")) / "state.json"
    content = json.loads(path.read_text())
    content["state"]["blocks"]["a"] = content["state"]["blocks"]["b"]
    path.write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=r"state\.json"):
        load_checkpoint(tmp_path)


def test_full_disk_leaves_the_old_checkpoint_and_none_of_the_new_files(tmp_path):
    shelf = Shelf()
    save_checkpoint(tmp_path, 1, shelf("a"))
    big = SharedArray("big", lambda: ("big", np.zeros(100_000, np.uint8)))
    with largest_file(10_000), pytest.raises(CheckpointError, match="cannot write to"):
        save_checkpoint(tmp_path, 2, {"blocks": shelf("c")["blocks"] | {"big": big}})
    assert_same_state(load_checkpoint(tmp_path), shelf.loaded("a"))
    assert shared_files(tmp_path) == ["a"]


class Killed(BaseException):
    """What no handler in the library waits for; files stay as they are at this moment."""


def kill_at(nth, run, corpse, done):
    """Count every change on disk, over all kinds; at the nth copy the run folder as it is, and die there."""
    events = []

    def dying(real):
        def change(*arguments, **options):
            events.append(real)
            if len(events) == nth and not done:
                shutil.copytree(run, corpse)
                raise Killed
            result = real(*arguments, **options)
            if len(events) == nth:
                shutil.copytree(run, corpse)
                raise Killed
            return result

        return change

    patch = pytest.MonkeyPatch()
    for where, name in [(Path, "rename"), (Path, "unlink"), (Path, "mkdir"), (shutil, "rmtree"), (os, "fsync")]:
        patch.setattr(where, name, dying(getattr(where, name)))
    return patch


@pytest.mark.parametrize("step", [5, 6])
@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_kill_at_any_change_on_disk_leaves_a_complete_checkpoint(tmp_path, step, done):
    """A kill runs no cleanup, so what is looked at is a copy of its moment: it must load, and the next save go on."""
    shelf = Shelf()
    for nth in itertools.count(1):
        run, corpse = tmp_path / f"run{nth}", tmp_path / f"corpse{nth}"
        save_checkpoint(run, 5, shelf("a", "b", value=1))
        patch = kill_at(nth, run, corpse, done)
        try:
            save_checkpoint(run, step, shelf("b", "c", "d", value=2))
        except Killed:
            pass
        else:
            break
        finally:
            patch.undo()
        found = load_checkpoint(corpse)
        assert_same_state(
            found, shelf.loaded("a", "b", value=1) if found["value"] == 1 else shelf.loaded("b", "c", "d", value=2)
        )
        save_checkpoint(corpse, 7, shelf("c", "e", value=3))
        assert_same_state(load_checkpoint(corpse), shelf.loaded("c", "e", value=3))
        before = ("a", "b") if found["value"] == 1 else ("b", "c", "d")
        assert shared_files(corpse) == sorted({"c", "e", *before})
    assert nth > 12
