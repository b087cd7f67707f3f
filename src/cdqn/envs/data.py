"""The environment of an agent that has only ever seen data: it has spaces, and cannot be played."""

from collections.abc import Sequence
from typing import Any, NoReturn

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete

from cdqn.errors import UnsupportedEnvironmentError

DATA_ENV = "cdqn/Data-v0"
"""Its id, as run folders have it."""


class DataEnv(gym.Env[Any, Any]):
    """Spaces alone: arrays of a shape and type, or numbered states, and numbered actions."""

    def __init__(
        self,
        actions: int,
        shape: Sequence[int] | None = None,
        dtype: str = "float32",
        states: int | None = None,
        first_action: int = 0,
    ) -> None:
        self.action_space = Discrete(actions, start=first_action)
        kind: Any = np.dtype(dtype).type
        if states is not None:
            self.observation_space = Discrete(states)
        elif np.issubdtype(kind, np.integer):
            limits = np.iinfo(kind)
            self.observation_space = Box(limits.min, limits.max, tuple(shape or ()), kind)
        else:
            low, high = (0, 1) if kind is np.bool_ else (-np.inf, np.inf)
            self.observation_space = Box(low, high, tuple(shape or ()), kind)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> NoReturn:
        raise UnsupportedEnvironmentError(NOT_PLAYED)

    def step(self, action: Any) -> NoReturn:
        raise UnsupportedEnvironmentError(NOT_PLAYED)


NOT_PLAYED = (
    "this agent was trained on data alone, and there is no environment to play: name one, --env CartPole-v1, "
    "in Python evaluate(env=...) or cdqn.load(path, env=...)"
)
