"""Checkpoints: bit for bit, never executed, never half written."""

import copy
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from cdqn.errors import CheckpointError
from cdqn.storage import checkpoint
from cdqn.storage.checkpoint import load_checkpoint, save_checkpoint, write_weights
from cdqn.storage.files import write_json
from cdqn.storage.shared_array import SharedArray
from helpers import assert_same_state, largest_file

PAYLOAD = np.array([0x7FF8DEADBEEF0001, 0xFFF0000000000000, 0x8000000000000000], np.uint64).view(np.float64)


def nested_state():
    rng = np.random.default_rng(0)
    return {
        "rng": rng.bit_generator.state,
        "floats": {"nan with payload, -inf, -0": PAYLOAD, "single": rng.normal(size=5).astype(np.float32)},
        "flags": np.array([True, False, True]),
        "bytes": rng.integers(256, size=(2, 3, 4)).astype(np.uint8),
        "ints": np.array([-(2**63), 2**63 - 1]),
        "empty": np.zeros((0, 4), np.float32),
        "strided": np.arange(20).reshape(4, 5)[::2, ::-1],
        "plain": {"none": None, "text": "ε", "big": 2**127 + 1, "float": 0.1, "list": [1, 2.5, "a"], "true": True},
        "deep": {"er": {"still": {"values": np.arange(3, dtype=np.int16)}}},
    }


def saved(run, step=5, state=None):
    return save_checkpoint(run, step, nested_state() if state is None else state)


def test_nested_state_goes_round_bit_for_bit(tmp_path):
    state = nested_state()
    saved(tmp_path, state=state)
    loaded = load_checkpoint(tmp_path)
    assert_same_state(loaded, state)
    assert loaded["floats"]["nan with payload, -inf, -0"].tobytes() == PAYLOAD.tobytes()
    generator = np.random.default_rng(1)
    generator.bit_generator.state = loaded["rng"]
    assert generator.random() == pytest.approx(np.random.default_rng(0).random())


def test_tensors_come_back_as_arrays_of_the_same_bits(tmp_path):
    tensor = torch.randn(7)
    saved(tmp_path, state={"theta": tensor, "view": torch.arange(6).reshape(2, 3).T})
    loaded = load_checkpoint(tmp_path)
    assert loaded["theta"].tobytes() == tensor.numpy().tobytes()
    assert loaded["view"].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_array_without_dimensions_keeps_its_shape(tmp_path):
    saved(tmp_path, state={"scalar": np.array(3.5)})
    assert load_checkpoint(tmp_path)["scalar"].shape == ()


@pytest.mark.parametrize(
    "state",
    [
        {"env": {"array": np.arange(3)}},
        {"env": {"array": "text"}},
        {"env": {"a.b": np.arange(3), "a": {"b": np.arange(4)}}},
    ],
    ids=["an entry named array", "a text named array", "names with dots"],
)
def test_names_that_a_users_environment_may_choose_do_not_collide(tmp_path, state):
    """The state of a native vector environment is part of a checkpoint, and its names are its own."""
    saved(tmp_path, state=copy.deepcopy(state))
    assert_same_state(load_checkpoint(tmp_path), state)


def test_what_cannot_be_written_is_an_error_that_keeps_the_old_checkpoint(tmp_path):
    saved(tmp_path, 1)
    with pytest.raises((CheckpointError, TypeError)):
        saved(tmp_path, 2, {"thing": object()})
    assert_same_state(load_checkpoint(tmp_path), nested_state())


def test_newest_two_checkpoints_stay(tmp_path):
    for step in (1, 20, 300):
        place = saved(tmp_path, step, {"step": step})
    assert sorted(p.name for p in (tmp_path / "checkpoints").iterdir()) == ["step-000000020", "step-000000300"]
    assert place.name == "step-000000300"
    assert load_checkpoint(tmp_path) == {"step": 300}


def test_two_saves_at_one_step_keep_the_later(tmp_path):
    saved(tmp_path, 7, {"value": 1})
    saved(tmp_path, 7, {"value": 2})
    assert load_checkpoint(tmp_path) == {"value": 2}
    assert len(list((tmp_path / "checkpoints").iterdir())) == 1


def test_stale_drafts_are_removed_and_never_loaded(tmp_path):
    saved(tmp_path, 1, {"value": 1})
    draft = tmp_path / "checkpoints" / ".writing-step-000000002"
    draft.mkdir()
    (draft / "state.json").write_text("{")
    assert load_checkpoint(tmp_path) == {"value": 1}
    saved(tmp_path, 3, {"value": 3})
    assert not draft.exists()


def test_stray_file_among_the_checkpoints_is_no_obstacle(tmp_path):
    """Desktops and network file systems leave hidden files of their own."""
    saved(tmp_path, 1, {"value": 1})
    (tmp_path / "checkpoints" / ".DS_Store").write_text("")
    saved(tmp_path, 2, {"value": 2})
    assert load_checkpoint(tmp_path) == {"value": 2}


def damage_truncate(data):
    return data[: len(data) // 2]


def damage_empty(data):
    return b""


def damage_flip(data):
    position = len(data) * 3 // 4
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


def damage_foreign(data):
    return b"PK\x03\x04 this is something else entirely"


@pytest.mark.parametrize("file", ["arrays.safetensors", "state.json"])
@pytest.mark.parametrize("damage", [damage_truncate, damage_empty, damage_flip, damage_foreign])
def test_damaged_file_is_an_error_that_names_it(tmp_path, file, damage):
    path = saved(tmp_path) / file
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(tmp_path)
    assert str(path.parent) in str(caught.value)


def test_changed_digit_in_the_state_is_noticed(tmp_path):
    """A flipped bit that leaves valid JSON must not load as another number."""
    path = saved(tmp_path, state={"updates": 1234, "theta": np.arange(3.0)}) / "state.json"
    text = path.read_text()
    assert "1234" in text
    path.write_text(text.replace("1234", "1235"))
    with pytest.raises(CheckpointError, match=r"state\.json"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize("file", ["arrays.safetensors", "state.json"])
def test_missing_file_is_an_error_that_names_it(tmp_path, file):
    (saved(tmp_path) / file).unlink()
    with pytest.raises(CheckpointError, match=file.replace(".", r"\.")):
        load_checkpoint(tmp_path)


def test_folder_without_checkpoint_is_an_error_that_names_it(tmp_path):
    with pytest.raises(CheckpointError, match="has no checkpoint"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize("content", ["[]", "3", '{"format": 999}', "{}", '{"format": 1, "crc32": 0}'])
def test_json_that_is_no_checkpoint_is_refused(tmp_path, content):
    place = saved(tmp_path)
    (place / "state.json").write_text(content)
    with pytest.raises(CheckpointError, match="step-000000005"):
        load_checkpoint(tmp_path)


def test_checkpoint_of_another_format_is_told_from_a_damaged_one(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "FORMAT", checkpoint.FORMAT + 1)
    saved(tmp_path)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="version"):
        load_checkpoint(tmp_path)


class Bomb:
    """Unpickling it creates the file `path`."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_pickle_in_place_of_the_arrays_is_never_executed(tmp_path):
    trap = tmp_path / "executed"
    pickle.loads(pickle.dumps(Bomb(trap)))
    assert trap.exists(), "the bomb does not work, so the test would show nothing"
    trap.unlink()
    place = saved(tmp_path)
    for file, content in (
        ("arrays.safetensors", pickle.dumps(Bomb(trap))),
        ("state.json", pickle.dumps(Bomb(trap))),
    ):
        original = (place / file).read_bytes()
        (place / file).write_bytes(content)
        if file == "arrays.safetensors":  # even with a matching checksum
            state = json.loads((place / "state.json").read_text())
            state["crc32"] = checkpoint._checksum(place / file)
            (place / "state.json").write_text(json.dumps(state))
        with pytest.raises(CheckpointError):
            load_checkpoint(tmp_path)
        assert not trap.exists()
        (place / file).write_bytes(original)


@pytest.mark.parametrize("part", ["arrays", "json"])
def test_disk_that_is_full_in_the_middle_leaves_the_old_checkpoint(tmp_path, part):
    """Arrays beyond the limit fail in the first file, a long plain value in the second."""
    saved(tmp_path, 1, {"value": np.arange(10)})
    big = {"arrays": {"big": np.zeros(100_000)}, "json": {"a": np.zeros(3), "big": "x" * 100_000}}[part]
    with largest_file(10_000), pytest.raises(CheckpointError) as caught:
        saved(tmp_path, 2, big)
    assert "cannot write to" in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert_same_state(load_checkpoint(tmp_path), {"value": np.arange(10)})
    assert [p.name for p in (tmp_path / "checkpoints").iterdir()] == ["step-000000001"]


@pytest.mark.parametrize("failing_rename", [1, 2, 3])
def test_crash_between_any_two_renames_leaves_a_complete_checkpoint(tmp_path, monkeypatch, failing_rename):
    """Saved twice at one step, the old checkpoint must make room without a moment in which there is none."""
    saved(tmp_path, 5, {"value": 1})
    renames = []
    real = Path.rename

    def rename(self, target):
        renames.append(self)
        if len(renames) == failing_rename:
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        saved(tmp_path, 5, {"value": 2})
    monkeypatch.undo()
    assert load_checkpoint(tmp_path) in ({"value": 1}, {"value": 2})
    saved(tmp_path, 5, {"value": 3})
    assert load_checkpoint(tmp_path) == {"value": 3}


@pytest.mark.parametrize("file", ["arrays.safetensors", "state.json"])
def test_damaged_newest_checkpoint_falls_back_to_the_older_with_a_warning(tmp_path, file):
    saved(tmp_path, 1, {"value": np.arange(1)})
    saved(tmp_path, 2, {"value": np.arange(2)})
    path = saved(tmp_path, 3, {"value": np.arange(3)}) / file
    path.write_bytes(damage_flip(path.read_bytes()))
    told = []
    assert_same_state(load_checkpoint(tmp_path, told.append), {"value": np.arange(2)})
    (text,) = told
    assert str(path.parent) in text
    assert "step 2 is taken instead" in text
    # The run goes on from step 2, and the damaged one of a later step must not come back.
    saved(tmp_path, 2, {"value": np.arange(4)})
    assert_same_state(load_checkpoint(tmp_path), {"value": np.arange(4)})
    assert [p.name for p in (tmp_path / "checkpoints").iterdir()] == ["step-000000002"]


def test_damaged_checkpoint_is_not_the_one_that_stays_behind_the_newest(tmp_path):
    saved(tmp_path, 1, {"value": 1})
    (saved(tmp_path, 2, {"value": 2}) / "state.json").write_text("{")
    saved(tmp_path, 3, {"value": 3})
    assert sorted(p.name for p in (tmp_path / "checkpoints").iterdir()) == ["step-000000001", "step-000000003"]


def test_all_files_of_a_checkpoint_have_the_mode_that_the_umask_says(tmp_path):
    before = os.umask(0o027)
    try:
        place = saved(tmp_path)
    finally:
        os.umask(before)
    assert {path.name: path.stat().st_mode & 0o777 for path in place.iterdir()} == {
        "arrays.safetensors": 0o640,
        "state.json": 0o640,
    }


def test_folder_with_a_name_that_is_no_step_is_no_checkpoint(tmp_path):
    saved(tmp_path, 5, {"value": 5})
    (tmp_path / "checkpoints" / "step-abc").mkdir()
    assert checkpoint.newest_step(tmp_path) == 5
    assert load_checkpoint(tmp_path) == {"value": 5}
    saved(tmp_path, 6, {"value": 6})
    assert load_checkpoint(tmp_path) == {"value": 6}


def test_what_is_renamed_into_place_was_flushed_to_the_disk_before_and_its_folder_after(tmp_path, monkeypatch):
    """Or a power cut may leave the new name with nothing behind it."""
    flushed, renamed, rename = set(), [], Path.rename

    def checked_rename(draft, target):
        for path in (draft, *draft.rglob("*")):
            assert path.stat().st_ino in flushed, f"{path} was not flushed"
        flushed.discard(draft.parent.stat().st_ino)
        renamed.append(draft.name)
        return rename(draft, target)

    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.add(os.fstat(descriptor).st_ino))
    monkeypatch.setattr(Path, "rename", checked_rename)
    write_json(tmp_path / "a.json", {})
    write_weights(tmp_path / "theta.safetensors", np.zeros(3, np.float32))
    assert tmp_path.stat().st_ino in flushed
    for step in (5, 6, 6):
        shared = SharedArray(f"block-{step}", lambda step=step: (f"block-{step}", np.zeros(2)))
        saved(tmp_path, step, {"a": np.zeros(2), "b": shared})
        for folder in (tmp_path / "checkpoints", tmp_path / "checkpoints" / "shared"):
            assert folder.stat().st_ino in flushed
    assert {".a.json.writing", ".writing-step-000000006", "step-000000006"} <= set(renamed)
    assert len(renamed) == 1 + 1 + 3 * 2 + 2 + 1


def test_place_that_cannot_be_written_is_an_error_in_plain_words(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(CheckpointError, match="cannot write to"):
        saved(tmp_path / "file" / "run")
