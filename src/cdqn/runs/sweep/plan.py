"""What a sweep was asked for.

    DIR/sweep.json          environment, settings, space, trials, seeds
        space.toml          the space, as a file that can be copied and edited
        trials.json         the trials so far
        trial-000/seed1000  the runs, each a run folder of its own; trial 0 has the defaults

A folder that exists is continued if the same is asked for; more trials may be.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdqn.agent import Agent
from cdqn.config import Config
from cdqn.envs import kind_of
from cdqn.errors import CheckpointError, ConfigError
from cdqn.integrations.optuna import require_optuna
from cdqn.presets import default_preset, make_config, unset_for
from cdqn.runs.folders import locked, new_folder
from cdqn.runs.loading import require_import_allowed
from cdqn.runs.runner import require_learning
from cdqn.runs.sweep.space import Space, parse_space, read_space, space_json, space_toml, usual_space
from cdqn.runs.sweep.trials import Trial
from cdqn.storage.files import VERSION, read_json, require_no_links, write_json, write_text, writing
from cdqn.storage.named_code import import_allowed, import_pieces, named_wrappers
from cdqn.storage.plain_values import COUNT, require_number
from cdqn.training.build import MAKING

FIRST_SEED = 1000
"""So that the seeds that people report, 0, 1, …, were not used to choose."""
EVALUATIONS = 10
"""Of a run, evenly spread, unless evaluation_period_steps is given."""
MOST_TRIALS, MOST_SEEDS = 10_000, 100


@dataclass(frozen=True)
class SweepPlan:
    """All that a sweep needs to know."""

    env_id: str
    preset: str | None
    """None where it is the one of the environment's kind."""
    given: dict[str, Any]
    """Settings that were asked for, and hold for all trials."""
    base: Config
    """Those of trial 0."""
    space: Space
    trials: int
    seeds: int
    prune: bool

    def seed_list(self) -> range:
        return range(self.base.seed, self.base.seed + self.seeds)

    def config_of(self, trial: Trial, seed: int) -> Config:
        return dataclasses.replace(self.base, **trial.settings, seed=seed).resolved()

    def settings_of(self, trial: Trial) -> dict[str, Any]:
        """The values of the settings that are searched, those of the defaults too."""
        config = self.config_of(trial, self.base.seed)
        return {name: getattr(config, name) for name in self.space}

    def to_json(self) -> dict[str, Any]:
        content = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {"cdqn": VERSION} | content | {"base": self.base.to_json(), "space": space_json(self.space)}


def plan_sweep(
    env_id: str,
    space: Path | str | Mapping[str, Any] | None = None,
    algorithm: str = "cdqn",
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
    trials: int = 40,
    seeds: int = 1,
    prune: bool = True,
) -> SweepPlan:
    """Check all that can be checked before anything is trained.

    `space` is a file, a dict of the same form, or None for the usual one; `settings` hold for all trials.
    """
    require_optuna()
    _require_counts(trials, seeds)
    given = {name: value for name, value in (settings or {}).items() if name != "algorithm" and value is not None}
    import_pieces({"algorithm": algorithm, **given})  # whoever asks for a sweep has named them
    making = make_config(algorithm, None, **{name: given[name] for name in MAKING if name in given})
    kind = kind_of(env_id, making.environment_kwargs, named_wrappers(making.wrapper))
    usual = default_preset(kind)
    unset = unset_for(env_id, preset or usual)
    base = make_config(algorithm, preset or usual, **(unset | {"seed": FIRST_SEED} | given))
    base = _measured(base, given)
    require_learning(base)
    has_frames = Agent.from_config(env_id, base, preset or usual).spec.has_frames
    if space is None:
        found = usual_space(kind, base, given)
    elif isinstance(space, Mapping):
        found = parse_space(space, base, "the space", given)
    else:
        found = parse_space(read_space(Path(space)), base, str(space), given)
    firsts = {name: dimension.extremes()[0] for name, dimension in found.items()}
    if "channels" in found and not has_frames:
        raise ConfigError(f"channels act on images, and {env_id} has none: drop them from the space")
    Agent.from_config(env_id, dataclasses.replace(base, **firsts))  # what else cannot act in this environment is told
    kept = {name: getattr(base, name) for name in given if name != "seed"}
    plan = SweepPlan(env_id, None if preset == usual else preset, kept, base, found, trials, seeds, prune)
    plan.config_of(Trial(0, {}), base.seed + seeds - 1)
    return plan


def is_sweep(folder: Path) -> bool:
    return (folder / "sweep.json").exists()


def open_sweep(folder: Path, plan: SweepPlan) -> None:
    """Make the folder and write down what is asked for; where it is there already, the same must be asked for."""
    content = plan.to_json()
    if not is_sweep(folder):
        with new_folder(folder), writing(folder):
            write_json(folder / "sweep.json", content)
            _write_space(folder, plan)
        return
    require_no_links(folder)
    there = read_json(folder / "sweep.json", "a sweep")
    if not isinstance(there, dict):
        raise CheckpointError(f"{folder / 'sweep.json'} is damaged: it is no object")
    if difference := _difference(there, _through_json(content)):
        raise ConfigError(f"{folder} is another sweep, with {difference}: choose another --out")
    with locked(folder), writing(folder):
        write_json(folder / "sweep.json", content)
        _write_space(folder, plan)


def read_sweep(folder: Path, allow_import: str | Iterable[str] = ()) -> SweepPlan:
    """The plan of a folder. What it names is imported only if it is allowed, as in `cdqn.load`."""
    require_no_links(folder)
    path = folder / "sweep.json"
    content = read_json(path, "a sweep")
    try:
        env_id, preset, given = content["env_id"], content["preset"], dict(content["given"])
        if not isinstance(env_id, str) or not isinstance(preset, str | None) or not isinstance(content["prune"], bool):
            raise TypeError("env_id and preset are names, prune is true or false")
        import_allowed(folder, content["base"], allow_import)
        base = Config.from_json(content["base"], str(path))
        space = parse_space(content["space"], base, str(path), given)
        given = {name: getattr(base, name) for name in given}
        _require_counts(content["trials"], content["seeds"])
        plan = SweepPlan(env_id, preset, given, base, space, content["trials"], content["seeds"], content["prune"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    require_import_allowed(folder, env_id, allow_import)
    return plan


def require_known_trials(folder: Path, plan: SweepPlan, trials: Iterable[Trial]) -> None:
    """The trials of a folder must have values of its space, and runs of its seeds."""
    for trial in trials:
        for name, value in trial.settings.items():
            trial.settings[name] = tuple(value) if isinstance(value, list) else value
            if name not in plan.space or trial.settings[name] not in plan.space[name]:
                raise CheckpointError(f"{folder / 'trials.json'} is damaged: {trial.name} has {name} {value!r}")
        if unknown := set(trial.evaluations) - set(plan.seed_list()):
            raise CheckpointError(f"{folder / 'trials.json'} is damaged: {trial.name} has a seed {min(unknown)}")


def _require_counts(trials: Any, seeds: Any) -> None:
    for name, value, most in (("trials", trials, MOST_TRIALS), ("seeds", seeds, MOST_SEEDS)):
        require_number(name, value or 0, COUNT)
        if value > most:
            raise ConfigError(f"{name} is {value}: a sweep has at most {most:,}")


def _measured(base: Config, given: Mapping[str, Any]) -> Config:
    """Ten evaluations over the budget, and lines of metrics that do not stand in their way."""
    periods: dict[str, Any] = {}
    period = base.evaluation_period_steps
    if period is None:
        periods["evaluation_period_steps"] = period = max(1, base.steps // EVALUATIONS)
    if "log_period_steps" not in given and base.log_period_steps > period:
        periods["log_period_steps"] = period
    elif base.log_period_steps > period and "evaluation_period_steps" not in given:
        periods["evaluation_period_steps"] = base.log_period_steps
    return dataclasses.replace(base, **periods)


def _write_space(folder: Path, plan: SweepPlan) -> None:
    """For people: what counts is in sweep.json."""
    head = "# What this sweep searches. For another space edit a copy of this file, and give it with another folder:\n"
    command = f"# cdqn sweep {' '.join(plan.env_id.split())} --space COPY --out FOLDER\n"
    write_text(folder / "space.toml", head + command + space_toml(plan.space))


def _through_json(content: dict[str, Any]) -> Any:
    return json.loads(json.dumps(content))


def _difference(there: dict[str, Any], asked: dict[str, Any]) -> str | None:
    """The first thing in which two sweeps differ, in words; the number of trials may."""
    for part in ("base", "space"):
        mine, theirs = asked[part], there.get(part)
        if not isinstance(theirs, dict):
            return f"no {part}"
        for name in dict.fromkeys((*theirs, *mine)):
            if mine.get(name) != theirs.get(name):
                what = f"{name} = " if part == "space" else f"{name} "
                values = [what + str(values[name]) if name in values else f"no {name}" for values in (theirs, mine)]
                where = " in its space" if part == "space" else ""
                return f"{values[0]}{where}, and {values[1]} is asked for"
    for name in ("env_id", "preset", "seeds", "prune"):
        if there.get(name) != asked[name]:
            return f"{name} {there.get(name)}, and {asked[name]} is asked for"
    return None
