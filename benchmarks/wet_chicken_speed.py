"""Seconds of one core per epoch of wet chicken (App. A.1) for 10 repeats: ours, and an ordinary PyTorch loop.

python benchmarks/wet_chicken_speed.py [--rounds 5] [--batches 10]

Both in this process, in turn, in pieces of a few batches; the best round counts, in CPU time, so that other programs on
the machine disturb little. `products` is a 1024×1024 matrix product in the same minute. The authors' code was measured
elsewhere, on a machine of the same kind: 0.8 s per epoch and repeat, 8 s for 10 repeats.
"""

import argparse
import copy
import csv
import itertools
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from cdqn import losses
from cdqn.algorithms import ALGORITHMS
from cdqn.experiments.wet_chicken.fitted_q import Data, FittedQ, StackedMLP, draw_parameters
from cdqn.experiments.wet_chicken.runs import GROUP_REPEATS, WetChickenSetting, generator, make_data

RESULTS = Path(__file__).parent / "results" / "wet_chicken_speed.csv"
AUTHORS_SECONDS = 8.0
"""Per epoch and algorithm, 10 repeats."""
REPEATS, SETTING = 10, WetChickenSetting()
WIDTHS = (1, *SETTING.hidden, 3)


def products_of(algorithm: str) -> float:
    """Floating-point operations of an epoch of 10 repeats, if no row is left out: a pass forward is one, back two."""
    passes = {"dqn": 1 + 2 + 1, "rg": 2 + 4, "cdqn": 2 + 4 + 1}[algorithm]
    forward = 2 * sum(a * b for a, b in itertools.pairwise(WIDTHS))
    return float(REPEATS * SETTING.transitions * passes * forward)


def cpu_seconds(function: Callable[[], object]) -> float:
    begin = time.process_time()
    function()
    return time.process_time() - begin


def ours(algorithm: str, data: Data) -> Callable[[], None]:
    """An epoch over `data` of one group of repeats."""
    network = StackedMLP([draw_parameters(generator(0, 1, repeat), WIDTHS) for repeat in range(GROUP_REPEATS)])
    learner = FittedQ(algorithm, network, data, SETTING.gamma, SETTING.batch_size)
    order = torch.stack([torch.randperm(data.state_RN.shape[1]) for _ in range(GROUP_REPEATS)])
    return lambda: learner.epoch(order, SETTING.learning_rate)


def plain(algorithm: str, data: Data) -> Callable[[], None]:
    """The same epoch of one repeat, as one would write it: a module, autograd, torch.optim.Adam."""
    layers: list[nn.Module] = []
    for fan_in, fan_out in itertools.pairwise(WIDTHS):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    module = nn.Sequential(*layers[:-1])
    adam = torch.optim.Adam(module.parameters(), lr=SETTING.learning_rate)
    columns = [column[0] for column in data]
    never = torch.zeros(SETTING.batch_size, dtype=torch.bool)

    def loss(state: Tensor, action: Tensor, reward: Tensor, following: Tensor, target: nn.Module) -> Tensor:
        facts = (reward, never, SETTING.gamma)
        q_B = losses.action_value(module(state.unsqueeze(1)), action)
        if algorithm != "rg":
            with torch.no_grad():
                y_dqn_B = losses.dqn_target(*facts, target(following.unsqueeze(1)))
            if algorithm == "dqn":
                return losses.dqn_loss(q_B, y_dqn_B, huber=False).loss.mean()
        y_msbe_B = losses.msbe_target(*facts, module(following.unsqueeze(1)))
        if algorithm == "rg":
            return losses.msbe_loss(q_B, y_msbe_B, huber=False).loss.mean()
        return losses.cdqn_loss(q_B, y_dqn_B, y_msbe_B, huber=False).loss.mean()

    def epoch() -> None:
        target = copy.deepcopy(module)
        order = torch.randperm(len(columns[0]))
        for index in order.split(SETTING.batch_size):
            adam.zero_grad()
            loss(*(column[index] for column in columns), target).backward()
            adam.step()

    return epoch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=10, help="of a piece; an epoch has 100")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(0)
    whole = make_data(SETTING, range(GROUP_REPEATS), seed=0)
    piece = Data(*(column[:, : arguments.batches * SETTING.batch_size].contiguous() for column in whole))
    epoch_per_piece = SETTING.transitions / piece.state_RN.shape[1]
    square = torch.randn(1024, 1024)
    rows = []
    print(f"seconds of one core per epoch, {REPEATS} repeats{'ours':>12}{'plain':>10}{'ratio':>8}{'GFLOP/s':>10}")
    peak = 0.0
    for algorithm in ALGORITHMS:
        runs = [(ours(algorithm, piece), REPEATS / GROUP_REPEATS), (plain(algorithm, piece), REPEATS)]
        best = [np.inf, np.inf]
        for _ in range(arguments.rounds + 1):  # the first warms up, and hardly ever counts
            for number, (run, groups) in enumerate(runs):
                best[number] = min(best[number], cpu_seconds(run) * groups * epoch_per_piece)
            peak = max(peak, 2 * 1024**3 / cpu_seconds(lambda: square @ square) / 1e9)
        rate = products_of(algorithm) / best[0] / 1e9
        print(
            f"{ALGORITHMS[algorithm].label:<42}{best[0]:>12.2f}{best[1]:>10.2f}{best[1] / best[0]:>8.1f}{rate:>10.1f}"
        )
        rows.append((algorithm, f"{best[0]:.3f}", f"{best[1]:.3f}", f"{rate:.1f}"))
    total = sum(float(row[1]) for row in rows)
    print(f"products 1024×1024: {peak:.1f} GFLOP/s")
    print(
        f"all three: {total:.2f} s of one core, {total / 2:.2f} s on two; the authors' code "
        f"{3 * AUTHORS_SECONDS:.0f} s (measured elsewhere): {3 * AUTHORS_SECONDS / (total / 2):.1f} times faster. "
        f"Paper scale, 2000 epochs, on two quiet cores: {total / 2 * 2000 / 3600:.1f} h"
    )
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("algorithm", "ours_cpu_seconds", "plain_cpu_seconds", "gflops"))
        writer.writerows(rows)


if __name__ == "__main__":
    main()
