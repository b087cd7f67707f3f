"""Policies of a run that were worth keeping, each in a file of its own.

    RUN/candidates/step-000050000.safetensors    for the final test (`cdqn.runs.candidates`)
    RUN/best/step-000040000.safetensors          of the best evaluation (`cdqn.runs.best`)

Which of them count is part of each checkpoint, and files that it has no more use for are deleted after it: whatever
the two newest checkpoints count on is there, at whatever moment a run is killed.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from cdqn.storage.checkpoint import write_policy
from cdqn.storage.files import writing


class PolicyFiles:
    """The files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._saved: set[Path] = set()
        """Those that the last checkpoint counts on."""

    def path(self, step: int) -> Path:
        """The file with the policy of that step."""
        return self.folder / f"step-{step:09d}.safetensors"

    def add(self, step: int, policy: Mapping[str, NDArray[Any]]) -> None:
        """Write the policy of a step."""
        with writing(self.folder):
            self.folder.mkdir(exist_ok=True)
            write_policy(self.path(step), policy)

    def count_on(self, steps: Iterable[int]) -> None:
        """Those of the checkpoint that was loaded."""
        self._saved = set(map(self.path, steps))

    def prune(self, steps: Iterable[int]) -> None:
        """Delete all files but those of these steps, and of the checkpoint before; only after a checkpoint.

        What a killed run left behind goes as well.
        """
        now = set(map(self.path, steps))
        wanted, self._saved = now | self._saved, now
        with writing(self.folder):
            for file in (*self.folder.glob("step-*.safetensors"), *self.folder.glob(".step-*.writing")):
                if file not in wanted:
                    file.unlink()
