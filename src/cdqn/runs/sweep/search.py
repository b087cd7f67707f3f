"""The search itself: which run is next, and what is made of one that has ended.

The settings of a trial are a function of the seed, its number and the trials before it. With one job that is all there
is: the same command gives the same trials, interrupted or not. With more jobs it matters who ends first, but not for
the first ten trials, which are drawn at random.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

from cdqn.errors import CdqnError
from cdqn.integrations.optuna import Past, require_optuna, suggest
from cdqn.runs.folders import locked
from cdqn.runs.run_pool import ATTEMPTS, NOT_SHARED, OnRow, PlannedRun
from cdqn.runs.stopping import stop_on_signal
from cdqn.runs.sweep.plan import SweepPlan, open_sweep, plan_sweep, read_sweep, require_known_trials
from cdqn.runs.sweep.space import size_of
from cdqn.runs.sweep.trial_run import TrialRunEnd, TrialTask, train_trial_run
from cdqn.runs.sweep.trials import Trial, limits_from, read_trials, write_trials
from cdqn.runs.workers.local import LocalPool
from cdqn.runs.workers.tasks import Pool, perform_next
from cdqn.storage.checkpoint import newest_step
from cdqn.training.events import Warned
from cdqn.training.seeding import derived_seed, generator

OnTrial = Callable[[Trial, Sequence[Trial]], None]
"""Called with a trial that has ended, and all trials so far."""
SUGGESTIONS = 10
"""After so many that have been tried already the next trial is drawn from those that have not."""
MOST_LISTED = 10_000
"""Trials that are listed to find one that has not been tried; a larger space hardly ever repeats one."""
SUGGESTION, DRAW = 5, 6
"""Random streams of a sweep, below its seed; the third number is the trial's."""


def sweep(
    env_id: str,
    space: Path | str | Mapping[str, Any] | None,
    folder: str | Path,
    *,
    algorithm: str = "cdqn",
    preset: str | None = None,
    trials: int = 40,
    seeds: int = 1,
    prune: bool = True,
    jobs: int | None = None,
    **settings: Any,
) -> list[Trial]:
    """Search for settings, as `cdqn sweep` does, or go on where the folder's search stopped; all trials.

    `space` is a TOML file, a dict of the same form, or None for the usual one; `settings` hold for all trials.
    """
    folder = Path(folder)
    plan = plan_sweep(env_id, space, algorithm, preset, settings, trials, seeds, prune)
    open_sweep(folder, plan)
    return run_sweep(folder, plan, LocalPool(jobs))


def resume_sweep(folder: Path, pool: Pool | None = None, allow_import: Iterable[str] = ()) -> list[Trial]:
    """Go on with the sweep of a folder."""
    require_optuna()
    return run_sweep(folder, read_sweep(folder, allow_import), pool)


def run_sweep(
    folder: Path,
    plan: SweepPlan,
    pool: Pool | None = None,
    on_row: OnRow | None = None,
    on_trial: OnTrial | None = None,
) -> list[Trial]:
    """Train what is left of a sweep; trials that failed are tried once more.

    `on_row` is called with what runs say, `on_trial` with each trial that has ended. KeyboardInterrupt after Ctrl-C,
    SIGTERM or SIGHUP, when the runs under way have written their checkpoints.
    """
    tell = on_row or (lambda name, row: None)
    with locked(folder), stop_on_signal() as stop:
        search = Search(folder, plan, on_trial)
        with closing(perform_next(search.take, train_trial_run, pool or LocalPool(), stop, ATTEMPTS)) as events:
            for name, kind, value in events:
                if kind == "said":
                    tell(name, value)
                elif kind == "returned":
                    search.end_run(name, value)
                elif search.is_lost(name, kind == "died"):
                    search.fail(name, value)
                else:
                    advice = f"{value}; it resumes from its checkpoint"
                    tell(name, Warned(newest_step(folder / name), advice, "died").row())
        if stop.requested():
            raise KeyboardInterrupt
    return search.trials


class Search:
    """The trials of a sweep, and its next run."""

    def __init__(self, folder: Path, plan: SweepPlan, on_trial: OnTrial | None = None) -> None:
        self._folder = folder.absolute()  # a worker may be elsewhere
        self._plan = plan
        self._on_trial = on_trial or (lambda trial, trials: None)
        self.trials = read_trials(folder)
        require_known_trials(folder, plan, self.trials)
        for trial in self.trials:
            if trial.state == "failed":
                trial.state, trial.problem = "running", None
        self._runs: dict[str, tuple[Trial, int]] = {}
        """Trial and seed of what has been begun here, by name."""
        self._died: set[str] = set()

    def take(self) -> tuple[str, TrialTask] | None:
        """The next run, of a trial that has begun or of a new one; None: there is none now."""
        for trial in self.trials:
            if trial.state == "running":
                for seed in self._seeds_due(trial):
                    if trial.run_name(seed) not in self._runs:
                        return self._task(trial, seed)
        if len(self.trials) >= self._most():
            return None
        trial = Trial(len(self.trials), self._propose(len(self.trials)))
        if self._plan.prune:
            trial.limits = limits_from(self.trials)
        self.trials.append(trial)
        self._save()
        return self._task(trial, self._plan.base.seed)

    def end_run(self, name: str, end: TrialRunEnd) -> None:
        """A run came to its end, was given up, or was stopped."""
        trial, seed = self._runs[name]
        if trial.state != "running" or not (end.finished or end.pruned):
            return
        if not (self._folder / name / "config.json").exists():
            self.fail(name, NOT_SHARED.format(folder=self._folder))
            return
        trial.evaluations[seed] = end.evaluations
        trial.evaluations = dict(sorted(trial.evaluations.items()))
        if end.pruned:
            trial.state = "pruned"
        elif len(trial.evaluations) == self._plan.seeds:
            trial.state = "complete"
        self._save()
        if trial.state != "running":
            self._on_trial(trial, self.trials)

    def is_lost(self, name: str, died: bool) -> bool:
        """Whether a run that failed or died is not tried again."""
        lost = not died or name in self._died
        self._died.add(name)
        return lost

    def fail(self, name: str, problem: str) -> None:
        """A run cannot be done, and its trial neither."""
        trial, _ = self._runs[name]
        if trial.state == "running":
            trial.state, trial.problem = "failed", problem
            self._save()
            self._on_trial(trial, self.trials)

    def _seeds_due(self, trial: Trial) -> list[int]:
        """The first alone, which may be given up; then the others."""
        first, *others = self._plan.seed_list()
        if first not in trial.evaluations:
            return [first]
        return [seed for seed in others if seed not in trial.evaluations]

    def _task(self, trial: Trial, seed: int) -> tuple[str, TrialTask]:
        name = trial.run_name(seed)
        self._runs[name] = trial, seed
        limits = trial.limits if seed == self._plan.base.seed else []
        planned = PlannedRun(self._plan.env_id, self._plan.config_of(trial, seed))
        return name, TrialTask(self._folder, name, planned, limits)

    def _most(self) -> float:
        """How many trials there can be: as many as asked for, or all there are."""
        defaults_beside = 0 if self._is_inside(Trial(0, {})) else 1
        return min(self._plan.trials, size_of(self._plan.space) + defaults_beside)

    def _is_inside(self, trial: Trial) -> bool:
        return all(value in self._plan.space[name] for name, value in self._plan.settings_of(trial).items())

    def _propose(self, number: int) -> dict[str, Any]:
        """The settings of a new trial, different from all before it as far as there are any."""
        if number == 0:
            return {}
        space, seed = self._plan.space, self._plan.base.seed
        known = [trial for trial in self.trials if trial.state != "failed"]
        past = [
            Past(self._plan.settings_of(trial), trial.state, trial.value, trial.curve)  # type: ignore[arg-type]
            for trial in known
        ]
        tried = {tuple(self._plan.settings_of(trial).values()) for trial in self.trials}
        for attempt in range(SUGGESTIONS):
            settings = suggest(space, past, derived_seed(seed, (SUGGESTION, number, attempt)))
            if tuple(settings.values()) not in tried:
                return settings
        if size_of(space) > MOST_LISTED:
            return settings
        left = [point for point in product(*(d.points() for d in space.values())) if point not in tried]
        if not left:
            raise CdqnError("every combination of the space has been tried")
        chosen = left[int(generator(seed, (DRAW, number)).integers(len(left)))]
        return dict(zip(space, chosen, strict=True))

    def _save(self) -> None:
        write_trials(self._folder, self.trials)
