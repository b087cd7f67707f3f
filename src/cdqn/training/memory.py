"""The replay memory that a configuration asks for, if there is room for it."""

from typing import Any

import numpy as np
import psutil

from cdqn.config import Config
from cdqn.envs import EnvSpec
from cdqn.errors import ConfigError
from cdqn.replay import ArrayStore, PrioritizedReplay, Store, UniformReplay


def make_replay(spec: EnvSpec, config: Config, rng: np.random.Generator) -> UniformReplay:
    """The memory a (resolved) configuration asks for."""
    store = _make_store(spec, config)
    common: dict[str, Any] = {
        "rng": rng,
        "eviction": config.eviction,
        "discard_fraction": config.discard_fraction,
    }
    if config.replay == "uniform":
        return UniformReplay(store, **common)
    # A setting that cannot act is None in a resolved configuration, and then the default is as good as any.
    priorities = {
        "alpha": config.alpha,
        "priority_epsilon": config.priority_epsilon,
        "floor_divisor": config.floor_divisor,
        "initial_priority": config.initial_priority,
        "raise_predecessor": config.raise_predecessor,
        "scheme": config.priority_scheme,
    }
    given: dict[str, Any] = {name: value for name, value in priorities.items() if value is not None}
    return PrioritizedReplay(store, **common, **given)


def memory_estimate(spec: EnvSpec, config: Config) -> int:
    """Bytes that the replay memory will take, when the budget is spent, as far as can be told beforehand."""
    rows = min(config.memory_size, config.steps)
    if spec.kind == "atari":
        from cdqn.replay.frames import estimated_bytes

        return estimated_bytes(rows, spec.observation_shape, config.eviction)
    return rows * ArrayStore(1, spec.observation_shape, spec.observation_dtype).nbytes


def readable_bytes(count: int) -> str:
    """As people write it: 1.1 GB, 47 MB."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _make_store(spec: EnvSpec, config: Config) -> Store:
    needed, available = memory_estimate(spec, config), psutil.virtual_memory().available
    if needed > available:
        raise ConfigError(
            f"memory_size {config.memory_size:,} with observations of shape {spec.observation_shape} needs about "
            f"{readable_bytes(needed)}, and {readable_bytes(available)} of memory are available: lower memory_size"
        )
    if spec.kind == "atari":
        from cdqn.replay.frames import FrameStore  # needs an optional package

        return FrameStore(config.memory_size, spec.observation_shape, config.eviction, config.n_step)
    return ArrayStore(config.memory_size, spec.observation_shape, spec.observation_dtype)
