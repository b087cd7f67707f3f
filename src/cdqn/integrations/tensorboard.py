"""TensorBoard, where it is installed."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdqn.integrations.scalars import scalars

if TYPE_CHECKING:
    from cdqn.training.events import Event


class TensorBoard:
    """A callback: each number of an event becomes a scalar named kind/quantity."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard.writer import SummaryWriter

        self._make_writer = partial(SummaryWriter, str(folder))
        self._writer: Any = None  # made at the first row: a run that cannot begin leaves no folder

    def __call__(self, event: "Event", agent: Any) -> None:
        if self._writer is None:
            self._writer = self._make_writer()
        for name, value in scalars(event).items():
            self._writer.add_scalar(name, value, event.step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def tensorboard_if_installed(folder: Path) -> TensorBoard | None:
    """A writer, or None where the package is missing: nobody asked for it by name."""
    try:
        return TensorBoard(folder)
    except ImportError:
        return None
