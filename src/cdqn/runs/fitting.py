"""`Agent.fit`: an agent from fixed data, trained in memory or in a run folder.

It stands above the agent, as `learning` does, and is plugged into it (`Agent._fit`).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cdqn.agent import Agent
from cdqn.config import PREPROCESSING, Config
from cdqn.envs import DATA_ENV, EnvLike, EnvSpec, atari_game, describe, let_go, make_vec, observation_adapter
from cdqn.envs.observations import Adapter
from cdqn.errors import CdqnError, ConfigError
from cdqn.presets import default_preset, make_config
from cdqn.runs.learning import learn, warn_user
from cdqn.runs.loading import require_import_allowed
from cdqn.storage.named_code import import_pieces
from cdqn.training.build import MAKING, how_to_make, require_acting
from cdqn.training.offline.sources import Source, open_source
from cdqn.training.offline.trainer import OfflineTrainer

IDLE = (
    *("exploration", "epsilon_middle", "epsilon_final", "epsilon_middle_fraction", "epsilon_final_fraction"),
    *("warmup_steps", "update_period_steps", "memory_size", "eviction", "discard_fraction"),
)
"""Settings of how an agent plays, and of what it remembers of it: nothing is played, and all of the data is kept."""


@dataclass(frozen=True)
class Fitting:
    """An agent that is ready to be trained, and what the user should know before."""

    agent: Agent
    preset: str
    updates: int
    rows: int
    notices: tuple[str, ...]


def fit(
    data: Any,
    env: EnvLike | None,
    updates: int | None,
    epochs: float | None,
    *,
    allow_import: str | Iterable[str],
    algorithm: str,
    preset: str | None,
    given: dict[str, Any],
    run_folder: str | Path | None,
    **watching: Any,
) -> Agent:
    """See `Agent.fit`."""
    made = prepare(data, env, updates, epochs, algorithm, preset, given, allow_import)
    for notice in made.notices:
        warn_user(notice)
    if run_folder is not None and not made.agent.has_environment:
        warn_user(NOT_EVALUATED)
    learn(made.agent, made.updates, run_folder=run_folder, **watching)
    return made.agent


Agent._fit = fit

NOT_EVALUATED = (
    "there is no environment, and the policy is not evaluated: env='CartPole-v1', in the shell --env, names one"
)


def prepare(
    data: Any,
    env: EnvLike | None = None,
    updates: int | None = None,
    epochs: float | None = None,
    algorithm: str = "cdqn",
    preset: str | None = None,
    given: Mapping[str, Any] | None = None,
    allow_import: str | Iterable[str] = (),
) -> Fitting:
    """Read the data, check it, and make the agent whose memory holds it; `given` are the settings of the user's."""
    given = dict(given or {})
    _check_wishes(updates, epochs, given)
    import_pieces(given)  # whoever has typed a name means it
    source = open_source(data, allow_import)
    for name, value in source.fixed.items():
        if given.get(name, value) != value:
            raise ConfigError(
                f"{name} is {given[name]}, and the rows in the memory of {source.name} were made with {value}: drop it"
            )
    if env is None and source.memory is not None and source.env is not None:
        require_import_allowed(source.memory.run, source.env, allow_import)
    place = _environment(source, env, given)
    preset = preset or default_preset(place.spec.kind)
    settings: dict[str, Any] = {"num_envs": 1} if place.env == DATA_ENV else {}
    if atari_game(place.env) is None:  # a preset's frames are for games that are made by name
        settings |= dict.fromkeys(PREPROCESSING)
    settings |= {**given, **place.making, **source.fixed}
    config = make_config(algorithm, preset, **settings)
    rows = source.data(place.spec, place.adapter, config.reward_clip)
    notices = [*rows.notices, *place.notices]
    if config.n_step > 1 and rows.n_step == 1 and rows.ended is None and "n_step" not in given:
        config = make_config(algorithm, preset, **(settings | {"n_step": 1}))
        notices.append(
            f"n_step is 1 in place of the preset's: row {rows.broken_row} ends no episode, and the next one begins "
            "elsewhere; with rows in order and truncations marked, returns over several steps can be made"
        )
    rows = rows.over(config.n_step, config.resolved().gamma)
    wanted = int(updates or (math.ceil(epochs * rows.rows / config.batch_size) if epochs else config.steps))
    config = make_config(algorithm, preset, **(settings | _kept(config, rows.rows, wanted)))
    agent = Agent.from_config(place.env, config, preset, data=source.name)
    require_acting(given, agent.spec, agent.config)
    assert isinstance(agent.trainer, OfflineTrainer)
    agent.trainer.fill(rows)
    return Fitting(agent, preset, wanted, rows.rows, tuple(notices))


def _kept(config: Config, rows: int, updates: int) -> dict[str, Any]:
    """Settings that do not act, so that they say what is: all rows are kept, nothing is played before the learning."""
    return {
        "n_step": config.n_step,
        "steps": updates,
        "memory_size": max(rows, config.batch_size),
        "discard_fraction": 0.0,
        "eviction": "fifo",
        "warmup_steps": config.batch_size,
        "update_period_steps": 1,
    }


def _check_wishes(updates: int | None, epochs: float | None, given: Mapping[str, Any]) -> None:
    if updates is not None and epochs is not None:
        raise ConfigError(f"updates is {updates} and epochs {epochs}: give one of the two")
    if updates is not None and (not isinstance(updates, int | np.integer) or updates < 1):
        raise ConfigError(f"updates is {updates!r}: it must be a whole number of at least 1")
    if epochs is not None and not 0 < epochs < math.inf:
        raise ConfigError(f"epochs is {epochs!r}: it must be a number above 0")
    if "steps" in given:
        raise ConfigError("steps are those of an agent that plays: give updates or epochs, --updates 50000")
    for name in IDLE:
        if name in given:
            raise ConfigError(f"{name} does not act on fixed data, of which all is kept and none played: drop it")


@dataclass(frozen=True)
class _Place:
    """The environment of an agent: one to play, or `DATA_ENV`."""

    env: EnvLike
    making: Mapping[str, Any]
    """Settings of its own."""
    spec: EnvSpec
    adapter: Adapter | None
    notices: tuple[str, ...] = ()


def _environment(source: Source, env: EnvLike | None, given: Mapping[str, Any]) -> _Place:
    """The one that was given, or else the one that the data is from, or else none."""
    if env is not None:
        if not isinstance(env, str) and "num_envs" in given:
            raise ConfigError(f"num_envs is {given['num_envs']}, and the environment is given: drop it, or give an id")
        return _found(env, {}, given)
    if source.memory is not None:
        if source.env is None:
            raise ConfigError(f"{source.name} was trained on an environment object: give it, or an id, as env")
        return _found(source.env, source.making, given)
    notices: tuple[str, ...] = ()
    if source.env is not None:
        try:
            place = _found(source.env, source.making, given)
            source.data(place.spec, place.adapter, False)
            return place
        except CdqnError as error:
            notices = (f"the environment that {source.name} names, {source.env}, is left out: {error}",)
    for name in ("num_envs", *MAKING, *PREPROCESSING):
        if given.get(name):
            raise ConfigError(f"{name} is of an environment, and there is none: give env, --env, or drop it")
    place = _found(DATA_ENV, {"env_kwargs": dict(source.spaces)}, given)
    return _Place(place.env, place.making, place.spec, place.adapter, notices)


def _found(env: EnvLike, making: Mapping[str, Any], given: Mapping[str, Any]) -> _Place:
    own = {name: value for name, value in making.items() if name not in given}
    known = {name: given[name] for name in (*MAKING, *PREPROCESSING) if name in given}
    config = Config(**(own | known))
    vector_env = make_vec(env, 1, **how_to_make(env, config))
    try:
        return _Place(env, own, describe(vector_env), observation_adapter(vector_env))
    finally:
        let_go(vector_env, env)
