"""Files of policies: what one of the two newest checkpoints counts on is there, and nothing else for long."""

import numpy as np
import pytest

from cdqn.errors import CheckpointError
from cdqn.runs.policy_files import PolicyFiles
from cdqn.storage.checkpoint import read_policy


def steps_in(files):
    return sorted(int(path.stem.removeprefix("step-")) for path in files.folder.glob("*.safetensors"))


def policy(value):
    return {"theta": np.full(3, value, np.float32), "buffer.count": np.array(7, np.int64)}


def test_policy_is_read_as_it_was_written(tmp_path):
    files = PolicyFiles(tmp_path / "best")
    files.add(50, policy(2.5))
    read = read_policy(files.path(50))
    assert {name: (array.dtype, array.tolist()) for name, array in read.items()} == {
        "theta": (np.float32, [2.5] * 3),
        "buffer.count": (np.int64, 7),
    }


def test_one_flipped_bit_is_noticed(tmp_path):
    files = PolicyFiles(tmp_path / "best")
    files.add(50, policy(2.5))
    content = bytearray(files.path(50).read_bytes())
    content[-2] ^= 1
    files.path(50).write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        read_policy(files.path(50))


def test_files_stay_as_long_as_one_of_two_checkpoints_counts_on_them(tmp_path):
    files = PolicyFiles(tmp_path / "best")
    for step in (1, 2, 3):
        files.add(step, policy(step))
    files.prune([1, 2])
    assert steps_in(files) == [1, 2]
    files.prune([2])
    assert steps_in(files) == [1, 2], "the checkpoint before counts on 1"
    files.prune([2])
    assert steps_in(files) == [2]


def test_after_a_resumption_those_of_its_checkpoint_stay(tmp_path):
    files = PolicyFiles(tmp_path / "best")
    for step in (1, 2, 3):
        files.add(step, policy(step))
    (files.folder / ".step-000000004.safetensors.writing").touch()
    resumed = PolicyFiles(tmp_path / "best")
    resumed.count_on([1])
    resumed.prune([3])
    assert steps_in(resumed) == [1, 3]
    assert not list(files.folder.glob(".*"))
