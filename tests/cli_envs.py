"""Environments for the tests of the command line, registered on import (`cli_envs:ID`)."""

import os
import signal
from pathlib import Path

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Text


class Line(gym.Env):
    """A walk on a line: action 1 pays. Episodes of 10 steps. What goes wrong at step 300 is set by a subclass."""

    observation_space = Box(-1, 1, (2,), np.float32)
    action_space = Discrete(2)
    steps_made = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._observe(), {}

    def step(self, action):
        type(self).steps_made += 1
        self.time += 1
        return self._observe(), self._pay(action), False, self.time == 10, {}

    def _observe(self):
        return self.np_random.uniform(-1, 1, 2).astype(np.float32)

    def _pay(self, action):
        return float(action)


class NaNReward(Line):
    def _pay(self, action):
        return float("nan") if self.steps_made > 2500 else float(action)


class InfiniteObservation(Line):
    def _observe(self):
        observation = super()._observe()
        if self.steps_made > 2500:
            observation[1] = np.inf
        return observation


class Dies(Line):
    """Kills its own process after 700 steps, once for each file deaths/* of the working directory."""

    def _pay(self, action):
        if self.steps_made > 700 and (deaths := sorted(Path("deaths").glob("*"))):
            deaths[0].unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return float(action)


class AlwaysDies(Line):
    def _pay(self, action):
        os.kill(os.getpid(), signal.SIGKILL)


class Raises(Line):
    def _pay(self, action):
        raise RuntimeError("the game\nhas crashed")


class DictObservation(Line):
    observation_space = Dict({"mission": Text(20)})


class TextTypedObservation(Line):
    observation_space = Box(-1, 1, (2,), np.float16)


class Picture(Line):
    observation_space = Box(0, 1, (84, 84, 3), np.float32)


for environment in (
    Line,
    Dies,
    AlwaysDies,
    Raises,
    NaNReward,
    InfiniteObservation,
    DictObservation,
    TextTypedObservation,
    Picture,
):
    gym.register(f"{environment.__name__}-v0", entry_point=environment)
