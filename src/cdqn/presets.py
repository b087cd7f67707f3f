"""Named presets: settings that belong together, with their source.

A preset is for one kind of environment; what the user sets goes before it.
"""

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    per_algorithm: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings in which the algorithms differ, before those they share."""

    def settings_of(self, algorithm: str) -> dict[str, Any]:
        """What the preset says for one algorithm, less what cannot act in it."""
        return without_idle(algorithm, {**self.settings, **self.per_algorithm.get(algorithm, {})})


_ATARI: dict[str, Any] = {
    # App. E.1, "Other details", unless said otherwise
    "steps": 50_000_000,
    "gamma": 0.99,
    "num_envs": 4,  # authors' code: interleaved, one forward pass for 4 steps
    "reward_clip": True,
    "hidden": (512,),  # Wang et al. (2016)
    "channels": (32, 64, 64),
    "loss": "huber",
    "learning_rate": 6.25e-5,
    "learning_rate_decay": 1.0,
    "batch_size": 32,
    "gradient_clip_norm": 10.0,
    "update_period_steps": 4,
    "target_period_updates": 2_000,
    "warmup_steps": 50_000,
    "memory_size": 1_000_000,
    "alpha": 0.6,
    "initial_priority": 100**0.6,  # authors' code; the text has 100
    "epsilon_middle_fraction": 0.02,
    "epsilon_final_fraction": 0.8,
    "candidate_period_steps": 10_000,  # App. B.4
}
_ADAM_EPSILON = {"dqn": {"adam_epsilon": 1.5e-4}, "cdqn": {"adam_epsilon": 5e-5}, "rg": {"adam_epsilon": 5e-6}}

PRESETS: dict[str, Preset] = {
    "paper-5.1": Preset(
        kind="atari",
        source="Sec. 5.1, Fig. 4 and App. E.1: Pong, SpaceInvaders",
        settings=_ATARI,
        per_algorithm=_ADAM_EPSILON,
    ),
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
    chosen = {} if preset is None else get_preset(preset).settings_of(algorithm)
    return Config(algorithm=algorithm, **{**chosen, **settings})


def get_preset(name: str) -> Preset:
    """A preset by its name, or the names there are."""
    if name not in PRESETS:
        raise ConfigError(f"there is no preset {name!r}: choose from {', '.join(PRESETS)}")
    return PRESETS[name]


def without_idle(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings shared by several algorithms, less those that cannot act in this one."""
    idle = {"target_period_updates", "target_copy", "double_q"} if algorithm == "rg" else set()
    return {name: value for name, value in settings.items() if name not in idle}
