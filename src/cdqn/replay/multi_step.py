"""Returns over n steps: transitions of one step in, transitions of n steps out, before they are stored.

    (s_t, a_t, r_t + γ r_{t+1} + … + γ^(n−1) r_{t+n−1}, s_{t+n})        and the learner discounts Q(s_{t+n}) by γⁿ

A reward then travels n states back in one update, and Bellman errors are those of a discount γⁿ: for the residual
part of C-DQN's loss, whose condition number grows as 1/(1−γ)² (Sec. 3.2), that is a far easier problem. The price is
that the actions a_{t+1} … were chosen by older policies, ε included.

A terminal state ends the sum early: there is nothing to bootstrap from. A truncated episode has no s_{t+n} for its last
n−1 transitions: they are not stored, though their rewards are part of the sums before them.
"""

from typing import Any, NamedTuple

import numpy as np

from cdqn.replay.transitions import Array, Transitions


class _Held(NamedTuple):
    """What must be remembered of a transition until its return is complete: for each stream, its last n of them."""

    observation: Array
    action: Array
    reward: Array
    first: Array


class MultiStep:
    """Holds back the transitions of each stream until n rewards, or the end of the episode, have been seen."""

    def __init__(self, steps: int, discount: float) -> None:
        self._steps = steps
        self._discount_N = discount ** np.arange(steps)
        self._ring: _Held | None = None
        self._count = np.zeros(0, np.int64)
        """Of each stream: transitions held back."""
        self._next = np.zeros(0, np.int64)
        """Of each stream: where the next one is written."""

    def extend(self, transitions: Transitions) -> Transitions:
        """Take in the transitions of one step; give those that are now complete, oldest first in each stream."""
        if self._steps == 1 or not len(transitions.action):
            return transitions
        if (np.diff(transitions.stream) <= 0).any():  # several of one stream: one after the other
            rows = [Transitions(*(column[i : i + 1] for column in transitions)) for i in range(len(transitions.action))]
            return _concatenated([self.extend(row) for row in rows])
        self._enter(_Held(*(getattr(transitions, name) for name in _Held._fields)), transitions.stream)
        if transitions.terminated.any():
            return self._ended(transitions)
        full = self._count[transitions.stream] == self._steps
        return self._joined(transitions, full, self._next[transitions.stream[full]], self._steps)

    def state_dict(self) -> dict[str, Array]:
        """The transitions held back, field by field; streams one after another, oldest first."""
        if self._ring is None or not self._count.any():
            return {}
        stream = np.repeat(np.arange(len(self._count)), self._count)
        age = np.concatenate([np.arange(count, 0, -1) for count in self._count])
        place = (self._next[stream] - age) % self._steps
        return {"stream": stream, **{name: ring[stream, place] for name, ring in self._ring._asdict().items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume exactly where `state_dict` was taken."""
        self._ring = None
        self._count, self._next = np.zeros(0, np.int64), np.zeros(0, np.int64)
        if not state:
            return
        rows = [np.asarray(state[name]) for name in _Held._fields]
        for i, stream in enumerate(np.asarray(state["stream"])):
            self._enter(_Held(*(column[i : i + 1] for column in rows)), np.array([stream]), begins=False)

    def _enter(self, rows: _Held, stream: Array, begins: bool = True) -> None:
        """Write one row of each of these streams; a first one forgets what is still held: it was cut off."""
        self._reserve(rows, int(stream.max()) + 1)
        assert self._ring is not None
        if begins:
            self._count[stream[rows.first]] = 0
        place = self._next[stream]
        for ring, column in zip(self._ring, rows, strict=True):
            ring[stream, place] = column
        self._next[stream] = (place + 1) % self._steps
        self._count[stream] += 1

    def _reserve(self, like: _Held, streams: int) -> None:
        """Room for that many streams."""
        missing = streams - len(self._count)
        if missing <= 0:
            return
        more = _Held(*(np.zeros((missing, self._steps, *column.shape[1:]), column.dtype) for column in like))
        ring = self._ring
        self._ring = more if ring is None else _Held(*map(np.concatenate, zip(ring, more, strict=True)))
        self._count, self._next = (np.pad(column, (0, missing)) for column in (self._count, self._next))

    def _joined(self, now: Transitions, chosen: Array, oldest: Array, length: int) -> Transitions:
        """For the chosen rows of this step: one transition from the state `length` steps back to the one after it."""
        assert self._ring is not None
        stream = now.stream[chosen]
        places = (oldest[:, None] + np.arange(length)) % self._steps
        total = self._ring.reward[stream[:, None], places].astype(np.float64) @ self._discount_N[:length]
        self._count[stream] = length - 1
        return Transitions(
            observation=self._ring.observation[stream, oldest],
            action=self._ring.action[stream, oldest],
            reward=total.astype(now.reward.dtype),
            next_observation=now.next_observation[chosen],
            terminated=now.terminated[chosen],
            stream=stream,
            first=self._ring.first[stream, oldest],
        )

    def _ended(self, now: Transitions) -> Transitions:
        """As `extend`, where an episode has terminated: all that its stream holds is complete."""
        parts = []
        for i, stream in enumerate(now.stream.tolist()):
            count = int(self._count[stream])
            lengths = range(count, 0, -1) if now.terminated[i] else range(count, self._steps - 1, -1)
            for length in lengths:
                oldest = np.array([(self._next[stream] - length) % self._steps])
                parts.append(self._joined(now, np.array([i]), oldest, length))
        return _concatenated(parts)


def _concatenated(parts: list[Transitions]) -> Transitions:
    return Transitions(*map(np.concatenate, zip(*parts, strict=True)))


def joined_rows(rows: Transitions, ended: Array, steps: int, discount: float) -> Transitions:
    """What `MultiStep` makes of whole episodes, all at once: rows of one stream, in order, `ended` by the last of each.

    An episode that is still open at the last row counts as cut off there.
    """
    count = len(rows.action)
    row_N = np.arange(count)
    ends = np.append(np.flatnonzero(ended), count - 1)
    last_N = ends[np.searchsorted(ends, row_N)]
    length_N = np.minimum(last_N - row_N + 1, steps)
    total_N = np.zeros(count)
    for step in range(steps):
        within = length_N > step
        total_N[within] += discount**step * rows.reward[row_N[within] + step].astype(np.float64)
    to_N = row_N + length_N - 1
    kept = (length_N == steps) | rows.terminated[to_N]
    joined = Transitions(
        rows.observation,
        rows.action,
        total_N.astype(rows.reward.dtype),
        rows.next_observation[to_N],
        rows.terminated[to_N],
        rows.stream,
        rows.first,
    )
    return Transitions(*(column[kept] for column in joined))
