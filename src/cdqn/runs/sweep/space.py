"""What a sweep searches: a TOML file with one line for each setting. It is data, and nothing in it is executed.

    learning_rate = {low = 1e-4, high = 1e-2, log = true}
    n_step = {low = 1, high = 5}
    target_period_updates = [5, 20, 100]
    hidden = [[64, 64], [128, 128]]
    dueling = [true, false]

Every name and value is tried in a `Config` before anything is trained.
"""

import dataclasses
import difflib
import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from cdqn.config import Config
from cdqn.envs import Kind
from cdqn.errors import ConfigError
from cdqn.runs.runner import require_learning
from cdqn.storage.named_code import is_code_name

EXAMPLE = "learning_rate = {low = 1e-4, high = 1e-2, log = true}"
MOST_CHOICES = 100
MOST_BYTES = 1_000_000
DIGITS = 4
"""Of a number that is proposed: what is trained is what can be typed."""

_ALIKE = "the runs of a sweep are measured alike: give it as a flag"
_TASK = "it changes the task, and returns of different tasks cannot be compared: give it as a flag"
_SAME = "it does not change what is learned: give it as a flag"
NOT_SEARCHED = {
    "algorithm": "sweep each algorithm by itself, with --algorithm",
    "network": "it is code: give it as a flag",
    "learning_rate_drops": "it is a list of pairs: give it as a flag",
    **dict.fromkeys(("seed", "steps", "evaluation_episodes"), _ALIKE),
    **dict.fromkeys((f"{what}_period_steps" for what in ("log", "checkpoint", "evaluation", "candidate")), _ALIKE),
    **dict.fromkeys(("env_kwargs", "wrapper", "sticky_actions", "time_limit_steps"), _TASK),
    **dict.fromkeys(("device", "compile", "environment_timeout_seconds"), _SAME),
}
"""Settings that are the same in all trials, and why."""


@dataclass(frozen=True)
class Choice:
    """One of a few values."""

    values: tuple[Any, ...]

    def __contains__(self, value: Any) -> bool:
        return value in self.values

    @property
    def size(self) -> float:
        return len(self.values)

    def points(self) -> Iterable[Any]:
        return self.values

    def extremes(self) -> tuple[Any, ...]:
        """Enough of it to find what does not work with something else."""
        numeric = all(type(value) in (int, float) for value in self.values)
        return (min(self.values), max(self.values)) if numeric else self.values

    def to_json(self) -> Any:
        return [list(value) if isinstance(value, tuple) else value for value in self.values]


@dataclass(frozen=True)
class Range:
    """Any number between two."""

    low: float
    high: float
    log: bool
    integer: bool

    def __contains__(self, value: Any) -> bool:
        return type(value) in (int, float) and self.low <= value <= self.high

    @property
    def size(self) -> float:
        return self.high - self.low + 1 if self.integer else math.inf

    def points(self) -> Iterable[Any]:
        return range(int(self.low), int(self.high) + 1)

    def extremes(self) -> tuple[Any, ...]:
        return (self.low, self.high)

    def rounded(self, value: float) -> float:
        """A number of a few digits within the range."""
        return int(value) if self.integer else min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)

    def to_json(self) -> Any:
        return {"low": self.low, "high": self.high} | ({"log": True} if self.log else {})


Space = dict[str, Choice | Range]


def size_of(space: Space) -> float:
    """How many different trials there are."""
    return math.prod(dimension.size for dimension in space.values())


def read_space(path: Path) -> dict[str, Any]:
    """The content of a file, not checked yet."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ConfigError(f"{path} has more than {MOST_BYTES:,} bytes: it is not the space of a sweep")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"--space {path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{path} is not TOML ({reason}): write lines such as {EXAMPLE}") from error


def parse_space(content: Any, base: Config, source: str, given: Iterable[str] = ()) -> Space:
    """The space that a file or a dict describes; `source` names it in errors, `given` are settings that are fixed."""
    if not isinstance(content, Mapping) or not content:
        raise ConfigError(f"{source} is empty, there is nothing to search: write lines such as {EXAMPLE}")
    known = [field.name for field in dataclasses.fields(Config)]
    space: Space = {}
    for name, entry in content.items():
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            raise ConfigError(
                f"{source}: there is no setting {name!r}" + (f": did you mean {near[0]}?" if near else "")
            )
        if name in NOT_SEARCHED:
            raise ConfigError(f"{source}: {name} cannot be searched: {NOT_SEARCHED[name]}")
        if name in given:
            raise ConfigError(f"{name} is searched by {source}, and given as a flag: drop one of the two")
        try:
            space[name] = _dimension(name, entry, base)
        except ConfigError as error:
            raise ConfigError(f"{source}: {error}") from error
    _check_pairs(space, base, source)
    return space


def space_json(space: Space) -> dict[str, Any]:
    """As it stands in a file; `parse_space` reads it back."""
    return {name: dimension.to_json() for name, dimension in space.items()}


def space_toml(space: Space) -> str:
    """As a file that can be edited."""
    lines = []
    for name, entry in space_json(space).items():
        if isinstance(entry, dict):
            inner = ", ".join(f"{key} = {json.dumps(value)}" for key, value in entry.items())
            lines.append(f"{name} = {{{inner}}}\n")
        else:
            lines.append(f"{name} = {json.dumps(entry)}\n")  # lists of numbers, words and truths are the same in TOML
    return "".join(lines)


_PERIODS = [5, 20, 50, 100, 500]
_USUAL: dict[Kind, dict[str, Any]] = {
    "vector": {
        "learning_rate": {"low": 1e-4, "high": 5e-3, "log": True},
        "target_period_updates": _PERIODS,
        "n_step": {"low": 1, "high": 5},
        "batch_size": [16, 32, 64, 128],
        "gamma": [0.95, 0.98, 0.99, 0.995, 0.999],
        "hidden": [[64, 64], [128, 128], [256, 256]],
    },
    "discrete": {
        "learning_rate": {"low": 1e-3, "high": 1e-1, "log": True},
        "target_period_updates": _PERIODS,
        "n_step": {"low": 1, "high": 5},
        "batch_size": [16, 32, 64, 128],
        "gamma": [0.95, 0.98, 0.99, 0.995, 0.999],
    },
    "board": {
        "learning_rate": {"low": 1e-4, "high": 3e-3, "log": True},
        "target_period_updates": _PERIODS,
        "n_step": {"low": 1, "high": 5},
        "batch_size": [32, 64, 128],
        "gamma": [0.95, 0.98, 0.99, 0.995],
        "hidden": [[64], [128], [256]],
    },
    "image": {
        "learning_rate": {"low": 5e-5, "high": 1e-3, "log": True},
        "target_period_updates": [20, 50, 100, 500, 2000],
        "n_step": {"low": 1, "high": 10},
        "batch_size": [32, 64],
        "gamma": [0.97, 0.98, 0.99, 0.995],
        "hidden": [[128], [256], [512]],
    },
}
_USUAL["atari"] = _USUAL["image"]


def usual_space(kind: Kind, base: Config, given: Iterable[str] = ()) -> Space:
    """What is worth a search in this kind of environment, as far as it acts and can work with the other settings."""
    space: Space = {}
    for name, entry in _USUAL[kind].items():
        if name in given:
            continue
        values = [value for value in entry if _works(base, name, value)] if isinstance(entry, list) else entry
        try:
            space |= parse_space({name: values}, base, "the usual space")
        except ConfigError:  # idle in this algorithm, or at odds with what was given
            continue
    if not space:
        raise ConfigError("all settings of the usual space are given as flags: name others in a file, --space FILE")
    _check_pairs(space, base, "the usual space")
    return space


def _works(base: Config, name: str, value: Any) -> bool:
    try:
        require_learning(dataclasses.replace(base, **{name: value}))
    except ConfigError:
        return False
    return True


def _dimension(name: str, entry: Any, base: Config) -> Choice | Range:
    if isinstance(entry, Mapping) and "values" not in entry:
        dimension: Choice | Range = _range(name, entry)
    else:
        values = entry["values"] if isinstance(entry, Mapping) else entry
        if not isinstance(values, list | tuple) or (isinstance(entry, Mapping) and len(entry) > 1):
            raise ConfigError(
                f"{name} = {entry!r} is neither a list of values, {name} = [...], nor a range, "
                f"{name} = {{low = ..., high = ...}}; for a fixed value use the flag --{name.replace('_', '-')}"
            )
        dimension = _choice(name, values)
    # What a Config makes of it: a list of widths becomes a tuple.
    values = [getattr(_tried(base, {name: value}), name) for value in dimension.extremes()]
    if isinstance(dimension, Choice):
        return Choice(tuple(getattr(_tried(base, {name: value}), name) for value in dimension.values))
    return dataclasses.replace(dimension, low=values[0], high=values[1])


def _choice(name: str, values: Any) -> Choice:
    shown = list(values)
    if _type_of(name) is tuple and not all(isinstance(value, list | tuple) for value in values):
        raise ConfigError(f"{name} = {shown}: each value is a list of its own, {name} = [[64, 64], [128, 128]]")
    if not 2 <= len(values) <= MOST_CHOICES or any(value in values[:i] for i, value in enumerate(values)):
        raise ConfigError(
            f"{name} = {shown}: a search needs from 2 to {MOST_CHOICES} different values; for a fixed one use the "
            f"flag --{name.replace('_', '-')}"
        )
    for value in values:
        if isinstance(value, str) and is_code_name(value):
            raise ConfigError(f"{name} = {shown}: {value!r} is code, which a space cannot name: give it as a flag")
        if isinstance(value, Mapping) or (_type_of(name) is not bool and isinstance(value, bool)):
            raise ConfigError(f"{name} = {shown}: {value!r} is no value of {name}")
    return Choice(tuple(values))


def _range(name: str, entry: Mapping[str, Any]) -> Range:
    kind = _type_of(name)
    shown = f"{name} = {dict(entry)!r}"
    if kind not in (int, float):
        raise ConfigError(f"{shown}: a range is of numbers, and {name} is none: give a list of values, {name} = [...]")
    if unknown := [key for key in entry if key not in ("low", "high", "log")]:
        raise ConfigError(f"{shown}: a range has low, high and log, not {unknown[0]!r}")
    low: Any = entry.get("low")
    high: Any = entry.get("high")
    log = entry.get("log", False)
    for bound in (low, high):
        if type(bound) not in ((int,) if kind is int else (int, float)) or not math.isfinite(bound):
            wanted = "whole numbers" if kind is int else "numbers"
            raise ConfigError(f"{shown}: low and high must be {wanted}, {name} = {{low = ..., high = ...}}")
    if not low < high or not isinstance(log, bool) or (log and low <= 0):
        raise ConfigError(f"{shown}: low must be below high, and above 0 with log = true")
    return Range(kind(low), kind(high), log, kind is int)


def _type_of(name: str) -> type:
    """What a setting is, when it is set: int, float, bool, str or tuple."""
    hint = get_type_hints(Config)[name]
    if isinstance(hint, type) and get_origin(hint) is None:
        return hint
    if get_origin(hint) is tuple:
        return tuple
    kinds = [part for part in get_args(hint) if part is not type(None)]
    found = get_origin(kinds[0]) or kinds[0]
    return found if isinstance(found, type) else str


def _tried(base: Config, settings: dict[str, Any]) -> Config:
    config = dataclasses.replace(base, **settings)
    require_learning(config)
    return config


def _check_pairs(space: Space, base: Config, source: str) -> None:
    """What works alone and not with another is found here: settings are at odds in pairs."""
    for one, other in combinations(space, 2):
        for mine, theirs in product(space[one].extremes(), space[other].extremes()):
            try:
                _tried(base, {one: mine, other: theirs})
            except ConfigError as error:
                raise ConfigError(f"{source}: {one} {mine} and {other} {theirs} do not go together: {error}") from error
