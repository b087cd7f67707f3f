"""Which transition came just before which, in the same episode, and whether it is still in memory.

Each stored transition gets a serial number. A link remembers slot and serial of the predecessor; once that slot
is overwritten the serials differ and the link is void. This needs no bookkeeping when a slot is overwritten, and
holds for every eviction rule.
"""

from typing import Any

import numpy as np

from cdqn.errors import CheckpointError, ConfigError
from cdqn.replay import kernels
from cdqn.replay.transitions import Array, Ints

_MOST_STREAMS = 1_000_000


class PredecessorLinks:
    """Serial numbers and predecessor links of all slots, and the last transition of each stream."""

    def __init__(self, capacity: int) -> None:
        self.table: Ints = np.zeros((capacity, 3), np.int64)
        self._last_of_stream: Ints = _no_last(0)
        self._next_serial = 1

    def add(self, slots_N: Ints, stream_N: Array, first_N: Array) -> None:
        """Link rows that were stored in these slots, in order of time; −1 is a row that was discarded."""
        stream_N = np.ascontiguousarray(stream_N, np.int64)
        self._next_serial = int(
            kernels.link_rows(
                self.table,
                self._last_of_stream,
                self._next_serial,
                slots_N,
                stream_N,
                np.ascontiguousarray(first_N, np.bool_),
            )
        )

    def state_dict(self, size: int) -> dict[str, Any]:
        """Copies of all that is needed to go on."""
        return {
            "table": self.table[:size].copy(),
            "last_of_stream": self._last_of_stream.copy(),
            "next_serial": self._next_serial,
        }

    def check_state(self, state: dict[str, Any], size: int) -> None:
        """Refuse a damaged state: compiled code follows these links without looking."""
        table, last = np.asarray(state["table"]), np.asarray(state["last_of_stream"])
        if table.shape != (size, 3) or table.dtype != np.int64:
            raise CheckpointError(
                f"replay state: predecessor links have shape {table.shape} and dtype {table.dtype} for {size} "
                "transitions: the checkpoint is damaged"
            )
        if last.ndim != 2 or last.shape[1] != 2 or last.dtype != np.int64:
            raise CheckpointError(
                f"replay state: last_of_stream has shape {last.shape} and dtype {last.dtype}: the checkpoint is damaged"
            )
        for slots in (table[:, kernels.PREDECESSOR_SLOT], last[:, 0]):
            if slots.size and (slots.min() < -1 or slots.max() >= size):
                raise CheckpointError(
                    f"replay state: a predecessor link leaves the {size} saved slots: the checkpoint is damaged"
                )

    def load_state_dict(self, state: dict[str, Any], size: int) -> None:
        """Go on from a state that `check_state` let through."""
        self.table[:size] = state["table"]
        self._last_of_stream = np.array(state["last_of_stream"])
        self._next_serial = int(state["next_serial"])

    def make_room(self, stream_N: Array) -> None:
        """Let the table of streams grow to the largest stream seen; call it before anything is written."""
        stream_N = np.ascontiguousarray(stream_N, np.int64)
        if kernels.first_outside(stream_N, len(self._last_of_stream)) < 0:
            return
        lowest, highest = int(stream_N.min()), int(stream_N.max())
        if lowest < 0 or highest >= _MOST_STREAMS:
            raise ConfigError(
                f"transitions.stream has values from {lowest} to {highest}: number the environments from 0, "
                f"below {_MOST_STREAMS}"
            )
        missing = highest + 1 - len(self._last_of_stream)
        self._last_of_stream = np.concatenate([self._last_of_stream, _no_last(missing)])


def _no_last(stream_count: int) -> Ints:
    """Slot and serial of the last transition of each stream; slot −1: there is none in memory."""
    return np.full((stream_count, 2), -1, np.int64)
