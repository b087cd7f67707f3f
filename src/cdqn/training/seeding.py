"""Random streams: every consumer of a run's seed has a key of its own, so that none disturbs another.

| key | stream |
|---|---|
| (0,) | the replay memory: eviction, discarding, sampling |
| (1,) | exploration |
| (2,) | evaluations: a seed, from which their episodes and their exploration are derived |
| (3,), (4,) | of a run: validation and test of the paper's protocol (App. B.4) |
| (3,), (4,) | of training on given data: the policy that collects it, the replay memory |

Episodes of a collector have the key (environment, number) below the seed of the collector.
"""

import numpy as np

from cdqn.errors import ConfigError

REPLAY, EXPLORATION, EVALUATION = (0,), (1,), (2,)
VALIDATION, TEST = (3,), (4,)
OFFLINE_POLICY, OFFLINE_REPLAY = (3,), (4,)


def generator(seed: int, key: tuple[int, ...]) -> np.random.Generator:
    """The stream of a key."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def derived_seed(seed: int, key: tuple[int, ...]) -> int:
    """A seed for somebody else, of 32 bits."""
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1)[0])


def require_seed(seed: int | None) -> None:
    """Random generators and environments take no others."""
    if seed is not None and not 0 <= seed < 2**63:
        raise ConfigError(f"seed is {seed}: it must be a whole number from 0 on, below 2⁶³")
