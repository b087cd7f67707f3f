"""TensorBoard, where it is installed."""

import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdqn.integrations.scalars import scalars
from cdqn.storage.files import writing

if TYPE_CHECKING:
    from cdqn.training.events import Event


class TensorBoard:
    """A callback: each number of an event becomes a scalar named kind/quantity.

    Written where it is called, without a thread: a disk that is full is then said once, by the one who wrote.
    """

    def __init__(self, folder: Path) -> None:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._folder = folder
        self._open = RecordWriter
        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        self._writer: Any = None  # made at the first row: a run that cannot begin leaves no folder

    def __call__(self, event: "Event", agent: Any) -> None:
        numbers = scalars(event)
        values = [self._summary.Value(tag=name, simple_value=value) for name, value in numbers.items()]
        with writing(self._folder):
            if self._writer is None:
                self._begin()
            self._write(step=event.step, summary=self._summary(value=values))
            if "episode/return" not in numbers:  # of which there may be thousands a second
                self._writer.flush()

    def close(self) -> None:
        """What has not been written yet is, as far as the disk allows."""
        if self._writer is not None:
            with writing(self._folder):
                self._writer.close()

    def _begin(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}"
        self._writer = self._open((self._folder / name).open("wb"))
        self._write(file_version="brain.Event:2")

    def _write(self, **content: Any) -> None:
        self._writer.write(self._event(wall_time=time.time(), **content).SerializeToString())


def tensorboard_if_installed(folder: Path) -> TensorBoard | None:
    """A writer, or None where the package is missing: nobody asked for it by name."""
    try:
        return TensorBoard(folder)
    except ImportError:
        return None
