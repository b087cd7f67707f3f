"""Trees over the slots of a memory: sums to sample by, maxima to start new transitions from.

An inner node is recomputed from its children whenever one of them changes. So a tree is a function of its
leaves alone: rebuilt from saved leaves it is the same to the last bit, and a resumed run samples the same.
"""

from typing import Any

import numpy as np

from cdqn.errors import CheckpointError, ConfigError, NonFiniteError
from cdqn.replay import kernels
from cdqn.replay.transitions import Floats, Ints

_CACHE_LINE_FLOATS = 8


class _Tree:
    """What both trees share: the layout, the checks, the leaves."""

    _maximum: bool

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ConfigError(f"tree capacity is {capacity}: give at least 1 slot")
        self.capacity = capacity
        widths = [capacity]
        while len(widths) == 1 or widths[-1] > 1:
            widths.append(-(-widths[-1] // kernels.FAN_OUT))
        padded = [-(-width // kernels.FAN_OUT) * kernels.FAN_OUT for width in widths]
        self.starts: Ints = np.concatenate([[0], np.cumsum(padded[:-1])]).astype(np.int64)
        self._node_count = sum(padded)
        self._root = self._node_count - padded[-1]
        self.nodes: Floats = _aligned_zeros(self._node_count)

    def set(self, slots: Ints, values: Floats) -> None:
        """Set leaves; of a slot given twice the later value stays. Values are finite and not negative."""
        slots, values = _int64(slots), _float64(values)
        if slots.shape != values.shape:
            raise ConfigError(f"{slots.size} slots but {values.size} values: give one value per slot")
        self._check_slots(slots)
        allowed = (values >= 0) & (values < np.inf)
        if not allowed.all():
            worst = int(np.argmin(allowed))
            raise NonFiniteError(
                f"priority of slot {slots[worst]} is {values[worst]}: a leaf must be finite and not negative"
            )
        self._write(slots, values)

    def get(self, slots: Ints) -> Floats:
        """The leaves at these slots."""
        slots = _int64(slots)
        self._check_slots(slots)
        return self.nodes.take(slots)

    def leaves(self, size: int) -> Floats:
        """A copy of the first `size` leaves: all that is needed to build the tree again."""
        return self.nodes[:size].copy()

    def load(self, leaves: Floats) -> None:
        """Become the tree with these leaves, and zeros after them."""
        leaves = _float64(leaves)
        if leaves.ndim != 1 or leaves.size > self.capacity:
            raise CheckpointError(
                f"saved priorities have shape {leaves.shape}, this memory has {self.capacity} slots: "
                "resume with the capacity of the saved run"
            )
        allowed = (leaves >= 0) & (leaves < np.inf)
        if not allowed.all():
            worst = int(np.argmin(allowed))
            raise CheckpointError(f"saved priority of slot {worst} is {leaves[worst]}: the checkpoint is damaged")
        self.nodes = _aligned_zeros(self._node_count)
        self.nodes[: leaves.size] = leaves
        kernels.rebuild(self.nodes, self.starts, leaves.size, self._maximum)

    def _write(self, slots: Ints, values: Floats) -> None:
        raise NotImplementedError

    def _check_slots(self, slots: Ints) -> None:
        outside = kernels.first_outside(slots, self.capacity)
        if outside >= 0:
            raise ConfigError(f"slot {slots[outside]} is outside a tree of {self.capacity} slots")


class SumTree(_Tree):
    """Draws slots in proportion to their values."""

    _maximum = False

    @property
    def total(self) -> float:
        """Sum of all leaves."""
        return float(self.nodes[self._root])

    def find(self, prefix_sums: Floats) -> Ints:
        """For each prefix in [0, total] the slot whose share of the total it falls into; never a zero leaf."""
        return self.find_with_values(prefix_sums)[0]

    def find_with_values(self, prefix_sums: Floats) -> tuple[Ints, Floats]:
        """As `find`, together with the values found: they are in the cache at that moment."""
        if self.nodes[self._root] <= 0.0:
            raise ConfigError("the tree holds no priority above zero: add transitions before sampling")
        prefix_sums = _float64(prefix_sums)
        slots, values = np.empty(prefix_sums.size, np.int64), np.empty(prefix_sums.size)
        kernels.find(self.nodes, self.starts, prefix_sums, slots, values)
        return slots, values

    def _write(self, slots: Ints, values: Floats) -> None:
        kernels.set_sums(self.nodes, self.starts, slots, values)


class MaxTree(_Tree):
    """Knows the largest value, also after that leaf has gone down."""

    _maximum = True

    @property
    def maximum(self) -> float:
        """Largest leaf; 0 when all are zero."""
        return float(self.nodes[self._root])

    def _write(self, slots: Ints, values: Floats) -> None:
        kernels.set_maxima(self.nodes, self.starts, slots, values)


def _aligned_zeros(count: int) -> Floats:
    """Zeros that begin on a cache line, so that the 8 children of a node share one."""
    padded = np.zeros(count + _CACHE_LINE_FLOATS)
    skip = -(padded.ctypes.data // padded.itemsize) % _CACHE_LINE_FLOATS
    return padded[skip : skip + count]


def _int64(values: Any) -> Ints:
    return np.ascontiguousarray(values, np.int64)


def _float64(values: Any) -> Floats:
    return np.ascontiguousarray(values, np.float64)
