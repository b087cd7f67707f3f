"""Actions of other kinds as a finite set: what to do is said in the error, for Python and for the shell."""

import math
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Space

from cdqn.errors import UnsupportedEnvironmentError

MOST_COMBINATIONS = 1_000
"""Each has an output of its own, and is tried by chance."""


class NumberedActions(gym.ActionWrapper[Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Several finite choices as one: their combinations, numbered."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)
        sizes = choices(env.action_space)
        if sizes is None:
            raise UnsupportedEnvironmentError(
                f"its actions are {env.action_space}: only those of MultiDiscrete and MultiBinary can be numbered"
            )
        if math.prod(sizes) > MOST_COMBINATIONS:
            raise UnsupportedEnvironmentError(
                f"its actions have {math.prod(sizes):,} combinations: at most {MOST_COMBINATIONS:,} can be learned; "
                "choose some of them with gymnasium.wrappers.TransformAction"
            )
        self.sizes = sizes
        self.action_space = Discrete(math.prod(sizes))

    def action(self, action: Any) -> Any:
        space = self.env.action_space
        digits = np.array(np.unravel_index(int(action), self.sizes), dtype=space.dtype)
        start = space.start if isinstance(space, MultiDiscrete) else 0
        return digits.reshape(space.shape) + np.asarray(start, dtype=space.dtype)


def choices(space: Space[Any]) -> tuple[int, ...] | None:
    """How many values each component has, where that is a finite number."""
    if isinstance(space, MultiDiscrete):
        return tuple(map(int, space.nvec.ravel()))
    return (2,) * math.prod(space.shape) if isinstance(space, MultiBinary) else None


def about_actions(space: Space[Any]) -> str:
    """Why actions are refused, and the lines that make them a finite set."""
    wanted = f"the environment has actions {space}: Q-learning needs a finite set, gymnasium.spaces.Discrete; "
    sizes = choices(space)
    if sizes is not None and math.prod(sizes) <= MOST_COMBINATIONS:
        return wanted + (
            f"number the {math.prod(sizes)} combinations: --wrapper cdqn.envs.actions:NumberedActions, in Python "
            "env = cdqn.envs.actions.NumberedActions(env)"
        )
    if isinstance(space, Box) and np.all(np.isfinite(space.low) & np.isfinite(space.high)):
        bins = max(2, round(25 ** (1 / max(1, math.prod(space.shape)))))
        if bins ** math.prod(space.shape) <= MOST_COMBINATIONS:
            return wanted + (
                f"choose some of them: --wrapper 'gymnasium.wrappers:DiscretizeAction(bins={bins})', in Python "
                f"env = gymnasium.wrappers.DiscretizeAction(env, bins={bins})"
            )
    return wanted + (
        "make a finite choice of them in a wrapper of your own, as with gymnasium.wrappers.TransformAction(env, "
        "lambda i: actions[i], gymnasium.spaces.Discrete(len(actions))), and name it with --wrapper my_module:MyWrapper"
    )
