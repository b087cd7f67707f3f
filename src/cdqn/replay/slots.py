"""Slots without content: for memories whose rows another library keeps, and whose order of drawing is ours."""

from typing import Any

import numpy as np

from cdqn.replay.transitions import Bools, Fields, Ints, Transitions


class SlotsOnly:
    """A store (`cdqn.replay.arrays.Store`) that keeps nothing."""

    nbytes = 0

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity

    def write(self, slots_N: Ints, transitions: Transitions) -> None:
        """The rows lie elsewhere."""

    def read(self, slots_B: Ints) -> Fields:
        nothing = np.zeros(len(slots_B), np.bool_)
        return Fields(nothing, nothing, nothing, nothing, nothing)

    def state_dict(self, size: int) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any], size: int) -> None:
        """There is nothing to load."""


def rows_without_content(stream_N: Ints, first_N: Bools) -> Transitions:
    """Rows of these streams, of which nothing is known but whether they begin an episode."""
    nothing = np.zeros(len(stream_N), np.bool_)
    return Transitions(nothing, nothing, nothing, nothing, nothing, stream_N, first_N)
