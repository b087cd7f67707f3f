"""`cdqn sweep`: a search for settings.

The fields of a class are its flags, `run` does the work and returns the exit code. What a command needs is imported
where it runs: the others need not wait for it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from tyro.conf import Positional

from cdqn.cli.common import INTERRUPTED, ConfigFlags, Settings, Where, WhereFlags, console, default_folder, errors
from cdqn.cli.console import RunsDisplay
from cdqn.report.terminal import say


@dataclass
class Sweep:
    """Search for settings: trains many, gives up the bad ones early; leaves a table, a picture and a line to paste."""

    env_id: Positional[str]
    """A Gymnasium id such as CartPole-v1."""
    space: Path | None = None
    """A TOML file: learning_rate = {low = 1e-4, high = 1e-2, log = true}, n_step = [1, 3, 5], … Default: the usual."""
    trials: int = 40
    """Sets of settings to try; the first is the defaults."""
    seeds: int = 1
    """Runs of each, with seeds from --seed upwards (default 1000: report others, which were not used to choose)."""
    prune: bool = True
    """Give up a trial whose first run is below the median of the others at an evaluation."""
    preset: str | None = None
    """A named set of settings (`cdqn list presets`); flags override it, and the space overrides both."""
    out: Path | None = None
    """The folder of the sweep; default runs/sweep-ENV. One that exists is continued."""
    where: WhereFlags = field(default_factory=Where)
    config: ConfigFlags = field(default_factory=Settings)

    given: ClassVar[dict[str, Any]] = {}
    """Settings named on the command line; they hold for every trial."""
    defaults: ClassVar[dict[str, Any]] = {"seed": 1000}
    """Where the settings of a sweep begin elsewhere than those of a run."""

    def run(self) -> int:
        from cdqn.runs.sweep.plan import open_sweep, plan_sweep
        from cdqn.runs.sweep.space import space_toml

        plan = plan_sweep(
            self.env_id,
            self.space,
            self.given.get("algorithm", "cdqn"),
            self.preset,
            self.given,
            self.trials,
            self.seeds,
            self.prune,
        )
        pool = self.where.pool()
        folder = self.out or default_folder(f"sweep-{self.env_id}")
        open_sweep(folder, plan)
        if self.space is None:
            say(console, f"no --space: the usual one, {folder / 'space.toml'}, of which a copy can be edited")
            for line in space_toml(plan.space).splitlines():
                say(console, f"  {line}")
        return finish_sweep(folder, plan, pool)


def resume_sweep(folder: Path, pool: Any, allow_import: Iterable[str]) -> int:
    """`cdqn resume` of a sweep."""
    from cdqn.integrations.optuna import require_optuna
    from cdqn.runs.sweep.plan import read_sweep

    require_optuna()
    return finish_sweep(folder, read_sweep(folder, allow_import), pool)


def finish_sweep(folder: Path, plan: Any, pool: Any) -> int:
    """Train what is left, and say what came out."""
    from cdqn.report import sweep as report
    from cdqn.runs.sweep.search import run_sweep
    from cdqn.storage.files import writing

    try:
        with SweepDisplay(plan) as display:
            trials = run_sweep(folder, plan, pool, display.show, display.tell_trial)
    except KeyboardInterrupt:
        say(console, f"stopped: `cdqn resume {folder}` resumes it")
        return INTERRUPTED
    results, settings = results_of(plan, trials), settings_of(plan)
    if report.best_result(results):
        console.print(report.render(results, settings))
        _tell_best(plan, trials)
    title = f"{plan.env_id} · {plan.base.algorithm_class.label} · {plan.base.steps:,} steps"
    with writing(folder):
        report.write_csv(folder / "sweep.csv", results, settings)
        report.sweep_picture(results, settings, title, folder / "sweep.png")
    for name in ("sweep.png", "sweep.csv"):
        say(console, f"wrote {folder / name}")
    return _tell_failed(folder, plan, trials)


def results_of(plan: Any, trials: Iterable[Any]) -> list[Any]:
    """The trials as the report shows them."""
    from cdqn.report.sweep import TrialResult

    return [
        TrialResult(
            trial.number,
            trial.state,
            trial.value,
            trial.value if trial.value is not None else next(reversed(trial.curve), None),
            trial.steps,
            plan.settings_of(trial),
        )
        for trial in trials
    ]


def settings_of(plan: Any) -> list[Any]:
    """The settings that are searched, as the report shows them."""
    from cdqn.report.sweep import Setting

    return [
        Setting(name, getattr(dimension, "values", None), getattr(dimension, "log", False))
        for name, dimension in plan.space.items()
    ]


class SweepDisplay(RunsDisplay):
    """One bar for each run under way, and one line for each trial that has ended."""

    def __init__(self, plan: Any) -> None:
        names = [f"trial-{number:03d}/seed{seed}" for number in range(plan.trials) for seed in plan.seed_list()]
        super().__init__(dict.fromkeys(names, plan.base.steps), console)
        self._plan = plan

    def show(self, name: str, row: Any) -> None:
        """What a run says; its evaluations and its end are the business of its trial."""
        if row["kind"] == "progress" or (row["kind"] == "warning" and row["topic"] != "pruned"):
            self(name, row)
            if row["step"] >= self._plan.base.steps:
                self.hide(name)

    def tell_trial(self, trial: Any, trials: Sequence[Any]) -> None:
        from cdqn.report.tables import format_number
        from cdqn.runs.sweep.trials import best_of

        for seed in self._plan.seed_list():
            self.hide(trial.run_name(seed))
        done = f"({sum(trial.state != 'running' for trial in trials)} of {self._plan.trials} trials done)"
        if trial.state == "failed":
            self._warn(f"{trial.name}: failed: {trial.problem} {done}")
        elif trial.state == "pruned":
            reached = format_number(trial.curve[-1])
            say(console, f"{trial.name}: pruned at step {trial.steps:,}, return {reached} by then {done}")
        else:
            best = best_of(trials) or trial
            value = f"return {format_number(trial.value)}, best so far {format_number(best.value)}"
            say(console, f"{trial.name}: {value} {done}")


def _tell_best(plan: Any, trials: list[Any]) -> None:
    """The best trial beside the defaults, and the lines to paste."""
    from cdqn.report.tables import format_number
    from cdqn.runs.sweep.paste import python_line, shell_line
    from cdqn.runs.sweep.trials import best_of

    best: Any = best_of(trials)
    text = f"best: trial {best.number}, return {format_number(best.value)}"
    if best.number == 0:
        text += ", the defaults: nothing that was tried is better"
    elif trials[0].value is not None:
        gain = f"{format_number(best.value - trials[0].value)} more than the defaults, {format_number(trials[0].value)}"
        text += f", {gain}; the best of {len(trials)} is partly luck"
    say(console, text)
    seeds = plan.seed_list()
    used = f"seed {seeds[0]} was" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]} were"
    say(console, f"return: mean over the last half of the greedy evaluations; {used} used to choose, so report others:")
    say(console, f"  {shell_line(plan, best)}", "bold")
    say(console, f"  {python_line(plan, best)}")


def _tell_failed(folder: Path, plan: Any, trials: list[Any]) -> int:
    """What is not there, and why; the exit code."""
    if len(trials) < plan.trials:
        say(console, f"there are {len(trials)} different trials in this space, and all were tried")
    failed = [trial for trial in trials if trial.state == "failed"]
    for trial in failed:
        say(errors, f"cdqn: {trial.name} failed: {trial.problem}", "red")
    if failed:
        say(errors, f"cdqn: `cdqn resume {folder}` tries them again", "red")
    return 1 if failed else 0
