"""Mean return of a uniformly random policy on each task of the suite: the zero of its normalised scores.

python benchmarks/random_scores.py [--episodes 1000]
"""

import argparse

import numpy as np

from cdqn.envs import describe, make_vec
from cdqn.tasks.suite import TASKS
from cdqn.training.evaluation import evaluate


class Indifferent:
    """A policy that is never asked: ε is 1."""

    def greedy(self, observation):
        raise AssertionError("a random policy does not look")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=1000)
    episodes = parser.parse_args().episodes
    for task in TASKS.values():
        env = make_vec(task.env_id, 8)
        result = evaluate(Indifferent(), env, describe(env), episodes, seed=0, epsilon=1.0)
        env.close()
        spread = result.returns.std(ddof=1) / np.sqrt(episodes)
        print(f"{task.name:14} {result.mean:10.3f} ± {spread:.3f}", flush=True)


if __name__ == "__main__":
    main()
