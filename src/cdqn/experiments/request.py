"""How a figure is asked for: the same for all of them."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cdqn.algorithms import ALGORITHMS, OF_THE_PAPER
from cdqn.errors import ConfigError
from cdqn.runs.workers.local import LocalPool
from cdqn.runs.workers.tasks import Pool
from cdqn.storage.plain_values import COUNT, require_number

SCALES = ("smoke", "laptop", "paper")
"""Does it run; shorter than the paper's; as published."""
OnProgress = Callable[[int, int], None]
"""Called with what is done and with what there is to do."""


@dataclass(frozen=True)
class Request:
    """Which scale of an experiment, and how it is to be run."""

    scale: str = "paper"
    seed: int = 0
    pool: Pool = field(default_factory=LocalPool)
    """Where runs are done, and how many at a time."""
    out: Path | None = None
    """Where a long experiment keeps what it needs to go on."""
    runs: int | None = None
    """Independent runs of each setting; unset: as many as the scale has. They are its first ones."""
    on_progress: OnProgress | None = None
    algorithms: tuple[str, ...] = OF_THE_PAPER
    """What is trained, where that is open: fig. 8."""

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise ConfigError(f"there is no scale {self.scale!r}: choose from {', '.join(SCALES)}")
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"seed is {self.seed}: it must be a whole number from 0 on, below 2⁶³")
        require_number("runs", self.runs, COUNT)
        for name in self.algorithms:
            if name not in ALGORITHMS:
                raise ConfigError(f"there is no algorithm {name!r}: choose from {', '.join(ALGORITHMS)}")

    @property
    def threads(self) -> int:
        """For what takes seconds, and is done in this process."""
        return min(self.pool.jobs, os.cpu_count() or 1)

    def about(self, runs: int) -> str:
        """For the caption: runs, seed and scale."""
        return f"mean of {runs} run{'s' if runs > 1 else ''}, seed {self.seed}, scale {self.scale}"
