"""Microseconds per update, eager and compiled, beside the time of the matrix products alone.

python benchmarks/update_speed.py
"""

import csv
import statistics
import time
from pathlib import Path
from typing import get_args

import numpy as np
import torch

from cdqn.algorithms import ALGORITHMS, Network
from cdqn.config import Config
from cdqn.nn.networks import make_network
from cdqn.replay import Batch
from cdqn.training.learner import Backend, Learner

RESULTS = Path(__file__).parent / "results" / "update_speed.csv"
OBSERVATION, ACTIONS, BATCH = 4, 2, 32


def microseconds(function: object, count: int, repeats: int = 5) -> float:
    """Median over repeats of the mean time of a call."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(count):
            function()  # type: ignore[operator]
        times.append((time.perf_counter() - begin) / count * 1e6)
    return statistics.median(times)


def random_batch(rng: np.random.Generator) -> Batch:
    observation, following = rng.normal(size=(2, BATCH, OBSERVATION)).astype(np.float32)
    return Batch(
        observation,
        rng.integers(ACTIONS, size=BATCH),
        rng.normal(size=BATCH).astype(np.float32),
        following,
        rng.random(BATCH) < 0.1,
        np.ones(BATCH, np.float32),
        np.arange(BATCH),
    )


def products(hidden: tuple[int, int], algorithm: str) -> float:
    """The matrix products of one update: forward at s (and s′), forward of θ̃, backward twice the forward."""
    rows = BATCH if algorithm == "dqn" else 2 * BATCH
    torch.manual_seed(0)
    total = 0.0
    for inputs, outputs in ((OBSERVATION, hidden[0]), (hidden[0], 2 * hidden[1])):
        x, w, g = torch.randn(rows, inputs), torch.randn(outputs, inputs), torch.randn(rows, outputs)
        y = x[:BATCH]
        forward = microseconds(lambda x=x, w=w: x @ w.T, 2000)
        extra = microseconds(lambda y=y, w=w: y @ w.T, 2000)
        weight_gradient = microseconds(lambda x=x, g=g: g.T @ x, 2000)
        input_gradient = microseconds(lambda g=g, w=w: g @ w, 2000) if inputs != OBSERVATION else 0.0
        total += forward + weight_gradient + input_gradient
        total += {"rg": 0.0, "cdqn": extra, "dqn": 2 * extra}[algorithm]
    return total


def main() -> None:
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    batch = random_batch(np.random.default_rng(0))
    rows = []
    print(
        f"{'network':<12}{'algorithm':<10}{'eager':>8}{'compiled':>10}{'products':>10}   µs per update, batch {BATCH}"
    )
    for hidden in ((64, 64), (128, 128), (256, 256)):
        for algorithm in ("cdqn", "dqn", "rg"):  # that of DC-DQN is in denoised.py
            times: dict[str, float] = {}
            for backend in get_args(Backend):
                torch.manual_seed(0)
                learner = Learner(
                    {"q": Network(make_network((OBSERVATION,), ACTIONS, hidden))}, Config(algorithm=algorithm)
                )
                learner.backend = backend
                for _ in range(20):
                    learner.update(batch)
                times[backend] = microseconds(lambda learner=learner: learner.update(batch), 300)
            times["products"] = products(hidden, algorithm)
            name = "×".join(map(str, hidden))
            numbers = "".join(f"{value:>10.0f}" for value in times.values())
            print(f"{name:<12}{ALGORITHMS[algorithm].label:<10}{numbers}")
            rows += [(name, algorithm, quantity, round(value, 1)) for quantity, value in times.items()]
    RESULTS.parent.mkdir(exist_ok=True)
    with open(RESULTS, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["network", "algorithm", "quantity", "microseconds"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
