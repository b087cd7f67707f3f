"""What each copy to the target network does to the C-DQN loss: the paper's copy against the exact one.

    python benchmarks/target_copy.py                 # about a minute; writes benchmarks/results/target_copy.csv

A fixed data set of random CartPole transitions, full batch, float64, small steps of Adam: nothing but θ and
θ̃ changes. The loss is taken twice at each copy, with the target network of before and of after it.
"""

import argparse
import csv
import itertools
from pathlib import Path

import numpy as np
import torch

from cdqn.algorithms import Network, TensorBatch
from cdqn.config import Config
from cdqn.envs import describe, make_vec
from cdqn.nn.networks import MLP
from cdqn.replay import Batch
from cdqn.training.collector import Collector
from cdqn.training.learner import Learner

COLUMNS = (
    "target_copy",
    "learning_rate",
    "seed",
    "copies",
    "rises",
    "largest_relative_rise",
    "first_loss",
    "last_loss",
)


def cartpole_data(count: int, seed: int) -> Batch:
    """Transitions of the uniformly random policy."""
    env = make_vec("CartPole-v1", 4)
    collector = Collector(env, describe(env), seed)
    rng = np.random.default_rng(seed)
    harvest = [collector.step(rng.integers(2, size=4)).transitions for _ in range(count // 4)]
    observation, action, reward, after, terminated = (
        np.concatenate([getattr(rows, name) for rows in harvest])
        for name in ("observation", "action", "reward", "next_observation", "terminated")
    )
    return Batch(
        observation.astype(np.float64),
        action,
        reward.astype(np.float64),
        after.astype(np.float64),
        terminated,
        np.ones(len(action)),
        np.arange(len(action)),
    )


def make_learner(target_copy: str, period: int, learning_rate: float, seed: int) -> Learner:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = MLP(4, 2, (64, 64)).double()
    config = Config(
        target_copy=target_copy,
        target_period_updates=period,
        learning_rate=learning_rate,
        double_q=False,
        gamma=0.99,
        gradient_clip_norm=float("inf"),
        compile="off",
    )
    return Learner({"q": Network(network)}, config)


def mean_loss(learner: Learner, batch: TensorBatch) -> float:
    with torch.no_grad():
        return learner.assess(batch).loss.mean().item()


def measure(target_copy: str, seed: int, copies: int, period: int, learning_rate: float, size: int) -> dict:
    """Train through `copies` copies and compare the loss right before with that right after each."""
    batch = cartpole_data(size, seed)
    tensors = TensorBatch(*(torch.from_numpy(array) for array in batch[:6]))
    learner = make_learner(target_copy, period, learning_rate, seed)
    before_copying = make_learner(target_copy, period, learning_rate, seed)  # θ of now with θ̃ of before
    first_loss = mean_loss(learner, tensors)
    rises = []
    for _ in range(copies):
        before_copying.target.copy_(learner.target)
        for _ in range(period):
            learner.update(batch)
        before_copying.theta.copy_(learner.theta)
        before, after = mean_loss(before_copying, tensors), mean_loss(learner, tensors)
        rises.append((after - before) / before)
    return {
        "target_copy": target_copy,
        "learning_rate": learning_rate,
        "seed": seed,
        "copies": copies,
        "rises": sum(rise > 1e-12 for rise in rises),
        "largest_relative_rise": max(0.0, *rises),
        "first_loss": first_loss,
        "last_loss": after,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--copies", type=int, default=200)
    parser.add_argument("--period", type=int, default=10, help="updates between two copies")
    parser.add_argument("--learning-rates", type=float, nargs="+", default=[1e-4, 1e-3])
    parser.add_argument("--size", type=int, default=200, help="transitions in the data set")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "target_copy.csv")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with open(options.out, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        settings = itertools.product(("previous", "exact"), options.learning_rates, range(options.seeds))
        for target_copy, learning_rate, seed in settings:
            row = measure(target_copy, seed, options.copies, options.period, learning_rate, options.size)
            writer.writerow(row)
            print(
                f"{target_copy:>8}  learning rate {learning_rate:g}  seed {seed}: the loss rose at {row['rises']} "
                f"of {row['copies']} copies, by at most {100 * row['largest_relative_rise']:.2f} %  "
                f"({row['first_loss']:.3g} → {row['last_loss']:.3g})",
                flush=True,
            )


if __name__ == "__main__":
    main()
