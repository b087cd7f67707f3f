"""Small data sets for the tests of learning from fixed data."""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete

from helpers import WalkEnv

NAMES = ("observations", "actions", "rewards", "next_observations", "terminations", "truncations")
SMALL = {"hidden": (8,), "batch_size": 8, "log_period_steps": 20, "compile": "off", "evaluation_episodes": 2}
"""Settings of a run that is over in a moment."""


class TimedEnv(gym.Env):
    """Pays the number of the action; an episode has `length` steps."""

    length: int

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._seen(), {}

    def step(self, action):
        self.time += 1
        return self._seen(), float(action), self.time == self.length, False, {}


class FramesEnv(TimedEnv):
    """Shows small images of noise."""

    observation_space = Box(0, 255, (1, 36, 36), np.uint8)
    action_space = Discrete(2)
    length = 10

    def _seen(self):
        return self.np_random.integers(256, size=(1, 36, 36), dtype=np.uint8)


def record(env, rows=200, seed=0):
    """What a random policy sees, as arrays; rows are in order."""
    rng = np.random.default_rng(seed)
    table, observation = [], env.reset(seed=seed)[0]
    for episode in range(rows):
        action = int(env.action_space.start + rng.integers(env.action_space.n))
        following, reward, terminated, truncated, _ = env.step(action)
        table.append((observation, action, reward, following, terminated, truncated))
        over = terminated or truncated
        observation = env.reset(seed=seed + episode + 1)[0] if over else following
    return {name: np.array(column) for name, column in zip(NAMES, zip(*table, strict=True), strict=True)}


def walk(rows=200, seed=0):
    """Of a walk with 3 numbers and 2 actions, whose episodes end in both ways."""
    return record(WalkEnv(), rows, seed)


def shuffled(data, seed=0):
    """The same rows in another order."""
    order = np.random.default_rng(seed).permutation(len(data["rewards"]))
    return {name: column[order] for name, column in data.items()}
