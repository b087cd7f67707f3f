"""C-DQN on an environment of one's own, saved and loaded: python examples/own_environment.py"""

from pathlib import Path
from tempfile import TemporaryDirectory

import gymnasium as gym
import numpy as np

import cdqn


class Corridor(gym.Env):
    """Walk right along a corridor of 10 fields; the last one pays."""

    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.field, self.time = 0, 0
        return self._observe(), {}

    def step(self, action):
        self.field = max(self.field + (1 if action else -1), 0)
        self.time += 1
        goal = self.field == 9
        return self._observe(), float(goal), goal, self.time == 100, {}

    def _observe(self):
        return np.array([self.field / 9], np.float32)


def main(steps: int = 5_000) -> cdqn.EvaluationResult:
    agent = cdqn.CDQN(Corridor(), seed=0, hidden=(32, 32)).learn(steps)
    with TemporaryDirectory() as folder:
        run = agent.save(Path(folder) / "corridor")
        agent = cdqn.load(run, env=Corridor())  # made from an object: the object is needed again
    return agent.evaluate(episodes=10)


if __name__ == "__main__":
    print(main())
