"""The plain store: each transition is one record of a preallocated array.

The fields of a transition lie side by side, so reading a small one costs one or two cache lines instead of
five. Pages are touched only when they are written: a memory of a million costs nothing until it is filled.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cdqn.errors import CheckpointError, ConfigError
from cdqn.replay.transitions import Array, Fields, Ints, Transitions


class Store(Protocol):
    """Keeps transitions in numbered slots; it never chooses a slot, and never forgets one by itself."""

    @property
    def capacity(self) -> int:
        """How many transitions fit."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes this store takes when it is full."""
        ...

    def write(self, slots_N: Ints, transitions: Transitions) -> None:
        """Put row n in slots_N[n]. The slots are distinct; what they held before is gone from now on."""
        ...

    def read(self, slots_B: Ints) -> Fields:
        """The rows in these slots, as arrays that the caller owns."""
        ...

    def state_dict(self, size: int) -> dict[str, Any]:
        """A copy of slots 0 … size−1, the filled part."""
        ...

    def load_state_dict(self, state: dict[str, Any], size: int) -> None:
        """Take back what `state_dict(size)` gave, or raise CheckpointError and change nothing."""
        ...


class ArrayStore:
    """Transitions as records. Observations keep the dtype given here."""

    def __init__(self, capacity: int, observation_shape: Sequence[int], observation_dtype: npt.DTypeLike) -> None:
        if capacity < 1:
            raise ConfigError(f"replay capacity is {capacity}: a memory holds at least 1 transition")
        self._shape = tuple(observation_shape)
        self._dtype = np.dtype(observation_dtype)
        if self._dtype.hasobject:
            raise ConfigError(f"observation dtype is {self._dtype}: store numbers, not Python objects")
        record = np.dtype(
            [
                ("observation", self._dtype, self._shape),
                ("next_observation", self._dtype, self._shape),
                ("action", np.int64),
                ("reward", np.float32),
                ("terminated", np.bool_),
            ],
            align=True,
        )
        try:
            self._records = np.empty(capacity, record)
        except (MemoryError, ValueError) as error:
            gigabytes = capacity * record.itemsize / 1e9
            raise ConfigError(
                f"replay capacity {capacity} with observations of shape {self._shape} {self._dtype} needs "
                f"{gigabytes:.1f} GB, more than can be allocated: lower the capacity"
            ) from error
        self._columns = Fields(*(self._records[name] for name in Fields._fields))

    @property
    def capacity(self) -> int:
        """How many transitions fit."""
        return len(self._records)

    @property
    def nbytes(self) -> int:
        """Bytes this store takes when it is full."""
        return self._records.nbytes

    def write(self, slots_N: Ints, transitions: Transitions) -> None:
        """Put row n in slots_N[n]; the slots are distinct."""
        self._check_observation("observation", transitions.observation)
        self._check_observation("next_observation", transitions.next_observation)
        for column, rows in zip(self._columns, _fields_of(transitions), strict=True):
            column[slots_N] = rows

    def read(self, slots_B: Ints) -> Fields:
        """The rows in these slots, each field contiguous."""
        records_B = self._records.take(slots_B)
        return Fields(*(np.ascontiguousarray(records_B[name]) for name in Fields._fields))

    def state_dict(self, size: int) -> dict[str, Any]:
        """A copy of the filled part, field by field."""
        return {name: self._records[name][:size].copy() for name in Fields._fields}

    def load_state_dict(self, state: dict[str, Any], size: int) -> None:
        """Restore the filled part; a state of another shape, dtype or length is refused as a whole."""
        for name, column in zip(Fields._fields, self._columns, strict=True):
            if name not in state:
                raise CheckpointError(f"replay state has no field {name!r}: it is damaged or of another kind")
            saved = np.asarray(state[name])
            expected = (size, *column.shape[1:])
            if saved.shape != expected or saved.dtype != column.dtype:
                raise CheckpointError(
                    f"replay state: {name} has shape {saved.shape} and dtype {saved.dtype}, this memory needs "
                    f"{expected} and {column.dtype}: resume with the environment of the saved run"
                )
        for name, column in zip(Fields._fields, self._columns, strict=True):
            column[:size] = state[name]

    def _check_observation(self, name: str, rows: Array) -> None:
        """Refuse another shape, and casts that would wrap or truncate (floats into uint8)."""
        if rows.shape[1:] != self._shape:
            raise ConfigError(
                f"transitions.{name} has observations of shape {rows.shape[1:]}, the store was made for "
                f"{self._shape}: build the store from the environment's observation space"
            )
        if rows.dtype != self._dtype and not np.can_cast(rows.dtype, self._dtype, "same_kind"):
            raise ConfigError(
                f"transitions.{name} is {rows.dtype}, which does not fit in a store of {self._dtype}: "
                "build the store with the dtype of the observations"
            )


def _fields_of(transitions: Transitions) -> Fields:
    return Fields(
        transitions.observation,
        transitions.action,
        transitions.reward,
        transitions.next_observation,
        transitions.terminated,
    )
