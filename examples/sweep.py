"""A small sweep over two settings and two seeds, two processes at a time: python examples/sweep.py"""

from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context

import numpy as np
import torch

import cdqn


def train(n_step: int, learning_rate: float, seed: int, steps: int) -> float:
    """The mean return of the last policy."""
    torch.set_num_threads(1)  # one core for each run
    agent = cdqn.CDQN("CartPole-v1", n_step=n_step, learning_rate=learning_rate, seed=seed)
    return agent.learn(steps).evaluate(episodes=10).mean


def main(steps: int = 20_000, seeds: int = 2) -> dict[tuple[int, float], float]:
    settings = list(product((1, 3), (5e-4, 1e-3)))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        runs = {
            setting: [pool.submit(train, *setting, seed=1000 + seed, steps=steps) for seed in range(seeds)]
            for setting in settings
        }
        return {setting: float(np.mean([run.result() for run in group])) for setting, group in runs.items()}


if __name__ == "__main__":
    for (n_step, learning_rate), mean in main().items():
        print(f"n_step {n_step}  learning_rate {learning_rate:g}  mean return {mean:.0f}")
