"""TensorBoard gets what the run itself writes."""

import threading
from collections import namedtuple

import numpy as np
import pytest

from cdqn.errors import CheckpointError
from cdqn.integrations.tensorboard import TensorBoard
from cdqn.report.runs import read_run
from helpers import largest_file

Said = namedtuple("Said", ["step", "row"])


def test_tensorboard_gets_the_same_numbers(finished_run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(finished_run / "tensorboard"))
    events.Reload()
    logged = [event.value for event in events.Scalars("progress/loss")]
    np.testing.assert_allclose(logged, read_run(finished_run).curve("loss")[1], rtol=1e-6)


def test_full_disk_is_said_in_plain_words_and_by_no_thread(tmp_path):
    board = TensorBoard(tmp_path / "board")
    threads = threading.active_count()
    event = Said(7, lambda: {"kind": "progress", "step": 7, "loss": 0.5})
    board(event, None)
    with largest_file(100), pytest.raises(CheckpointError, match=r"cannot write to .*board: File too large"):
        board(event, None)
    assert threading.active_count() == threads


def test_board_that_was_told_nothing_leaves_nothing(tmp_path):
    TensorBoard(tmp_path / "board").close()
    assert list(tmp_path.iterdir()) == []
