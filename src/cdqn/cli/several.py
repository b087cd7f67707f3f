"""`cdqn suite`, and how several runs in parallel processes are shown and told of.

The fields of a class are its flags, `run` does the work and returns the exit code. What a command needs is imported
where it runs: the others need not wait for it.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cdqn.algorithms import OF_THE_PAPER
from cdqn.cli.common import INTERRUPTED, Where, WhereFlags, console, errors, names
from cdqn.report.terminal import say


@dataclass
class Suite:
    """Train each algorithm with its own defaults on eleven tasks; leaves a table and a picture."""

    scale: Literal["smoke", "laptop"] = "laptop"
    """smoke: does it run (about a minute a seed); laptop: about 50 000 steps a task (hours on two cores)."""
    algorithms: str = ",".join(OF_THE_PAPER)
    """Which ones, separated by commas; your own as module:Class."""
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


def finish_suite(folder: Path, plan: Any, pool: Any) -> int:
    import numpy as np

    from cdqn.report import suite
    from cdqn.storage.files import writing

    outcomes = run_all_shown(folder, plan, pool, f"`cdqn resume {folder}` resumes it")
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
        tell_written(folder, "suite.png", "suite.csv", "evaluations.csv")
    problems = {outcome.name: outcome.problem for outcome in outcomes if not outcome.finished}
    return tell_missing(problems, f"`cdqn resume {folder}` tries again what is missing")


def run_all_shown(folder: Path, plan: Any, pool: Any, resume: str) -> Any:
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


def tell_written(folder: Path, *names: str) -> None:
    for name in names:
        say(console, f"wrote {folder / name}")


def tell_missing(problems: dict[str, Any], remedy: str) -> int:
    """What is not complete, and why; the exit code."""
    for name, problem in problems.items():
        say(errors, f"cdqn: {name} is not complete: {problem}", "red")
    if problems:
        say(errors, f"cdqn: {remedy}", "red")
    return 1 if problems else 0
