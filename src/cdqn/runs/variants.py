"""Variants of settings, `--vary NAME=VALUE,VALUE`: read as the settings are, and crossed with algorithms.

A combination in which a setting cannot act is left out, and it is said which and why.
"""

import dataclasses
import difflib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from cdqn.algorithms import find_algorithm
from cdqn.config import Config
from cdqn.errors import ConfigError
from cdqn.storage.named_code import import_pieces

Variations = Mapping[str, Sequence[Any]]
"""The values of each varied setting."""
MakeConfig = Callable[[str, Mapping[str, Any]], Config]
"""From an algorithm and the values of varied settings to all settings."""

_NOT_LEARNED = "it does not change what is learned: give it as a flag"
_NOT_VARIED = {
    "seed": "seeds are what each variant is repeated with: give --seeds and --seed",
    "algorithm": "name the algorithms with --algorithms",
    "environment_timeout_seconds": _NOT_LEARNED,
    "log_period_steps": _NOT_LEARNED,
    "checkpoint_period_steps": _NOT_LEARNED,
    "evaluation_period_steps": _NOT_LEARNED,
    "evaluation_episodes": _NOT_LEARNED,
    "candidate_period_steps": _NOT_LEARNED,
}
_TRUTHS = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}


def read_variations(texts: Iterable[str], given: Iterable[str] = ()) -> dict[str, list[Any]]:
    """Each setting with its values; `given` are the settings that have a value already."""
    variations: dict[str, list[Any]] = {}
    for text in texts:
        name, _, values = text.partition("=")
        name = name.strip().removeprefix("--").replace("-", "_")
        pieces = [piece.strip() for piece in _split(values)]
        if not name or not all(pieces):
            raise ConfigError(f"--vary {text}: there is a value missing; write --vary gamma=0.9,0.99")
        _require_variable(name)
        if name in variations or name in given:
            other = "--vary" if name in variations else f"the flag --{name.replace('_', '-')}"
            raise ConfigError(f"--vary {text}: {name} has values from {other} already; drop one of them")
        kind = get_type_hints(Config)[name]
        variations[name] = [_read(kind, piece) for piece in pieces]
        for place, value in enumerate(variations[name]):
            import_pieces({name: value})
            if any(value == other and type(value) is type(other) for other in variations[name][:place]):
                raise ConfigError(f"--vary {text}: {pieces[place]} is there twice; name each value once")
    return variations


def count_rows(algorithms: Iterable[str], variations: Variations) -> int:
    """How many combinations of algorithms and values there are, before any is made."""
    return sum(math.prod(map(len, _acting(name, variations).values())) for name in algorithms)


def cross(algorithms: Iterable[str], variations: Variations, make: MakeConfig) -> tuple[list[Config], list[str]]:
    """The settings of each algorithm with each combination of values, and a line for all that was left out.

    A setting that does not act on an algorithm leaves its other combinations. A value that is wrong by itself is an
    error; one that cannot go with another value leaves out that combination alone.
    """
    configs: list[Config] = []
    left_out = []
    for algorithm in algorithms:
        own, label = _acting(algorithm, variations), find_algorithm(algorithm).label
        if idle := [name for name in variations if name not in own]:
            does = "does" if len(idle) == 1 else "do"
            left_out.append(f"{', '.join(idle)} {does} not act on {label}: it is run without")
        made = len(configs)
        for values in product(*own.values()):
            variant = dict(zip(own, values, strict=True))
            try:
                configs.append(make(algorithm, variant))
            except ConfigError as error:
                if len(variant) < 2:
                    raise
                for name, value in variant.items():
                    make(algorithm, {name: value})  # raises where the value by itself is wrong
                named = ", ".join(f"{name} {value}" for name, value in variant.items())
                left_out.append(f"{label} with {named} is left out: {error}")
        if len(configs) == made:
            raise ConfigError(f"nothing is left of {label} to run; {left_out[-1]}")
    _require_different(configs, variations)
    return configs, left_out


def _acting(algorithm: str, variations: Variations) -> dict[str, Sequence[Any]]:
    idle = find_algorithm(algorithm).all_idle_settings()
    return {name: values for name, values in variations.items() if name not in idle}


def _require_different(configs: Iterable[Config], variations: Variations) -> None:
    """What is the same in all settings would be trained twice, and counted as one."""
    seen: set[Config] = set()
    for config in configs:
        if config in seen:
            values = ", ".join(f"{name} {getattr(config, name)}" for name in variations)
            raise ConfigError(
                f"two variants of {config.algorithm} are the same, {values}: what is none has its default; drop one"
            )
        seen.add(config)


def _require_variable(name: str) -> None:
    known = [field.name for field in dataclasses.fields(Config)]
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else "`cdqn train --help` has them all"
        raise ConfigError(f"--vary {name}: there is no setting {name!r}; {hint}")
    if name in _NOT_VARIED:
        raise ConfigError(f"--vary {name}: {_NOT_VARIED[name]}")


def _split(text: str) -> list[str]:
    """At the commas outside of brackets."""
    pieces, depth = [""], 0
    for letter in text:
        depth += (letter in "[{(") - (letter in ")}]")
        if letter == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return pieces


def _read(kind: Any, text: str) -> Any:
    """As a value of the setting's type; what cannot be read so stays text, which the setting refuses in its words."""
    options = get_args(kind)
    if NoneType in options:
        if text.lower() == "none":
            return None
        (kind,) = (option for option in options if option is not NoneType)
    if get_origin(kind) is tuple:
        return _read_tuple(get_args(kind)[0], text)
    if kind is bool:
        return _TRUTHS.get(text.lower(), text)
    if kind in (int, float):
        return _read_number(kind, text)
    return text


def _read_tuple(kind: Any, text: str) -> Any:
    """Numbers or names with spaces between them, or JSON for what is nested."""
    if not text.startswith("["):
        return tuple(_read(kind, part) for part in text.split())
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _read_number(kind: type, text: str) -> Any:
    for read in (kind, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
