"""Stop when the task is solved, keep the best agent, and look at every episode: python examples/early_stopping.py"""

from pathlib import Path
from tempfile import TemporaryDirectory

import cdqn
from cdqn.callbacks import KeepBest, StopAtReturn, StopWhenDiverging
from cdqn.training.events import Episode


class Longest:
    """A callback is anything that can be called with an event and the agent."""

    def __init__(self) -> None:
        self.length = 0

    def __call__(self, event, agent) -> None:
        if isinstance(event, Episode) and event.length > self.length:
            self.length = event.length


def main(steps: int = 50_000) -> tuple[int, int, float]:
    longest = Longest()
    agent = cdqn.CDQN("CartPole-v1", seed=0, evaluation_period_steps=max(steps // 20, 1_000), evaluation_episodes=5)
    with TemporaryDirectory() as folder:
        keep = KeepBest(Path(folder) / "best")
        agent.learn(steps, callbacks=[longest, keep, StopAtReturn(475), StopWhenDiverging()])
        best = cdqn.load(Path(folder) / "best")
    return agent.steps, longest.length, best.evaluate(episodes=10).mean


if __name__ == "__main__":
    print("stopped at step {}, longest episode {}, best agent {:.0f}".format(*main()))
