"""From an id, an Env or a VectorEnv to a checked VectorEnv.

Environments made here have autoreset disabled: the collector resets and seeds every episode itself, so
that an episode is its seed and its actions, and can be played again after a crash.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from cdqn.envs.actions import about_actions
from cdqn.envs.atari import FRAME_SIZE, TIME_LIMIT_STEPS, AtariVectorEnv, default_sticky_actions
from cdqn.envs.names import EnvLike, atari_game, find_maker, is_minatar, is_native
from cdqn.envs.observations import Adapter, adapted, adapter_for, adapter_of, form_of, usable_keys
from cdqn.errors import CdqnError, ConfigError, MissingPackageError, UnsupportedEnvironmentError
from cdqn.storage.named_code import WithArguments

Wrap = Callable[[Any], Any]
Kind = Literal["vector", "discrete", "board", "image", "atari"]
"""Discrete is what has numbered states; a board is small, as MinAtar's is; an Atari game is made by its name."""


@dataclass(frozen=True)
class EnvSpec:
    """What the rest of the library needs to know of an environment."""

    kind: Kind
    observation_shape: tuple[int, ...]
    observation_dtype: np.dtype[Any]
    num_actions: int
    first_action: int
    """Gymnasium's Discrete may start elsewhere than at 0; we count from 0."""

    @property
    def has_frames(self) -> bool:
        """Whether observations are images, kept compressed and seen by the large network."""
        return self.kind in ("image", "atari")


def make_vec(
    env: EnvLike,
    num_envs: int,
    render_mode: str | None = None,
    preprocessing: Mapping[str, Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    wrappers: Sequence[Wrap] = (),
) -> VectorEnv[Any, Any, Any]:
    """A VectorEnv of `num_envs` copies for an id, of one for an Env; a VectorEnv comes back as it is.

    An id may be module:Name, of an environment's class or of a function that makes one. `preprocessing` are settings of
    `AtariVectorEnv`: what it does not name is as in the paper. `kwargs` and `wrappers`, innermost first, are for ids.
    """
    _require_environment(env)
    game = atari_game(env)
    if (kwargs or wrappers) and (game or not isinstance(env, str)):
        why = "Atari games have settings of their own" if game else "this environment is made already"
        raise ConfigError(f"env_kwargs and wrapper are for environments that are made from an id: {why}; drop them")
    if game:
        if render_mode == "human":
            raise UnsupportedEnvironmentError(f"{env} opens no window: use --video FILE.gif")
        return AtariVectorEnv(game, num_envs, **(preprocessing or {}))
    if preprocessing:
        raise ConfigError(f"{', '.join(preprocessing)}: settings of Atari games, made by their name; drop them")
    if isinstance(env, VectorEnv):
        return env
    if isinstance(env, gym.Env):
        vector_env = SyncVectorEnv([lambda: adapted(env)], autoreset_mode=AutoresetMode.DISABLED)
        vector_env.closed = True  # else Gymnasium closes the user's environment as soon as this one is forgotten
        return vector_env
    make = partial(find_maker(env), **(kwargs or {}))
    if is_native(env) and not wrappers:
        native: VectorEnv[Any, Any, Any]
        native = _made(env, partial(gym.make_vec, env, num_envs, **(kwargs or {})), render_mode)
        return native
    makers = [partial(_make, env, make, render_mode, wrappers)] * num_envs
    return SyncVectorEnv(makers, autoreset_mode=AutoresetMode.DISABLED)


def _require_environment(env: Any) -> None:
    if not isinstance(env, str | gym.Env | VectorEnv):
        hint = f"make one of it, {env.__name__}()" if isinstance(env, type) else "give an id such as CartPole-v1"
        raise UnsupportedEnvironmentError(
            f"the environment is {env!r}, not an id, a gymnasium.Env or a gymnasium.vector.VectorEnv: {hint}"
        )


def kind_of(env: EnvLike, kwargs: Mapping[str, Any] | None = None, wrappers: Sequence[Wrap] = ()) -> Kind:
    """What `describe` will say, from the name alone where that is enough; "vector" for what is unknown."""
    if atari_game(env):
        return "atari"
    if isinstance(env, str) and is_minatar(env) and not wrappers:
        return "board"
    try:
        vector_env = make_vec(env, 1, kwargs=kwargs, wrappers=wrappers)
    except CdqnError:  # which whoever makes it in earnest will hear of
        return "vector"
    try:
        return describe(vector_env).kind
    except UnsupportedEnvironmentError:
        return "vector"
    finally:
        let_go(vector_env, env)


def let_go(vector_env: VectorEnv[Any, Any, Any], env: EnvLike | None) -> None:
    """Close what was made for `env`, None if it is our own copy; what is the user's stays open."""
    if env is None or isinstance(env, str):
        vector_env.closed = False
        vector_env.close()


def default_preprocessing(env: EnvLike) -> dict[str, Any]:
    """What `preprocessing` is unless it is set: nothing, except for an Atari game."""
    if atari_game(env) is None:
        return {}
    return {
        "frame_size": FRAME_SIZE,
        "sticky_actions": default_sticky_actions(str(env)),
        "time_limit_steps": TIME_LIMIT_STEPS,
    }


def describe(env: VectorEnv[Any, Any, Any]) -> EnvSpec:
    """The facts of an environment, or an error that says what is not supported and what to do."""
    actions, observations = env.single_action_space, env.single_observation_space
    if not isinstance(actions, Discrete):
        raise UnsupportedEnvironmentError(about_actions(actions))
    if not isinstance(observations, Box) or (observation_adapter(env) is None and adapter_for(observations)):
        raise UnsupportedEnvironmentError(_about_observations(env))
    dtype: np.dtype[Any] = np.dtype(observations.dtype)
    if dtype == np.float64:
        dtype = np.dtype(np.float32)  # networks compute in float32
    if not (dtype == np.float32 or dtype == np.bool_ or np.issubdtype(dtype, np.integer)):
        raise UnsupportedEnvironmentError(
            f"the environment has observations of type {dtype}: floats, integers and bool are supported; "
            "convert them with gymnasium.wrappers.DtypeObservation"
        )
    return EnvSpec(_kind(env, observations), observations.shape, dtype, int(actions.n), int(actions.start))


def observation_adapter(env: VectorEnv[Any, Any, Any]) -> Adapter | None:
    """How observations are changed before an agent sees them, if they are."""
    return adapter_of(env.envs[0]) if isinstance(env, SyncVectorEnv) else None


def _about_observations(env: VectorEnv[Any, Any, Any]) -> str:
    space = env.single_observation_space
    has = f"the environment has observations {space}"
    if adapter_for(space):
        return f"{has}, which are changed in single environments only: give an Env or an id in place of a VectorEnv"
    keys = usable_keys(space)
    if keys:
        return (
            f"{has}, of which some cannot be made a vector: keep the others with "
            f"--wrapper 'gymnasium.wrappers:FilterObservation({json.dumps(keys)})', in Python "
            f"env = gymnasium.wrappers.FilterObservation(env, {json.dumps(keys)})"
        )
    return (
        f"{has}, which cannot be made a vector: make an array of it in a wrapper of your own, as with "
        "gymnasium.wrappers.TransformObservation, and name it with --wrapper my_module:MyWrapper"
    )


def _kind(env: VectorEnv[Any, Any, Any], space: Box) -> Kind:
    if isinstance(env.unwrapped, AtariVectorEnv):
        return "atari"
    adapter = observation_adapter(env)
    if form := form_of(space) if adapter is None else adapter.form:
        return form
    raise UnsupportedEnvironmentError(
        f"the environment has observations of shape {space.shape} and type {space.dtype}: images are arrays of uint8, "
        "boards have at least 3×3 cells. It becomes a vector with --wrapper gymnasium.wrappers:FlattenObservation; "
        "floats from 0 to 1 become bytes with gymnasium.wrappers.TransformObservation, (255 * x).astype('uint8'), in a "
        "wrapper of your own, --wrapper my_module:MyWrapper"
    )


def _make(
    env_id: str, make: Callable[..., Any], render_mode: str | None, wrappers: Sequence[Wrap]
) -> gym.Env[Any, Any]:
    env = _made(env_id, make, render_mode)
    if is_minatar(env_id):
        env = _Forgetting(env)
    for wrap in wrappers:
        try:
            env = wrap(env)
        except Exception as error:  # whatever somebody's wrapper raises
            raise UnsupportedEnvironmentError(f"{_name(wrap)} cannot wrap {env_id}: {error!r}") from error
    if not isinstance(env, gym.Env):
        maker = _name(wrappers[-1]) if wrappers else env_id
        raise UnsupportedEnvironmentError(f"{maker} made {env!r}: it must make a gymnasium.Env")
    return adapted(env)


def _name(thing: Any) -> str:
    return str(thing) if isinstance(thing, WithArguments) else f"{thing.__module__}:{thing.__qualname__}"


class _Forgetting(gym.Wrapper[Any, Any, Any, Any]):
    """MinAtar repeats the last action now and then (sticky actions), at an episode's start that of the episode before.

    Here an episode begins with none: it is a function of its seed and its actions, and can be played again.
    """

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.env.unwrapped.game.last_action = 0  # type: ignore[attr-defined]
        return self.env.reset(seed=seed, options=options)


def _made(env_id: str, make: Callable[..., Any], render_mode: str | None) -> Any:
    try:
        return make() if render_mode is None else make(render_mode=render_mode)
    except CdqnError:  # says itself what to do
        raise
    except gym.error.DependencyNotInstalled as error:
        # Gymnasium's own advice for Box2D is to build it from source.
        remedy = "Box2D: pip install 'cdqn[box2d]'" if "Box2D" in str(error) else f"a package: {error}"
        raise MissingPackageError(f"{env_id} needs {remedy}") from error
    except Exception as error:  # whatever the constructor of somebody's environment raises
        raise UnsupportedEnvironmentError(f"{env_id} cannot be made: {type(error).__name__}: {error}") from error


def require_kind(wanted: Kind, spec: EnvSpec, preset: str) -> None:
    """A preset is for one kind of environment; those of Atari do for other images too, those of vectors for numbers."""
    if spec.kind != wanted and (wanted, spec.kind) not in (("atari", "image"), ("vector", "discrete")):
        raise ConfigError(
            f"preset {preset!r} is for {NAMES[wanted]}, this environment has {spec.kind} observations "
            f"of shape {spec.observation_shape}: choose another preset (`cdqn list presets`) or drop it"
        )


NAMES: dict[Kind, str] = {
    "vector": "vector observations",
    "discrete": "numbered states",
    "board": "boards such as MinAtar's",
    "image": "images",
    "atari": "Atari games",
}
