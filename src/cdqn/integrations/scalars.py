"""Events as numbers: what trackers of experiments plot."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cdqn.training.events import Event


def scalars(event: "Event") -> dict[str, float]:
    """Each number of an event, as kind/quantity."""
    row = event.row()
    kind = row.pop("kind")
    numbers = {name: value for name, value in row.items() if name != "step" and isinstance(value, int | float)}
    return {f"{kind}/{name}": float(value) for name, value in numbers.items()}
