"""Agents on their way into run folders: which folder is whose, and what is written there."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from cdqn.config import Config
from cdqn.errors import CheckpointError
from cdqn.storage.checkpoint import State, newest_step, save_checkpoint
from cdqn.storage.files import write_text, writing
from cdqn.training.events import Row
from cdqn.training.run_config import read_data_name, read_run_config, write_run_config
from cdqn.training.trainer import Trainer


class Saving:
    """The part of an agent that writes it."""

    env_id: str | None
    config: Config
    data: str | None
    trainer: Trainer
    history: list[Row]

    def save(self, path: str | Path) -> Path:
        """Write a run folder from which `load` resumes exactly here. An older save of this agent is replaced."""
        run = Path(path)
        with writing(run):
            taken = run.exists() and any(run.iterdir())
        if taken:
            self.require_own(run)
        self.write_to(run)
        return run

    def require_own(self, run: Path) -> None:
        """Refuse a run folder of another agent."""
        env_id, config = read_run_config(run)
        data = read_data_name(run)
        same: dict[str, Any] = (
            {"steps": self.config.steps} if newest_step(run) == 0 else {}
        )  # the budget of the first `learn`
        if env_id is None:
            same["num_envs"] = self.config.num_envs  # older folders have the setting's default here
        if (env_id, data, dataclasses.replace(config, **same)) != (self.env_id, self.data, self.config):
            raise CheckpointError(f"{run} holds another run: choose another folder, or remove it first")

    def write_to(self, run: Path) -> int:
        """Make a run folder of this agent as it is now; returns the length of its metrics file."""
        lines = "".join(json.dumps(row) + "\n" for row in self.history)
        with writing(run):
            write_run_config(run, self)
            write_text(run / "metrics.jsonl", lines)
        self.save_checkpoint(run, len(lines.encode()))
        return len(lines.encode())

    def save_checkpoint(
        self, run: Path, metrics_bytes: int, evaluation_pending: bool = False, **beside: State | None
    ) -> None:
        """Add a checkpoint to a run folder whose metrics file is `metrics_bytes` long."""
        state = {"metrics_bytes": metrics_bytes, "trainer": self.trainer.state_dict(), "candidates": None, **beside}
        save_checkpoint(run, self.trainer.steps, state | {"evaluation_pending": evaluation_pending})
