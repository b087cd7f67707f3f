"""`cdqn offline`: an agent from fixed data."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from tyro.conf import Positional

from cdqn.cli.common import (
    AllowImport,
    ConfigFlags,
    Settings,
    callbacks_for,
    conclude,
    console,
    default_folder,
    errors,
)
from cdqn.cli.train import announce
from cdqn.report.terminal import say


@dataclass
class Offline:
    """Train an agent on fixed data alone; leaves a run folder, which resumes without the data.

    A step is an update here, in the periods of the settings too. Settings of exploration, of the warm-up and of what
    the memory keeps do not act, and are refused.
    """

    dataset: Positional[str]
    """An .npz file, the folder of a run (its replay memory), or the name of a data set of Minari's on this machine."""
    env: str | None = None
    """The environment of the final evaluation. Default: the one that the data is from, where it is known."""
    updates: int | None = None
    """How long to train, in updates. Default: as many as the preset has steps."""
    epochs: float | None = None
    """How long to train, in passes: so many times as many samples as the data has rows."""
    preset: str | None = None
    """A named set of settings (`cdqn list presets`); flags override it. Default: that of the observations' kind."""
    until: int | None = None
    """Stop at this update, as if interrupted there; `cdqn resume` continues."""
    out: Path | None = None
    """The run folder; default runs/DATASET-ALGORITHM-seedSEED."""
    overwrite: bool = False
    """Delete the run that is in the folder, if there is one, and begin anew."""
    allow_import: AllowImport = ()
    """A module of code that a run named as data set names, module:Name, which may be imported; several times."""
    config: ConfigFlags = field(default_factory=Settings)

    given: ClassVar[dict[str, Any]] = {}
    """Settings named on the command line."""

    def run(self) -> int:
        from cdqn.callbacks import require_periods
        from cdqn.errors import ConfigError
        from cdqn.runs.fitting import NOT_EVALUATED, prepare
        from cdqn.runs.folders import remove_run, require_new
        from cdqn.runs.runner import PERIODS, train_run

        settings = dict(self.given)
        algorithm = settings.pop("algorithm", "cdqn")
        name = Path(self.dataset).stem if self.dataset.endswith(".npz") else Path(self.dataset).as_posix().strip("./")
        run = self.out or default_folder(f"{name}-{algorithm}-seed{self.config.seed}")
        if not self.overwrite:
            require_new(run, ", --overwrite replaces it")
        made = prepare(
            self.dataset, self.env, self.updates, self.epochs, algorithm, self.preset, settings, self.allow_import
        )
        until = made.updates if self.until is None else self.until
        if not 1 <= until <= made.updates:
            raise ConfigError(f"--until {until} is outside the budget of {made.updates} updates: change --updates")
        require_periods(made.agent.config, *PERIODS)
        if self.overwrite:
            remove_run(run)
        say(console, f"{made.rows:,} rows of {made.agent.data}, {made.updates:,} updates")
        announce(made.agent, made.preset)
        for notice in (*made.notices, *([] if made.agent.has_environment else [NOT_EVALUATED])):
            say(errors, f"cdqn: {notice}", "yellow")
        with ExitStack() as stack:
            outcome = train_run(made.agent, run, callbacks_for(run, made.agent, stack, until), until)
        return conclude(run, outcome)
