"""`cdqn compare` and `cdqn suite`: several runs in parallel processes.

The fields of a class are its flags, `run` does the work and returns the exit code. What a command needs is imported
where it runs: the others need not wait for it.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from tyro.conf import Positional

from cdqn.algorithms import ALGORITHMS, find_algorithm
from cdqn.cli.common import (
    INTERRUPTED,
    MOST_SEEDS,
    ConfigFlags,
    Settings,
    Where,
    WhereFlags,
    console,
    default_folder,
    errors,
    names,
)
from cdqn.config import Config
from cdqn.errors import CheckpointError, ConfigError
from cdqn.report.terminal import say
from cdqn.storage.named_code import import_pieces


@dataclass
class Compare:
    """Train several algorithms with several seeds, in parallel; leaves a table and a picture."""

    env_id: Positional[str]
    """A Gymnasium id such as CartPole-v1, an Atari game such as Pong, or module:id for one of your own."""
    algorithms: str = ",".join(ALGORITHMS)
    """Which ones, separated by commas; module:Class for one of your own."""
    seeds: int = 5
    """Runs of each algorithm, with seeds from --seed upwards."""
    preset: str | None = None
    """A named set of settings (`cdqn list presets`); flags override it. Default: that of the environment's kind."""
    same_settings: bool = False
    """Give all algorithms the settings of the first one, in place of each one's own defaults."""
    out: Path | None = None
    """The folder of the comparison; default runs/compare-ENV."""
    where: WhereFlags = field(default_factory=Where)
    config: ConfigFlags = field(default_factory=Settings)

    given: ClassVar[dict[str, Any]] = {}
    """Settings named on the command line; they hold for every algorithm on which they act."""

    def run(self) -> int:
        from cdqn.envs import module_of
        from cdqn.runs.comparison import create_comparison

        configs, pool = self.configs(), self.where.pool()
        folder = self.out or default_folder(f"compare-{self.env_id}")
        create_comparison(folder, self.env_id, configs, self.preset)
        return finish_comparison(folder, pool, [module_of(self.env_id) or ""])

    def configs(self) -> list[Config]:
        """One for each run: an algorithm's own defaults, or those of the first one, and what was given."""
        from cdqn.presets import make_config, without_idle
        from cdqn.runs.runner import require_learning

        algorithms = names(self.algorithms)
        for name in algorithms:
            import_pieces({"algorithm": name})
            find_algorithm(name)
        if self.seeds < 1 or len(set(algorithms)) < len(algorithms):
            raise ConfigError("compare needs at least one seed, and each algorithm once")
        if self.seeds > MOST_SEEDS:
            raise ConfigError(f"seeds is {self.seeds}: at most {MOST_SEEDS} runs of an algorithm are trained at a time")
        if "algorithm" in self.given:
            raise ConfigError("compare trains several algorithms: give --algorithms cdqn,dqn in place of --algorithm")
        settings = self.given
        if self.same_settings:
            first = make_config(algorithms[0], self.preset, **without_idle(algorithms[0], self.given))
            settings = {name: value for name, value in dataclasses.asdict(first).items() if name != "algorithm"}
        configs = []
        for name in algorithms:
            config = make_config(name, self.preset, **without_idle(name, settings))
            configs += [dataclasses.replace(config, seed=config.seed + i).resolved() for i in range(self.seeds)]
        for config in configs:
            require_learning(config)
        return configs


@dataclass
class Suite:
    """Train each algorithm with its own defaults on eleven tasks; leaves a table and a picture."""

    scale: Literal["smoke", "laptop"] = "laptop"
    """smoke: does it run (about a minute a seed); laptop: about 50 000 steps a task (hours on two cores)."""
    algorithms: str = ",".join(ALGORITHMS)
    """Which ones, separated by commas."""
    tasks: str | None = None
    """Which ones, separated by commas; default: all of them."""
    seeds: int = 5
    """Runs of each algorithm on each task, with seeds from --seed upwards."""
    seed: int = 0
    """The first seed."""
    out: Path = Path("runs/suite")
    """The folder of the suite. One that exists is continued."""
    where: WhereFlags = field(default_factory=Where)

    def run(self) -> int:
        from cdqn.runs.suite import open_suite, plan_suite
        from cdqn.tasks.suite import TASKS

        tasks = list(TASKS) if self.tasks is None else names(self.tasks)
        pool = self.where.pool()
        plan = plan_suite(self.scale, tasks, names(self.algorithms), self.seed, self.seeds)
        open_suite(self.out, self.scale, plan)
        return finish_suite(self.out, plan, pool)


def finish_comparison(folder: Path, pool: Any, allow_import: Iterable[str]) -> int:
    import numpy as np

    from cdqn.report import figures, tables
    from cdqn.report.runs import differing_settings, group_by_algorithm
    from cdqn.runs.comparison import planned_runs

    plan = planned_runs(folder, allow_import)
    outcomes = _run_all(folder, plan, pool, f"`cdqn resume {folder}` resumes it")
    if outcomes is None:
        return INTERRUPTED
    runs, problems = _readable_runs(folder, outcomes)
    if runs:
        rows = tables.comparison_table(runs, np.random.default_rng(0))
        console.print(tables.render(rows))
        if differences := differing_settings(group_by_algorithm(runs)):
            say(console, f"{differences} (--same-settings for equal ones)")
        tables.write_csv(folder / "comparison.csv", rows)
        tables.write_curves_csv(folder / "curves.csv", runs)
        figures.comparison(runs, folder / "comparison.png")
        _tell_written(folder, "comparison.png", "comparison.csv", "curves.csv")
    return _tell_missing(problems, f"`cdqn resume {folder}` tries again what is missing")


def finish_suite(folder: Path, plan: Any, pool: Any) -> int:
    import numpy as np

    from cdqn.report import suite
    from cdqn.storage.files import writing

    outcomes = _run_all(folder, plan, pool, f"`cdqn resume {folder}` resumes it")
    if outcomes is None:
        return INTERRUPTED
    runs = suite.read_suite(folder)
    if runs:
        results = suite.results_of(runs)
        console.print(suite.render(results, np.random.default_rng(0)))
        for line in suite.verdict(results, np.random.default_rng(0)):
            say(console, line)
        with writing(folder):
            suite.write_scores(folder / "suite.csv", results)
            suite.write_evaluations(folder / "evaluations.csv", runs)
            suite.suite_picture(runs, folder / "suite.png")
        _tell_written(folder, "suite.png", "suite.csv", "evaluations.csv")
    problems = {outcome.name: outcome.problem for outcome in outcomes if not outcome.finished}
    return _tell_missing(problems, f"`cdqn resume {folder}` tries again what is missing")


def _run_all(folder: Path, plan: Any, pool: Any, resume: str) -> Any:
    """The outcomes of all runs, shown while they last; None after an interruption."""
    from cdqn.cli.console import RunsDisplay
    from cdqn.runs.folders import locked
    from cdqn.runs.run_pool import run_all
    from cdqn.storage.checkpoint import newest_step

    totals = {name: run.config.steps for name, run in plan.items()}
    done = {name: min(newest_step(folder / name), steps) for name, steps in totals.items()}
    try:
        with locked(folder), RunsDisplay(totals, console, done) as display:
            return run_all(folder, plan, pool, display)
    except KeyboardInterrupt:
        say(console, f"stopped: {resume}")
        return None


def _tell_written(folder: Path, *names: str) -> None:
    for name in names:
        say(console, f"wrote {folder / name}")


def _tell_missing(problems: dict[str, Any], remedy: str) -> int:
    """What is not complete, and why; the exit code."""
    for name, problem in problems.items():
        say(errors, f"cdqn: {name} is not complete: {problem}", "red")
    if problems:
        say(errors, f"cdqn: {remedy}", "red")
    return 1 if problems else 0


def _readable_runs(folder: Path, outcomes: Any) -> tuple[list[Any], dict[str, str]]:
    """The runs of a comparison that have something to show, and why those that are not complete are not."""
    from cdqn.report.runs import read_run

    runs: list[Any] = []
    problems = {outcome.name: outcome.problem for outcome in outcomes if not outcome.finished}
    for outcome in outcomes:
        try:
            if (folder / outcome.name / "config.json").exists():
                runs.append(read_run(folder / outcome.name))
        except CheckpointError as error:
            problems[outcome.name] = str(error)
    return runs, problems
