"""What a name means: an Atari game, an environment of a package that everybody knows, or code of one's own.

Names are Gymnasium's ids, module:id, module:Name, and games by their own names. `factory` makes what is found here.
"""

import difflib
import functools
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv

from cdqn.envs.atari import find_game, near_games
from cdqn.errors import MissingPackageError, UnsupportedEnvironmentError
from cdqn.integrations.optional import known_package, register_known
from cdqn.storage.named_code import import_module

EnvLike = str | gym.Env[Any, Any] | VectorEnv[Any, Any, Any]
TIME_LIMIT = 200
"""Steps of an episode in a known environment that has no limit of its own, as in the suite."""


def atari_game(env: EnvLike) -> str | None:
    """The ROM, if `env` names an Atari game."""
    if not isinstance(env, str) or ":" in env or (env in gym.registry and not _is_of_ale(env)):
        return None
    return find_game(env)


def module_of(env_id: str) -> str | None:
    """The module that making the environment imports, in "module:id", Gymnasium's way to name one's own.

    None for those that everybody knows: they are trusted as registered ids are, where they are installed.
    """
    return None if ":" not in env_id or known_package(env_id) else env_id.partition(":")[0]


def _is_of_ale(env_id: str) -> bool:
    """ale-py registers its games with Gymnasium as soon as it is imported."""
    return "ale_py" in str(gym.registry[env_id].entry_point)


def is_minatar(env_id: str) -> bool:
    return env_id.removeprefix("minatar:").startswith("MinAtar/")


def is_native(env_id: str) -> bool:
    """Ours, with a vector environment of its own. Those of others begin episodes by themselves, unseeded."""
    spec = gym.registry.get(env_id.rpartition(":")[2])
    return spec is not None and spec.namespace == "cdqn" and spec.vector_entry_point is not None


def find_maker(env_id: str) -> Callable[..., Any]:
    """What makes the environment: Gymnasium, if the id is known to it, or the class or function of that name."""
    module = module_of(env_id)
    if package := known_package(env_id):
        env_id = env_id.rpartition(":")[2]
        register_known(env_id, package)
    # The passive checker costs a third of a CartPole step; what matters of it is checked by us.
    by_id = partial(gym.make, env_id, disable_env_checker=True)
    if module is not None:
        env_id = env_id.partition(":")[2]
        try:
            code = import_module(module)
        except (ImportError, TypeError, ValueError) as error:  # the latter for names such as "" and "..a"
            raise UnsupportedEnvironmentError(
                f"no module {module!r} can be imported ({error}): check the name, or PYTHONPATH"
            ) from error
        own: Callable[..., Any] | None = getattr(code, env_id, None)
        if env_id not in gym.registry and callable(own):
            return own
    try:
        spec = gym.registry.get(env_id) or gym.spec(env_id)  # which accepts an id without version
        return partial(_with_time_limit, by_id) if _is_endless(spec) else by_id
    except gym.error.Error as error:
        # MinAtar's games have the names of Atari's: they are near only for who has asked for MinAtar.
        minatar = is_minatar(env_id)
        others = [n for n in gym.registry if not _is_of_ale(n) and n.startswith("MinAtar/") == minatar]
        near = difflib.get_close_matches(env_id, others, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else _atari_hint(env_id)
        raise UnsupportedEnvironmentError(
            f"there is no environment {env_id!r}: {hint} `cdqn list environments` shows those that are registered"
        ) from error


def _with_time_limit(make: Callable[..., Any], **kwargs: Any) -> Any:
    if "max_episode_steps" not in kwargs:
        _tell_of_time_limit()
    return make(**{"max_episode_steps": TIME_LIMIT, **kwargs})


@functools.cache  # once, however many are made
def _tell_of_time_limit() -> None:
    warnings.warn(
        f"the environment has no time limit: episodes are cut off after {TIME_LIMIT} steps; "
        """for another limit --env-kwargs '{"max_episode_steps": 1000}'""",
        stacklevel=2,
    )


def _is_endless(spec: Any) -> bool:
    """Gymnasium's CliffWalking alone: a policy that walks in circles would never end an evaluation."""
    return spec.max_episode_steps is None and str(spec.entry_point).startswith("gymnasium.envs.toy_text.cliffwalking")


def _atari_hint(env_id: str) -> str:
    """For a name that may be meant as that of a game."""
    try:
        return near_games(env_id)
    except MissingPackageError as error:
        return f"{error};"
