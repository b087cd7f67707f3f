"""An array that is made only when it is needed, and whose name cannot be changed."""

import dataclasses

import numpy as np
import pytest

from cdqn.storage.checkpoint import load_checkpoint, save_checkpoint
from cdqn.storage.shared_array import SharedArray


def test_content_is_asked_for_once_and_comes_back_as_a_plain_array(tmp_path):
    asked = []

    def content():
        asked.append(1)
        return "block-1", np.arange(5, dtype=np.uint8)

    for step in (1, 2):
        save_checkpoint(tmp_path, step, {"block": SharedArray("block-1", content)})
    assert len(asked) == 1
    assert load_checkpoint(tmp_path)["block"].tolist() == [0, 1, 2, 3, 4]


def test_name_belongs_to_the_content_for_good():
    shared = SharedArray("block-1", lambda: ("block-1", np.zeros(1, np.uint8)))
    with pytest.raises(dataclasses.FrozenInstanceError):
        shared.name = "block-2"
