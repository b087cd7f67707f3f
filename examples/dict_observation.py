"""A Dict observation, and rewards scaled by Gymnasium's own wrapper: python examples/dict_observation.py"""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete

import cdqn


class Thermostat(gym.Env):
    """Keep a room at the wanted temperature by heating or not; the reward is minus the distance."""

    action_space = Discrete(2)
    observation_space = Dict({"room": Box(-30, 60, (1,), np.float32), "wanted": Discrete(3)})
    WANTED = (17.0, 20.0, 23.0)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.room, self.wanted, self.time = self.np_random.uniform(10, 30), int(self.np_random.integers(3)), 0
        return self._observe(), {}

    def step(self, action):
        self.room += (1.0 if action else -0.5) + 0.1 * self.np_random.normal()
        self.time += 1
        return self._observe(), -abs(self.room - self.WANTED[self.wanted]), False, self.time == 50, {}

    def _observe(self):
        return {"room": np.array([self.room], np.float32), "wanted": self.wanted}


def main(steps: int = 10_000) -> cdqn.EvaluationResult:
    # A Dict is flattened by itself, a Discrete part of it becomes one-hot. Wrappers are Gymnasium's.
    env = gym.wrappers.TransformReward(Thermostat(), lambda reward: reward / 10)
    return cdqn.CDQN(env, seed=0).learn(steps).evaluate(episodes=10)


if __name__ == "__main__":
    print(main())
