"""`cdqn train` and `cdqn resume`.

The fields of a class are its flags, `run` does the work and returns the exit code. What a command needs is imported
where it runs: the others need not wait for it.
"""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from tyro.conf import Positional

from cdqn.cli.common import (
    AllowImport,
    ConfigFlags,
    Env,
    EnvFlags,
    Settings,
    Where,
    WhereFlags,
    callbacks_for,
    conclude,
    console,
    default_folder,
)
from cdqn.cli.compare import finish_comparison
from cdqn.cli.several import finish_suite
from cdqn.cli.sweep import resume_sweep
from cdqn.errors import ConfigError
from cdqn.report.terminal import say


@dataclass
class Train:
    """Train an agent; leaves a run folder with its metrics, a checkpoint, a final evaluation and a picture."""

    env_id: Positional[str]
    """A Gymnasium id such as CartPole-v1, an Atari game such as Pong, or module:id for one of your own."""
    preset: str | None = None
    """A named set of settings (`cdqn list presets`); flags override it. Default: that of the environment's kind."""
    until: int | None = None
    """Stop at this step of the budget, as if interrupted there; `cdqn resume` continues."""
    out: Path | None = None
    """The run folder; default runs/ENV-ALGORITHM-seedSEED."""
    overwrite: bool = False
    """Delete the run that is in the folder, if there is one, and begin anew."""
    config: ConfigFlags = field(default_factory=Settings)

    given: ClassVar[dict[str, Any]] = {}
    """Settings named on the command line."""

    def run(self) -> int:
        from cdqn.agent import Agent
        from cdqn.runs.folders import remove_run, require_new
        from cdqn.runs.runner import require_learning, train_run
        from cdqn.training.build import require_acting

        require_learning(self.config)
        until = self.config.steps if self.until is None else self.until
        if not 1 <= until <= self.config.steps:
            raise ConfigError(f"--until {until} is outside the budget of {self.config.steps} steps: change --steps")
        run = self.out or default_folder(f"{self.env_id}-{self.config.algorithm}-seed{self.config.seed}")
        if not self.overwrite:
            require_new(run, ", --overwrite replaces it")
        agent = Agent.from_config(self.env_id, self.config, self.preset)
        require_acting(self.given, agent.spec, agent.config)
        if self.overwrite:
            remove_run(run)
        announce(agent, self.preset)
        with ExitStack() as stack:
            outcome = train_run(agent, run, callbacks_for(run, agent, stack, until), until)
        return conclude(run, outcome)


@dataclass
class Resume:
    """Resume a run, comparison, suite or sweep exactly where it stopped."""

    run_folder: Positional[Path]
    """A folder made by `cdqn train`, `cdqn compare`, `cdqn suite`, `cdqn sweep` or Agent.save."""
    steps: int | None = None
    """Train up to this step instead of the run's own budget."""
    schedules: Literal["continue", "restart"] | None = None
    """ε, β and the step size go on, and stay at their last values beyond the budget; or run anew, from here."""
    learning_rate: float | None = None
    """Another step size from here on: the one at the beginning of its schedule."""
    env: EnvFlags = field(default_factory=Env)
    where: WhereFlags = field(default_factory=Where)
    allow_import: AllowImport = ()
    """A module of code that the run names, module:Name, which may be imported; can be given several times."""

    def run(self) -> int:
        from cdqn.runs import suite
        from cdqn.runs.comparison import is_comparison
        from cdqn.runs.runner import resume_run
        from cdqn.runs.sweep.plan import is_sweep

        of_several = is_comparison(self.run_folder) or suite.is_suite(self.run_folder)
        if of_several and (self.steps, self.schedules, self.learning_rate, self.env) != (None, None, None, Env()):
            raise ConfigError(
                f"{self.run_folder} holds several runs, whose settings stay: --steps, --schedules, --learning-rate and "
                "--env are for a single run, a folder in it"
            )
        if is_comparison(self.run_folder):
            return finish_comparison(self.run_folder, self.where.pool(), self.allow_import)
        if suite.is_suite(self.run_folder):
            plan = suite.planned_runs(self.run_folder, self.allow_import)
            return finish_suite(self.run_folder, plan, self.where.pool())
        if is_sweep(self.run_folder):
            return resume_sweep(self.run_folder, self.where.pool(), self.allow_import)
        with ExitStack() as stack:
            outcome = resume_run(
                self.run_folder,
                self.steps,
                callbacks=lambda agent, until: callbacks_for(self.run_folder, agent, stack, until),
                allow_import=self.allow_import,
                schedules=self.schedules,
                learning_rate=self.learning_rate,
                env=self.env.env,
                making=self.env.making(),
            )
        return conclude(self.run_folder, outcome)


def announce(agent: Any, preset: str | None) -> None:
    """What a user should know before a run: how observations are understood, the preset, and the memory of frames."""
    spec, config = agent.spec, agent.config
    shape = "×".join(map(str, spec.observation_shape))
    seen = {"vector": f"vectors of {shape}", "discrete": f"one-hot codes of {shape}", "board": f"boards of {shape}"}
    parts = [f"{seen.get(spec.kind, f'images of {shape}')}, {spec.num_actions} actions", f"preset {preset}"]
    if spec.kind == "atari":
        parts.append(f"sticky actions {config.sticky_actions:g}")
    if spec.has_frames:
        parts.append(f"replay memory: {memory_sentence(spec, config)}")
    say(console, " · ".join(parts))


def memory_sentence(spec: Any, config: Any) -> str:
    """What the memory takes at the end of the run, and once it is full."""
    from cdqn.training.build import memory_estimate, readable_bytes, rows_at_end

    full = readable_bytes(memory_estimate(spec, config, config.memory_size))
    if rows_at_end(config) >= config.memory_size:
        return f"about {full} once it is full, with {config.memory_size:,} transitions"
    at_end = readable_bytes(memory_estimate(spec, config))
    return f"about {at_end} at the end of the run; a full one, {config.memory_size:,} transitions, takes {full}"
