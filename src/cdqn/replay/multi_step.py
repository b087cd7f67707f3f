"""Returns over n steps: transitions of one step in, transitions of n steps out, before they are stored.

    (s_t, a_t, r_t + γ r_{t+1} + … + γ^(n−1) r_{t+n−1}, s_{t+n})        and the learner discounts Q(s_{t+n}) by γⁿ

A reward then travels n states back in one update, and Bellman errors are those of a discount γⁿ: for the residual
part of C-DQN's loss, whose condition number grows as 1/(1−γ)² (Sec. 3.2), that is a far easier problem. The price is
that the actions a_{t+1} … were chosen by older policies, ε included.

A terminal state ends the sum early: there is nothing to bootstrap from. A truncated episode has no s_{t+n} for its last
n−1 transitions: they are not stored, though their rewards are part of the sums before them.
"""

from typing import Any

import numpy as np

from cdqn.replay.transitions import Array, Transitions


class MultiStep:
    """Holds back the transitions of each stream until n rewards, or the end of the episode, have been seen."""

    def __init__(self, steps: int, discount: float) -> None:
        self._steps = steps
        self._discount = discount
        self._open: dict[int, list[Transitions]] = {}

    def extend(self, transitions: Transitions) -> Transitions:
        """Take in the transitions of one step; give those that are now complete, oldest first in each stream."""
        if self._steps == 1:
            return transitions
        complete = [row for i in range(len(transitions.action)) for row in self._enter(_row(transitions, i))]
        return _stacked(complete, like=transitions)

    def state_dict(self) -> dict[str, Array]:
        """The transitions held back, field by field; streams one after another, in an order that has no history."""
        rows = [row for _, held in sorted(self._open.items()) for row in held]
        if not rows:
            return {}
        return dict(zip(Transitions._fields, _stacked(rows, like=rows[0]), strict=True))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on exactly where `state_dict` was taken."""
        self._open = {}
        if not state:
            return
        saved = Transitions(**{name: np.asarray(state[name]) for name in Transitions._fields})
        for i in range(len(saved.action)):
            row = _row(saved, i)
            self._open.setdefault(int(row.stream), []).append(row)

    def _enter(self, row: Transitions) -> list[Transitions]:
        """The transitions that this one completes."""
        held = self._open.setdefault(int(row.stream), [])
        if row.first:  # what is still held was cut off
            held.clear()
        held.append(row)
        if row.terminated:
            complete = [self._joined(held[i:]) for i in range(len(held))]
            held.clear()
            return complete
        if len(held) < self._steps:
            return []
        complete = [self._joined(held)]
        held.pop(0)
        return complete

    def _joined(self, rows: list[Transitions]) -> Transitions:
        """One transition from the first state of these to the last."""
        rewards = np.array([row.reward for row in rows], np.float64)
        total = np.asarray(rewards @ self._discount ** np.arange(len(rows)), np.float32)
        last = rows[-1]
        return rows[0]._replace(reward=total, next_observation=last.next_observation, terminated=last.terminated)


def _row(transitions: Transitions, i: int) -> Transitions:
    """Row i, each field without the first axis."""
    return Transitions(*(column[i] for column in transitions))


def _stacked(rows: list[Transitions], like: Transitions) -> Transitions:
    """Rows as columns again, none of them included."""
    if not rows:
        return Transitions(*(column[:0] for column in like))
    return Transitions(*(np.stack(column) for column in zip(*rows, strict=True)))
