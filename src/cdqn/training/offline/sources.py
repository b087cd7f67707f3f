"""Where data comes from: arrays, .npz files, data sets of Minari's, and the replay memories of runs.

Reading never runs code: files are opened without pickle, and what a data set says of its environment is an id that
is looked up among those that are registered already.
"""

import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Space, Tuple

from cdqn.config import PREPROCESSING, Config
from cdqn.envs import EnvSpec, module_of
from cdqn.envs.actions import about_actions
from cdqn.envs.observations import adapter_for
from cdqn.errors import CheckpointError, ConfigError
from cdqn.integrations.minari import MinariData, is_minari, read_minari
from cdqn.integrations.optional import known_package
from cdqn.replay import ArrayStore, Store, Transitions
from cdqn.storage.checkpoint import load_checkpoint
from cdqn.training.offline.columns import Array, Columns, Data, checked_columns, data_of
from cdqn.training.run_config import read_run_config

CHUNK = 1_000
"""Rows of a memory that are unpacked at a time."""


@dataclass(frozen=True)
class Source:
    """A data set, and what is known of where it is from."""

    name: str
    """As run folders have it."""
    columns: Columns | None
    memory: "Memory | None" = None
    """In the place of columns, where it is a run's."""
    env: str | None = None
    making: Mapping[str, Any] = field(default_factory=dict)
    """Settings with which that environment is made."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Settings that are part of the rows already, and cannot be others."""
    spaces: Mapping[str, Any] = field(default_factory=dict)
    """What `cdqn.envs.data.DataEnv` is made with, where there is no environment."""

    def data(self, spec: EnvSpec, adapter: Any, reward_clip: bool) -> Data:
        """The rows for an agent of this environment."""
        if self.memory is not None:
            return self.memory.data(spec)
        assert self.columns is not None
        return data_of(self.columns, spec, adapter, reward_clip)


def open_source(data: Any, allow_import: str | Iterable[str] = ()) -> Source:
    """The data set that somebody has given, read and checked as far as it can be by itself."""
    if isinstance(data, Mapping):
        return _of_columns("arrays", checked_columns(data))
    if is_minari(data):
        return _of_minari(read_minari(data))
    if not isinstance(data, str | Path):
        raise ConfigError(
            f"the data set is {type(data).__name__}: give a mapping of arrays, an .npz file, the folder of a run, or "
            "the name of a data set of Minari's"
        )
    path = Path(data)
    if (path / "config.json").exists():
        return _of_run(path, allow_import)
    if path.is_file() or path.suffix == ".npz":
        return _of_columns(str(path), checked_columns(_npz(path)))
    if path.is_dir():
        raise ConfigError(f"{path} is a folder, and not that of a run: it has no config.json; name another data set")
    return _of_minari(read_minari(str(data)))


def _npz(path: Path) -> dict[str, Array]:
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise ConfigError(f"{path} holds one array, and a data set has several: write it with numpy.savez")
        with file:
            return {name: file[name] for name in file.files}
    except ConfigError:
        raise
    except FileNotFoundError as error:
        raise ConfigError(f"there is no file {path}: check the name") from error
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ConfigError(
            f"{path} cannot be read as an .npz file of numbers ({error}): write it with numpy.savez"
        ) from error


def _of_columns(name: str, columns: Columns, **known: Any) -> Source:
    """With the spaces that the rows themselves tell, as far as nobody knows better."""
    spaces: dict[str, Any] = {} if "actions" in known else {"actions": _action_count(columns.actions)}
    observations = columns.observations
    if observations.ndim > 1:
        kind = np.float32 if observations.dtype.kind == "f" else observations.dtype
        spaces |= {"shape": list(observations.shape[1:]), "dtype": np.dtype(kind).name}
    elif "states" not in known and observations.dtype.kind not in "iu":
        raise ConfigError(
            f"observations has shape {observations.shape} and type {observations.dtype}: vectors have two axes, "
            "observations[:, None]; states are numbered by integers"
        )
    elif "states" not in known:
        lowest = min(int(observations.min()), int(columns.next_observations.min()))
        if lowest < 0:
            raise ConfigError(f"observations has the state {lowest}: states are numbered from 0 on")
        spaces["states"] = 1 + max(int(observations.max()), int(columns.next_observations.max()))
    return Source(name, columns, spaces=spaces | known)


def _action_count(actions: Array) -> int:
    if (actions < 0).any():
        row = int(np.argmax(actions < 0))
        raise ConfigError(f"row {row}: action {actions[row]} is below 0: actions are numbered from 0 on")
    return int(actions.max()) + 1


# Minari -------------------------------------------------------------------------------------------------


def _of_minari(data: MinariData) -> Source:
    actions = data.action_space
    if not isinstance(actions, Discrete):
        raise ConfigError(about_actions(actions).replace("the environment has", f"{data.name} has", 1))
    before, after = _observations(data)
    columns = checked_columns(
        {
            "observations": before,
            "next_observations": after,
            **{name: np.concatenate([getattr(episode, name) for episode in data.episodes]) for name in _PER_STEP},
        }
    )
    known: dict[str, Any] = {"actions": int(actions.n), "first_action": int(actions.start)}
    if before.ndim == 1:
        known["states"] = int(data.observation_space.n)
    source = _of_columns(f"minari:{data.name}", columns, **known)
    env, making = _recorded_environment(data.env_spec)
    return Source(source.name, columns, env=env, making=making, spaces=source.spaces)


_PER_STEP = ("actions", "rewards", "terminations", "truncations")


def _observations(data: MinariData) -> tuple[Array, Array]:
    """Those of each step and those after it; what is no array is flattened as it is for environments."""
    space = data.observation_space
    plain = isinstance(space, Box) or (isinstance(space, Discrete) and space.start == 0)
    adapter = None if plain else adapter_for(space)
    if adapter is None and not plain:
        raise ConfigError(f"{data.name} has observations {space}, which cannot be made a vector: choose another")
    episodes = []
    for episode in data.episodes:
        if adapter is None:
            episodes.append(np.asarray(episode.observations))
        else:
            rows = [_row(space, episode.observations, t) for t in range(len(episode.rewards) + 1)]
            episodes.append(np.stack([adapter.convert(row) for row in rows]))
    return np.concatenate([rows[:-1] for rows in episodes]), np.concatenate([rows[1:] for rows in episodes])


def _row(space: Space[Any], observations: Any, t: int) -> Any:
    """One observation out of an episode's, which has arrays for its parts."""
    if isinstance(space, Dict):
        return {name: _row(part, observations[name], t) for name, part in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(_row(part, observations[i], t) for i, part in enumerate(space.spaces))
    return observations[t]


def _recorded_environment(spec: Any) -> tuple[str | None, dict[str, Any]]:
    """The id and the settings of the environment, if it is one that can be made without importing anything new."""
    if spec is None or module_of(spec.id) is not None or not (spec.id in gym.registry or known_package(spec.id)):
        return None, {}
    kwargs = dict(spec.kwargs)
    registered = gym.registry.get(spec.id)
    if registered is not None and spec.max_episode_steps != registered.max_episode_steps:
        kwargs["max_episode_steps"] = spec.max_episode_steps
    usual = {} if registered is None else registered.kwargs
    kwargs = {name: value for name, value in kwargs.items() if usual.get(name, _NOTHING) != value}
    try:
        return spec.id, {"env_kwargs": json.dumps(kwargs)} if kwargs else {}
    except TypeError:  # kwargs that no run folder can hold
        return None, {}


_NOTHING = object()


# Runs ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Memory:
    """The replay memory of a run: its rows, whose order is not known."""

    run: Path
    store: Store
    rows: int
    config: Config
    reward_abs_max: float
    reward_scale: float | None = None
    """What the run has found; rows over several steps do not tell the size of single rewards."""

    def data(self, spec: EnvSpec) -> Data:
        """The rows, if they are of this environment."""
        one = self.store.read(np.zeros(1, np.int64)).observation
        if (one.shape[1:], one.dtype) != (spec.observation_shape, spec.observation_dtype):
            raise ConfigError(
                f"the memory of {self.run} has observations of shape {one.shape[1:]} and type {one.dtype}, the "
                f"environment {spec.observation_shape} and {spec.observation_dtype}: name the run's own, or none"
            )
        rewards = np.concatenate([chunk.reward for chunk in self._chunks()])
        if self.config.n_step > 1 and self.reward_scale is not None:
            rewards = np.array([self.reward_scale])  # whose root mean square it is
        actions = np.concatenate([chunk.action for chunk in self._chunks()])
        if actions.max() >= spec.num_actions:
            raise ConfigError(
                f"the memory of {self.run} has action {actions.max()}, and the environment {spec.num_actions} actions: "
                "name the run's own, or none"
            )
        return Data(self.rows, self._chunks, rewards, self.reward_abs_max, n_step=self.config.n_step)

    def _chunks(self) -> Iterator[Transitions]:
        for begin in range(0, self.rows, CHUNK):
            slots = np.arange(begin, min(begin + CHUNK, self.rows))
            # A guess: where it holds, frames of successive rows are found again and stored once.
            stream = slots % self.config.num_envs
            yield Transitions(*self.store.read(slots), stream=stream, first=np.ones(len(slots), np.bool_))


def _of_run(run: Path, allow_import: str | Iterable[str]) -> Source:
    env_id, config = read_run_config(run, allow_import)
    state = load_checkpoint(run)["trainer"]
    try:
        replay = state["replay"]
        rows, saved = int(replay["size"]), replay["store"]
        reward_abs_max = float(state["tally"]["reward_abs_max"])
        store = _store_like(saved, rows, config) if rows else None
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"the memory of {run} cannot be read ({error!r}): it is damaged, or one of your own, replay {config.replay}"
        ) from error
    if store is None:
        raise ConfigError(f"the memory of {run} is empty: train the run for some steps first")
    fixed: dict[str, Any] = {"n_step": config.n_step, "reward_clip": config.reward_clip}
    if config.n_step > 1:
        fixed["gamma"] = config.gamma
    making = {name: getattr(config, name) for name in ("env_kwargs", "wrapper", *PREPROCESSING)}
    found = state["calibrator"]["found"]
    memory = Memory(run, store, rows, config, reward_abs_max, None if found is None else float(found["scale"]))
    return Source(str(run), None, memory, env_id, {k: v for k, v in making.items() if v not in (None, ())}, fixed)


def _store_like(saved: dict[str, Any], rows: int, config: Config) -> Store:
    store: Store
    if "numbers" in saved:
        from cdqn.replay.frames import FrameStore  # needs an optional package

        store = FrameStore(rows, saved["observation_shape"], config.eviction, config.n_step)
    else:
        observation = saved["observation"]
        store = ArrayStore(rows, observation.shape[1:], observation.dtype)
    store.load_state_dict(saved, rows)
    return store
