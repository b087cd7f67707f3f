"""The replay memory: a store, a rule for which slot is overwritten, and a rule for which rows are drawn."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cdqn.errors import CheckpointError, ConfigError, NonFiniteError
from cdqn.replay import kernels, priorities
from cdqn.replay.arrays import Store
from cdqn.replay.links import PredecessorLinks
from cdqn.replay.sum_tree import MaxTree, SumTree
from cdqn.replay.transitions import Array, Batch, Floats, Ints, Transitions, row_count

LARGEST_TD_ERROR = float(np.finfo(np.float32).max)
"""Beyond the range of float32 an error counts as infinite, so that the sum of all priorities stays finite."""


class UniformReplay:
    """Every stored transition is equally likely to be drawn, with replacement.

    eviction: once full, "fifo" overwrites the oldest transition, "random" any, with equal chance (Sec. 5.2).
    discard_fraction: each new transition is dropped with this probability before it is stored (Sec. 5.2).
    """

    def __init__(
        self,
        store: Store,
        *,
        rng: np.random.Generator,
        eviction: Literal["fifo", "random"] = "fifo",
        discard_fraction: float = 0.0,
    ) -> None:
        if eviction not in ("fifo", "random"):
            raise ConfigError(f"eviction is {eviction!r}: choose 'fifo' or 'random'")
        if not 0 <= discard_fraction < 1:
            raise ConfigError(f"discard_fraction is {discard_fraction}: choose 0 ≤ discard_fraction < 1")
        self._store = store
        self._rng = rng
        self._eviction = eviction
        self._discard_fraction = discard_fraction
        self._size = 0
        self._position = 0

    @property
    def capacity(self) -> int:
        """How many transitions fit."""
        return self._store.capacity

    def __len__(self) -> int:
        return self._size

    def add(self, transitions: Transitions) -> None:
        """Store rows in their order; where two rows of one call get the same slot, the later one stays."""
        count = row_count(transitions)
        if self._discard_fraction == 0:
            stored, slots_N = count, self._next_slots(count)
        else:
            kept_N = self._rng.random(count) >= self._discard_fraction
            stored, slots_N = int(kept_N.sum()), np.full(count, -1, np.int64)
            slots_N[kept_N] = self._next_slots(stored)
        self._put(slots_N, transitions)
        self._position = (self._position + stored) % self.capacity
        self._size = min(self._size + stored, self.capacity)

    def sample(self, batch_size: int, beta: float = 1.0) -> Batch:
        """Rows drawn independently; every weight is 1, and β has nothing to correct."""
        self._check_sample(batch_size, beta)
        slots_B = self._rng.integers(self._size, size=batch_size)
        return self.read(slots_B, np.ones(batch_size, np.float32))

    def read(self, slots_B: Ints, weight_B: npt.NDArray[np.float32]) -> Batch:
        """The rows in these slots as a batch with these weights."""
        return Batch(*self._store.read(slots_B), weight_B, slots_B)

    def update_priorities(self, slots_B: Ints, td_error_abs_B: npt.NDArray[np.floating[Any]]) -> None:
        """Nothing to update, but a TD error that is not finite is an error here too."""
        self._checked_td_errors(slots_B, td_error_abs_B)

    def state_dict(self) -> dict[str, Any]:
        """A copy of all that the future depends on: numpy arrays, and values that JSON can hold."""
        return {
            "capacity": self.capacity,
            "size": self._size,
            "position": self._position,
            "rng": self._rng.bit_generator.state,
            "store": self._store.state_dict(self._size),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on exactly where `state_dict` was taken. What does not fit raises CheckpointError."""
        self._check_state(state)
        self._store.load_state_dict(state["store"], state["size"])
        self._rng.bit_generator.state = state["rng"]
        self._size, self._position = int(state["size"]), int(state["position"])

    def _next_slots(self, count: int) -> Ints:
        """The next free slots; once full, the oldest ones or random ones."""
        if self._eviction == "fifo":
            return (self._position + np.arange(count)) % self.capacity
        free = min(count, self.capacity - self._size)
        random_slots = self._rng.integers(self.capacity, size=count - free)
        return np.concatenate([np.arange(self._size, self._size + free), random_slots])

    def _put(self, slots_N: Ints, transitions: Transitions) -> None:
        """Write the rows that stay: not those discarded (slot −1), nor those overwritten by a later row."""
        staying = _last_row_of_each_slot(slots_N)
        if staying is None:
            self._store.write(slots_N, transitions)
        else:
            self._store.write(slots_N[staying], Transitions(*(column[staying] for column in transitions)))

    def _check_sample(self, batch_size: int, beta: float) -> None:
        if batch_size < 1:
            raise ConfigError(f"batch_size is {batch_size}: sample at least 1 transition")
        if not 0 <= beta <= 1:
            raise ConfigError(f"beta is {beta}: choose 0 ≤ beta ≤ 1")
        if self._size == 0:
            raise ConfigError("the replay memory is empty: add transitions before sampling")

    def _checked_td_errors(self, slots_B: Ints, td_error_abs_B: Array) -> tuple[Ints, Floats]:
        """Slots as int64 inside the filled part, |δ| as finite float64; else an error, and nothing changes."""
        slots_B = np.ascontiguousarray(slots_B, np.int64)
        td_error_abs_B = np.ascontiguousarray(td_error_abs_B, np.float64)
        if slots_B.shape != td_error_abs_B.shape or slots_B.ndim != 1:
            raise ConfigError(
                f"slots have shape {slots_B.shape} and TD errors {td_error_abs_B.shape}: give one |δ| per slot"
            )
        outside = kernels.first_outside(slots_B, self._size)
        if outside >= 0:
            raise ConfigError(f"slot {slots_B[outside]} is outside the {self._size} stored transitions")
        allowed_B = (td_error_abs_B >= 0) & (td_error_abs_B <= LARGEST_TD_ERROR)
        if not allowed_B.all():
            worst = int(np.argmin(allowed_B))
            raise NonFiniteError(
                f"|δ| of replay slot {slots_B[worst]} is {td_error_abs_B[worst]}: priorities need a finite "
                "value ≥ 0. Training has diverged (lower the learning rate, clip gradients), or the "
                "environment gave a value that is not finite"
            )
        return slots_B, td_error_abs_B

    def _check_state(self, state: dict[str, Any]) -> None:
        _require(state, "capacity", "size", "position", "rng", "store")
        if state["capacity"] != self.capacity:
            raise CheckpointError(
                f"the saved replay memory has capacity {state['capacity']}, this one {self.capacity}: "
                "resume with the capacity of the saved run"
            )
        size, position = state["size"], state["position"]
        if not 0 <= position < self.capacity or not (position == size < self.capacity or size == self.capacity):
            raise CheckpointError(
                f"replay state: size {size} and position {position} do not fit capacity {self.capacity}: "
                "the checkpoint is damaged"
            )
        saved, own = state["rng"].get("bit_generator"), self._rng.bit_generator.state["bit_generator"]
        if saved != own:
            raise CheckpointError(f"the saved random generator is {saved}, this one {own}: use the same kind")


class PrioritizedReplay(UniformReplay):
    """Transitions are drawn in proportion to priorities made from their TD errors (App. E.2).

    alpha: exponent α of the priorities. priority_epsilon: ε_p. floor_divisor: c̃_p ("floor" scheme only).
    raise_predecessor: lift the transition before a sampled one, in the same episode.
    scheme: "floor" is the paper's; "original" is Schaul et al. (2016), without floor, weights at most 1.
    initial_priority: of new transitions as long as no TD error has been computed; α is not applied to it.
    """

    def __init__(
        self,
        store: Store,
        *,
        rng: np.random.Generator,
        eviction: Literal["fifo", "random"] = "fifo",
        discard_fraction: float = 0.0,
        alpha: float = 0.6,
        priority_epsilon: float = 1e-10,
        floor_divisor: float = 10.0,
        raise_predecessor: bool = True,
        scheme: Literal["floor", "original"] = "floor",
        initial_priority: float = 100.0,
    ) -> None:
        super().__init__(store, rng=rng, eviction=eviction, discard_fraction=discard_fraction)
        if not 0 <= alpha <= 1:
            raise ConfigError(f"alpha is {alpha}: choose 0 ≤ alpha ≤ 1")
        if not 0 < priority_epsilon < np.inf:
            raise ConfigError(f"priority_epsilon is {priority_epsilon}: choose a finite value above 0")
        if not 1 < floor_divisor < np.inf:
            raise ConfigError(f"floor_divisor is {floor_divisor}: choose a finite value above 1 (paper: 10)")
        if not 0 < initial_priority <= LARGEST_TD_ERROR:
            raise ConfigError(f"initial_priority is {initial_priority}: choose a finite value above 0")
        if scheme not in ("floor", "original"):
            raise ConfigError(f"scheme is {scheme!r}: choose 'floor' or 'original'")
        self._alpha = alpha
        self._epsilon = priority_epsilon
        self._floor_divisor = floor_divisor
        self._raise_predecessor = raise_predecessor
        self._scheme = scheme
        self._initial_priority = initial_priority
        self._sums = SumTree(store.capacity)
        # The same leaves, but zero where no TD error was computed: priorities are positive, so a leaf above
        # zero is also the flag "computed".
        self._computed = MaxTree(store.capacity)
        self._links = PredecessorLinks(store.capacity)

    def sample(self, batch_size: int, beta: float = 1.0) -> Batch:
        """Stratified: one draw in each of batch_size equal slices of the total priority."""
        self._check_sample(batch_size, beta)
        slice_width = self._sums.total / batch_size
        prefix_B = (np.arange(batch_size) + self._rng.random(batch_size)) * slice_width
        slots_B, priority_B = self._sums.find_with_values(prefix_B)
        weight_B = self._weights(priority_B, beta).astype(np.float32)
        return self.read(slots_B, weight_B)

    def update_priorities(self, slots_B: Ints, td_error_abs_B: npt.NDArray[np.floating[Any]]) -> None:
        """Priorities from |δ|, with the mean p̄ of before this update; then the predecessors (App. E.2)."""
        slots_B, td_error_abs_B = self._checked_td_errors(slots_B, td_error_abs_B)
        priority_B = priorities.priority(td_error_abs_B, self._epsilon, self._alpha)
        if self._scheme == "floor":
            floor = priorities.floor(self._mean_priority(), self._floor_divisor)
            priority_B = np.maximum(priority_B, floor)
        bounded = td_error_abs_B if self._raise_predecessor else td_error_abs_B[:0]
        bound_B = priorities.predecessor_bound(bounded, self._epsilon, self._alpha)
        kernels.reprioritize(
            self._sums.nodes,
            self._computed.nodes,
            self._sums.starts,
            self._links.table,
            slots_B,
            priority_B,
            bound_B,
        )

    def state_dict(self) -> dict[str, Any]:
        """As `UniformReplay.state_dict`, with the leaves (not the trees), the flags and the links."""
        return super().state_dict() | {
            "priorities": self._sums.leaves(self._size),
            "computed": self._computed.leaves(self._size) > 0,
            "links": self._links.state_dict(self._size),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """As `UniformReplay.load_state_dict`; the trees are built again from their leaves."""
        self._check_state(state)
        super().load_state_dict(state)
        self._links.load_state_dict(state["links"], self._size)
        self._sums.load(state["priorities"])
        self._computed.load(np.where(state["computed"], state["priorities"], 0.0))

    def _put(self, slots_N: Ints, transitions: Transitions) -> None:
        """New rows get the largest computed priority in memory, as it is before any of them is written."""
        self._links.make_room(transitions.stream)
        super()._put(slots_N, transitions)
        self._links.add(slots_N, transitions.stream, transitions.first)
        new_priority = self._computed.maximum or self._initial_priority
        kernels.enter(self._sums.nodes, self._computed.nodes, self._sums.starts, slots_N, new_priority)

    def _mean_priority(self) -> float:
        """p̄ = Σp/N over the stored transitions."""
        return self._sums.total / self._size

    def _weights(self, priority_B: Floats, beta: float) -> Floats:
        if self._scheme == "original":
            return priorities.original_weight(priority_B, self._epsilon, self._alpha, beta)
        weight_B = priorities.importance_weight(priority_B, self._mean_priority(), beta)
        return np.minimum(weight_B, priorities.largest_weight(self._floor_divisor))

    def _check_state(self, state: dict[str, Any]) -> None:
        super()._check_state(state)
        _require(state, "priorities", "computed", "links")
        _require(state["links"], "table", "last_of_stream", "next_serial")
        size = state["size"]
        saved_priorities, computed = np.asarray(state["priorities"]), np.asarray(state["computed"])
        if saved_priorities.shape != (size,) or computed.shape != (size,):
            raise CheckpointError(
                f"replay state: {saved_priorities.shape} priorities and {computed.shape} flags for {size} "
                "transitions: the checkpoint is damaged"
            )
        if not ((saved_priorities > 0) & (saved_priorities < np.inf)).all():
            raise CheckpointError("replay state: a priority is not finite or not above 0: it is damaged")
        self._links.check_state(state["links"], size)


def _last_row_of_each_slot(slots_N: Ints) -> Ints | None:
    """Which rows are still there after all are written, in order; None when that is all of them."""
    last_row = {slot: row for row, slot in enumerate(slots_N.tolist()) if slot >= 0}
    if len(last_row) == len(slots_N):
        return None
    return np.array(sorted(last_row.values()), np.int64)


def _require(state: dict[str, Any], *names: str) -> None:
    missing = [name for name in names if name not in state]
    if missing:
        raise CheckpointError(
            f"replay state has no {', '.join(missing)}: it is damaged, or from another kind of replay memory"
        )
