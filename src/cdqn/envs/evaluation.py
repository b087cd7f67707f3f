"""An environment to evaluate in: another one like that of the training, and with its statistics.

Gymnasium's NormalizeObservation and NormalizeReward learn while an environment is stepped. A policy that was trained
behind the former is right only with what that had learned. So its statistics are part of a checkpoint, and an
evaluation borrows them, frozen; the rewards of an evaluation are those of the environment itself.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import wrappers
from gymnasium.vector import SyncVectorEnv, VectorEnv, VectorWrapper

from cdqn.envs.names import EnvLike
from cdqn.errors import ConfigError

OBSERVATION, REWARD = "NormalizeObservation", "NormalizeReward"
_KINDS = {
    OBSERVATION: (wrappers.NormalizeObservation, wrappers.vector.NormalizeObservation),
    REWARD: (wrappers.NormalizeReward, wrappers.vector.NormalizeReward),
}
_ALL = "all"
"""The place of wrappers around the vector environment; those of a single one are at its number."""

Statistics = dict[str, dict[str, dict[str, Any]]]
"""By place and, from outside in, by number."""


def another_like(env: EnvLike) -> EnvLike:
    """One that can be stepped without disturbing the training in `env`."""
    if isinstance(env, str):
        return env
    if isinstance(env, VectorEnv):
        raise ConfigError(
            "the agent was given a VectorEnv, of which cdqn cannot make another: pass one to evaluate(env=...), or "
            "learn(evaluation_env=...)"
        )
    if env.spec is not None:
        return gym.make(env.spec)
    try:
        return copy.deepcopy(env)
    except Exception as error:  # whatever a user's class raises when it cannot be copied
        raise ConfigError(
            f"the agent's environment cannot be copied ({error}): pass another one to evaluate(env=...), or "
            "learn(evaluation_env=...)"
        ) from error


def carries(env: VectorEnv[Any, Any, Any], kind: str) -> bool:
    """Whether such a wrapper is around the environment, or around the single ones in it."""
    return any(_kind(wrapper) == kind for chain in _chains(env).values() for wrapper in chain)


def statistics_of(env: VectorEnv[Any, Any, Any]) -> Statistics:
    """What the wrappers have learned so far; empty without any."""
    learned = {
        place: {str(index): _read(wrapper) for index, wrapper in enumerate(chain)}
        for place, chain in _chains(env).items()
    }
    return learned if any(learned.values()) else {}


def restore_statistics(env: VectorEnv[Any, Any, Any], learned: Statistics) -> None:
    """Go on from what `statistics_of` gave."""
    for wrapper, state in _paired(env, learned, (OBSERVATION, REWARD)):
        _write(wrapper, state)


@contextmanager
def evaluating(env: VectorEnv[Any, Any, Any], learned: Statistics) -> Iterator[None]:
    """Observations as in the training that `learned` is of, and nothing new learned; rewards as they are."""
    everyone = [wrapper for chain in _chains(env).values() for wrapper in chain]
    before = [dict(vars(wrapper)) for wrapper in everyone]
    try:
        for wrapper, state in _paired(env, learned, (OBSERVATION,)):
            _write(wrapper, state)
        for wrapper in everyone:
            wrapper.update_running_mean = False
            if _kind(wrapper) == REWARD:
                _write(wrapper, {"mean": np.zeros(()), "var": np.ones(()), "count": 1.0})
                wrapper.epsilon = 0.0
        yield
    finally:
        for wrapper, attributes in zip(everyone, before, strict=True):
            vars(wrapper).update(attributes)


def _paired(
    env: VectorEnv[Any, Any, Any], learned: Statistics, kinds: tuple[str, ...]
) -> list[tuple[Any, dict[str, Any]]]:
    """Each wrapper of these kinds with its statistics; of more environments than in training, the first again."""
    pairs = []
    count = max(1, len(learned) - 1)
    for place, chain in _chains(env).items():
        known = learned.get(place if place == _ALL else str(int(place) % count), {})
        states = [state for state in known.values() if state["kind"] in kinds]
        found = [wrapper for wrapper in chain if _kind(wrapper) in kinds]
        if [_kind(wrapper) for wrapper in found] != [state["kind"] for state in states]:
            raise ConfigError(_mismatch(found, states))
        pairs += list(zip(found, states, strict=True))
    return pairs


def _mismatch(found: list[Any], states: list[dict[str, Any]]) -> str:
    has = " and ".join(str(_kind(wrapper)) for wrapper in found) or "none"
    known = " and ".join(state["kind"] for state in states) or "none"
    return (
        f"of wrappers that normalise, this environment has {has}, and the statistics of {known} are known from the "
        "training: give one that is wrapped as in training, or train with normalize_observations=True instead, which "
        "keeps the statistics in the agent"
    )


def _chains(env: VectorEnv[Any, Any, Any]) -> dict[str, list[Any]]:
    """The wrappers that learn, from outside in, by their place."""
    chains = {_ALL: _chain(env)}
    if isinstance(env.unwrapped, SyncVectorEnv):
        chains |= {str(index): _chain(single) for index, single in enumerate(env.unwrapped.envs)}
    return chains


def _chain(env: Any) -> list[Any]:
    found = []
    while isinstance(env, gym.Wrapper | VectorWrapper):
        if _kind(env) is not None:
            found.append(env)
        env = env.env
    return found


def _kind(wrapper: Any) -> str | None:
    return next((kind for kind, classes in _KINDS.items() if isinstance(wrapper, classes)), None)


def _read(wrapper: Any) -> dict[str, Any]:
    learned = getattr(wrapper, _learned(wrapper))
    state = {
        "kind": _kind(wrapper),
        "mean": np.array(learned.mean),
        "var": np.array(learned.var),
        "count": float(learned.count),
    }
    return state | {name: np.array(getattr(wrapper, name)) for name in _SUMS if hasattr(wrapper, name)}


def _write(wrapper: Any, state: dict[str, Any]) -> None:
    """In a new object: whoever holds the old one keeps what it had."""
    name = _learned(wrapper)
    learned = copy.copy(getattr(wrapper, name))
    learned.mean, learned.var, learned.count = np.array(state["mean"]), np.array(state["var"]), state["count"]
    setattr(wrapper, name, learned)
    for name in _SUMS:
        if name in state:
            setattr(wrapper, name, np.array(state[name]))


_SUMS = ("discounted_reward", "accumulated_reward")
"""Of the rewards of open episodes, in the two versions of NormalizeReward."""


def _learned(wrapper: Any) -> str:
    return "obs_rms" if _kind(wrapper) == OBSERVATION else "return_rms"
