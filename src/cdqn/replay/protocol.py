"""What the trainer asks of a replay memory: one of your own has these methods."""

from typing import Any, Protocol

from cdqn.replay.transitions import Array, Batch, Ints, Transitions


class Replay(Protocol):
    """A memory of transitions. It is made by `YourClass(spec, config, rng)` and takes its random numbers from `rng`."""

    def __len__(self) -> int:
        """Transitions that can be drawn."""

    def add(self, transitions: Transitions) -> None:
        """Store rows, in their order."""

    def sample(self, batch_size: int, beta: float) -> Batch:
        """Rows, with replacement or without; `beta` is the exponent of the importance weights at this step."""

    def update_priorities(self, slots: Ints, td_error_abs: Array) -> None:
        """|δ| of the rows that `sample` gave under these slots. Raises `NonFiniteError` for NaN and infinity."""

    def state_dict(self) -> dict[str, Any]:
        """All that changes, as numbers, strings, arrays and dicts of them."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume exactly where `state_dict` was taken."""
