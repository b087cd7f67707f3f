"""Slow twins of the replay memory in plain Python, and helpers to make transitions.

The twins share no mechanism with the library: sums are loops, predecessors are references between objects.
They draw from a generator in the same order, so that with equal seeds both must do the same.
"""

from dataclasses import dataclass

import numpy as np

from cdqn.replay import ArrayStore, PrioritizedReplay, Transitions


def make_rows(ids, streams=None, firsts=None):
    """One transition per id; the observation is the id, so a row can be recognised wherever it ends up."""
    ids = np.asarray(ids, np.float64)
    count = len(ids)
    return Transitions(
        observation=np.stack([ids, -ids], axis=1).astype(np.float32),
        action=ids.astype(np.int64),
        reward=(ids / 2).astype(np.float32),
        next_observation=np.stack([ids + 1, -ids], axis=1).astype(np.float32),
        terminated=ids % 3 == 0,
        stream=np.zeros(count, np.int64) if streams is None else np.asarray(streams, np.int64),
        first=np.zeros(count, bool) if firsts is None else np.asarray(firsts, bool),
    )


def make_replay(capacity, seed=0, cls=PrioritizedReplay, **settings):
    store = ArrayStore(capacity, (2,), np.float32)
    return cls(store, rng=np.random.default_rng(seed), **settings)


def priorities_of(replay):
    return replay.state_dict()["priorities"]


def ids_in(replay):
    return replay.state_dict()["store"]["action"].tolist()


def slow_node_sum(leaves):
    """The value of a node over these leaves: eight at a time, left to right, level by level."""
    level = list(leaves)
    while True:
        level += [0.0] * (-len(level) % 8)
        above = []
        for i in range(0, len(level), 8):
            total = level[i]
            for value in level[i + 1 : i + 8]:
                total += value
            above.append(total)
        if len(above) == 1:
            return above[0]
        level = above


def slow_find(leaves, prefix):
    """Walk along the leaves until the running sum passes the prefix; never stop at a zero."""
    running, answer = 0.0, None
    for slot, value in enumerate(leaves):
        if value == 0:
            continue
        running += value
        answer = slot
        if prefix < running:
            break
    return answer


@dataclass(eq=False)
class SlowRow:
    id: int
    slot: int
    priority: float
    computed: bool
    predecessor: "SlowRow | None"


class SlowPrioritizedReplay:
    """The rules of App. E.2, one row at a time."""

    def __init__(
        self,
        capacity,
        seed=0,
        eviction="fifo",
        discard_fraction=0.0,
        alpha=0.6,
        priority_epsilon=1e-10,
        floor_divisor=10.0,
        raise_predecessor=True,
        scheme="floor",
        initial_priority=100.0,
    ):
        self.capacity, self.rng = capacity, np.random.default_rng(seed)
        self.eviction, self.discard_fraction = eviction, discard_fraction
        self.alpha, self.epsilon, self.divisor = alpha, priority_epsilon, floor_divisor
        self.raise_predecessor, self.scheme, self.initial = raise_predecessor, scheme, initial_priority
        self.rows: list[SlowRow] = []
        self.stored = 0
        self.last: dict[int, SlowRow | None] = {}

    def add(self, transitions):
        count = len(transitions.action)
        kept = [True] * count
        if self.discard_fraction > 0:
            kept = [bool(u >= self.discard_fraction) for u in self.rng.random(count)]
        new_priority = max((row.priority for row in self.rows if row.computed), default=self.initial)
        free = self.capacity - len(self.rows)
        evictions = []
        if self.eviction == "random":
            evictions = self.rng.integers(self.capacity, size=max(0, sum(kept) - free)).tolist()
        for n in range(count):
            stream = int(transitions.stream[n])
            if not kept[n]:
                self.last[stream] = None
                continue
            if len(self.rows) < self.capacity:
                slot = len(self.rows)
                self.rows.append(None)  # type: ignore[arg-type]
            else:
                slot = self.stored % self.capacity if self.eviction == "fifo" else evictions.pop(0)
            before = None if transitions.first[n] else self.last.get(stream)
            row = SlowRow(int(transitions.action[n]), slot, new_priority, False, before)
            self.rows[slot] = self.last[stream] = row
            self.stored += 1

    def mean(self):
        return sum(row.priority for row in self.rows) / len(self.rows)

    def sample(self, batch_size, beta):
        leaves = [row.priority for row in self.rows]
        width = sum(leaves) / batch_size
        draws = self.rng.random(batch_size)
        slots = [slow_find(leaves, (i + draws[i]) * width) for i in range(batch_size)]
        if self.scheme == "original":
            weights = [(self.epsilon**self.alpha / leaves[slot]) ** beta for slot in slots]
        else:
            weights = [min((self.mean() / leaves[slot]) ** beta, 2 * self.divisor) for slot in slots]
        return slots, weights

    def update_priorities(self, slots, td_errors):
        floor = self.mean() / self.divisor if self.scheme == "floor" else 0.0
        for slot, delta in zip(slots, td_errors, strict=True):
            self.rows[slot].priority = max((delta + self.epsilon) ** self.alpha, floor)
            self.rows[slot].computed = True
        if not self.raise_predecessor:
            return
        for slot, delta in zip(slots, td_errors, strict=True):
            before = self.rows[slot].predecessor
            if before is not None and self.rows[before.slot] is before:
                before.priority = max(before.priority, (delta / 2 + self.epsilon) ** self.alpha)


def sample_and_update_both(fast, slow, chooser, count, beta):
    """One batch from each, which must be the same, and new priorities for both."""
    batch = fast.sample(count, beta=beta)
    slots, weights = slow.sample(count, beta=beta)
    assert batch.slots.tolist() == slots
    np.testing.assert_allclose(batch.weight, weights, rtol=1e-6)
    td_errors = chooser.lognormal(sigma=3, size=count) * (chooser.random(count) < 0.9)
    fast.update_priorities(batch.slots, td_errors)
    slow.update_priorities(slots, td_errors)
