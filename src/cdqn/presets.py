"""Named presets: settings that belong together, with their source.

A preset is for one kind of environment; what the user sets goes before it.
"""

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cdqn.config import Algorithm, Config
from cdqn.envs import Kind
from cdqn.errors import ConfigError


@dataclass(frozen=True)
class Preset:
    """Settings for one kind of environment."""

    kind: Kind
    source: str
    settings: Mapping[str, Any]


PRESETS: dict[str, Preset] = {
    "classic-control": Preset(
        kind="vector",
        source="the defaults: small networks on vector observations, measured in docs/results.md",
        settings={},
    ),
    "minatar": Preset(
        kind="minatar",
        source="memory, batch, warm-up and discount of Young & Tian (2019), budget scaled to a laptop",
        settings={
            "steps": 200_000,
            "hidden": (128,),
            "learning_rate": 2.5e-4,
            "learning_rate_decay": 1.0,
            "memory_size": 100_000,
            "warmup_steps": 5_000,
            "target_period_updates": 250,
            "update_period_steps": 4,
        },
    ),
}


def make_config(algorithm: Algorithm = "cdqn", preset: str | None = None, **settings: Any) -> Config:
    """The configuration for an algorithm: defaults, then the preset, then `settings`."""
    known = [field.name for field in dataclasses.fields(Config)]
    for name in settings:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise ConfigError(f"there is no setting {name!r}" + (f": did you mean {near[0]}?" if near else ""))
    chosen = {} if preset is None else get_preset(preset).settings
    return Config(algorithm=algorithm, **{**without_idle(algorithm, chosen), **settings})


def get_preset(name: str) -> Preset:
    """A preset by its name, or the names there are."""
    if name not in PRESETS:
        raise ConfigError(f"there is no preset {name!r}: choose from {', '.join(PRESETS)}")
    return PRESETS[name]


def without_idle(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings shared by several algorithms, less those that cannot act in this one."""
    idle = {"target_period_updates", "target_copy", "double_q"} if algorithm == "rg" else set()
    return {name: value for name, value in settings.items() if name not in idle}
