"""`cdqn compare`: algorithms, variants of settings and seeds, on one environment or several.

The fields of a class are its flags, `run` does the work and returns the exit code. What a command needs is imported
where it runs: the others need not wait for it.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from tyro.conf import Positional, UseAppendAction

from cdqn.algorithms import OF_THE_PAPER, find_algorithm
from cdqn.cli.common import (
    INTERRUPTED,
    MOST_SEEDS,
    ConfigFlags,
    Settings,
    Where,
    WhereFlags,
    console,
    default_folder,
    names,
)
from cdqn.cli.several import run_all_shown, tell_missing, tell_written
from cdqn.config import Config
from cdqn.errors import CheckpointError, ConfigError
from cdqn.report.terminal import say
from cdqn.storage.named_code import import_pieces, named_wrappers

MOST_RUNS = 1000
"""More are taken for a slip of the hand."""
NAMED_ENVIRONMENTS = 3
"""So many have their names in the name of the folder."""


@dataclass
class Compare:
    """Compare algorithms, or variants of settings, over several seeds; leaves tables and a picture."""

    env_ids: Positional[tuple[str, ...]]
    """One or several: Gymnasium ids such as CartPole-v1, Atari games such as Pong, module:id for one of your own."""
    algorithms: str = ",".join(OF_THE_PAPER)
    """Which ones, separated by commas; module:Class for one of your own. Differences are taken from the first."""
    seeds: int = 5
    """Runs of each algorithm and variant, with seeds from --seed upwards; intervals are claimed from 5 on."""
    vary: UseAppendAction[tuple[str, ...]] = ()
    """Try several values of a setting, target_period_updates=5,20,100; given several times: all combinations."""
    preset: str | None = None
    """A named set of settings (`cdqn list presets`); flags override it. Default: that of each environment's kind."""
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
        from cdqn.runs.comparison import create_comparison, plan_comparison

        variations = self.variations()
        lines: dict[str, None] = {}
        presets = {env_id: self.preset_for(env_id) for env_id in self.env_ids}
        configs = {}
        for env_id in self.env_ids:
            configs[env_id], left_out = self.configs(env_id, variations)
            lines |= dict.fromkeys(left_out)
        pool = self.where.pool()
        folder = self.out or default_folder(f"compare-{_joined(self.env_ids)}")
        varied = [name for name, values in variations.items() if len(values) > 1]
        create_comparison(folder, plan_comparison(configs, varied), varied, presets)
        for line in lines:
            say(console, line)
        return finish_comparison(folder, pool, [module_of(env_id) or "" for env_id in self.env_ids])

    def variations(self) -> dict[str, list[Any]]:
        """The values of each setting that is varied, after a look at how many runs that makes."""
        from cdqn.runs.variants import count_rows, read_variations

        if not self.env_ids:
            raise ConfigError("there is no environment to compare on: write cdqn compare CartPole-v1")
        if "algorithm" in self.given:
            raise ConfigError("compare trains several algorithms: give --algorithms cdqn,dqn in place of --algorithm")
        algorithms = names(self.algorithms)
        for name in algorithms:
            import_pieces({"algorithm": name})
            find_algorithm(name)
        for noun, given in (("environment", self.env_ids), ("algorithm", algorithms)):
            if twice := [name for place, name in enumerate(given) if name in given[:place]]:
                raise ConfigError(f"{twice[0]} is named twice: name each {noun} once")
        if self.seeds < 1:
            raise ConfigError(f"seeds is {self.seeds}: compare needs at least one")
        if self.seeds > MOST_SEEDS:
            raise ConfigError(f"seeds is {self.seeds}: at most {MOST_SEEDS} runs of an algorithm are trained at a time")
        variations = read_variations(self.vary, self.given)
        rows = count_rows(algorithms, variations)
        if (total := len(self.env_ids) * rows * self.seeds) > MOST_RUNS:
            raise ConfigError(
                f"environments {len(self.env_ids)} × algorithms and variants {rows} × seeds {self.seeds} are {total} "
                f"runs: at most {MOST_RUNS} are trained at a time; name fewer, or lower --seeds"
            )
        return variations

    def preset_for(self, env_id: str) -> str:
        """The preset that was named, or that of the environment's kind."""
        from cdqn.envs import kind_of
        from cdqn.presets import default_preset

        if self.preset is not None:
            return self.preset
        wrappers = named_wrappers(self.config.wrapper)
        return default_preset(kind_of(env_id, self.config.environment_kwargs, wrappers))

    def configs(self, env_id: str, variations: Mapping[str, Sequence[Any]]) -> tuple[list[Config], list[str]]:
        """One for each run: an algorithm's own defaults, or those of the first one, and what was given or varied.

        And a line for each combination that is left out.
        """
        from cdqn.presets import make_config, unset_for, without_idle
        from cdqn.runs.runner import require_learning
        from cdqn.runs.variants import cross

        algorithms, preset = names(self.algorithms), self.preset_for(env_id)
        settings = unset_for(env_id, preset) | self.given
        if self.same_settings:
            first = make_config(algorithms[0], preset, **without_idle(algorithms[0], settings))
            settings = {name: value for name, value in dataclasses.asdict(first).items() if name != "algorithm"}

        def make(algorithm: str, variant: Mapping[str, Any]) -> Config:
            config = make_config(algorithm, preset, **without_idle(algorithm, {**settings, **variant})).resolved()
            require_learning(config)
            return config

        rows, left_out = cross(algorithms, variations, make)
        seeded = [dataclasses.replace(row, seed=row.seed + i) for row in rows for i in range(self.seeds)]
        return seeded, left_out


def finish_comparison(folder: Path, pool: Any, allow_import: Iterable[str]) -> int:
    """Do what is left of a comparison, and tell what was found: tables on the terminal, files in the folder."""
    from cdqn.runs.comparison import planned_runs, varied_settings

    plan, varied = planned_runs(folder, allow_import), varied_settings(folder)
    outcomes = run_all_shown(folder, plan, pool, f"`cdqn resume {folder}` resumes it")
    if outcomes is None:
        return INTERRUPTED
    runs, problems = _readable_runs(folder, outcomes)
    report_comparison(folder, runs, varied)
    return tell_missing(problems, f"`cdqn resume {folder}` tries again what is missing")


def report_comparison(folder: Path, runs: Sequence[Any], varied: Sequence[str]) -> None:
    """Tables and pictures of each environment, which has a level of its own where there are several, and of all."""
    from cdqn.report import tables
    from cdqn.report.comparison import summary_table
    from cdqn.report.groups import group_runs
    from cdqn.storage.files import writing

    places: dict[Path, list[Any]] = {}
    for run in runs:
        places.setdefault(run.path.parent, []).append(run)
    groups = {place: group_runs(own, varied) for place, own in places.items()}
    for place, own in groups.items():
        _report_environment(place, own, title=own[0].runs[0].env_label if len(groups) > 1 else "")
    summary = summary_table({own[0].runs[0].env_id: own for own in groups.values()}) if len(groups) > 1 else []
    if len(summary) > 1:
        console.print(tables.render_summary(summary))
        with writing(folder):
            tables.write_summary_csv(folder / "summary.csv", summary)
        tell_written(folder, "summary.csv")


def _report_environment(place: Path, groups: Sequence[Any], title: str) -> None:
    from cdqn.report import figures, tables
    from cdqn.report.comparison import comparison_table, difference_table
    from cdqn.report.groups import differing_settings
    from cdqn.storage.files import writing

    rows, differences = comparison_table(groups), difference_table(groups)
    written = ["comparison.png", "comparison.csv", "curves.csv"]
    console.print(tables.render(rows, title))
    if differences:
        console.print(tables.render_differences(differences, rows[0].label))
        written.insert(2, "differences.csv")
    if own := differing_settings(groups):
        say(console, f"{own} (--same-settings for equal ones)")
    with writing(place):
        tables.write_csv(place / "comparison.csv", rows)
        if differences:
            tables.write_differences_csv(place / "differences.csv", differences, rows[0].label)
        tables.write_curves_csv(place / "curves.csv", groups)
        figures.comparison(groups, place / "comparison.png")
    tell_written(place, *written)


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


def _joined(env_ids: Sequence[str]) -> str:
    more = len(env_ids) - NAMED_ENVIRONMENTS
    return "-".join(env_ids[:NAMED_ENVIRONMENTS]) + (f"-and-{more}-more" if more > 0 else "")
