"""The rows that enter and leave the memory. N is the number of rows added, B the number sampled."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cdqn.errors import ConfigError

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Transitions(NamedTuple):
    """What a collector hands over, one row per transition; rows of one stream come in order of time."""

    observation: Array
    action: Array
    """int64 (N,)"""
    reward: Array
    """float32 (N,)"""
    next_observation: Array
    terminated: Array
    """bool (N,): the return ends here. A truncated episode is not terminated."""
    stream: Array
    """int64 (N,): which environment the row comes from."""
    first: Array
    """bool (N,): the transition begins an episode, so nothing precedes it."""


class Fields(NamedTuple):
    """What is kept of a transition, and what a learner computes with."""

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    terminated: Array


class Batch(NamedTuple):
    """What a learner gets: the fields, the importance weights, and where the rows lie in memory."""

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    terminated: Array
    weight: npt.NDArray[np.float32]
    slots: Ints


def row_count(transitions: Transitions) -> int:
    """N, after checking that every field has that many rows: a silent broadcast would store fiction."""
    count = len(transitions.observation)
    for name, column in zip(Transitions._fields, transitions, strict=True):
        if len(column) != count:
            raise ConfigError(
                f"transitions.{name} has {len(column)} rows but transitions.observation has {count}: "
                "give one row per transition in every field"
            )
    return count
