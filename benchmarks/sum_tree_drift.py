"""Does the sum tree of a memory drift? python benchmarks/sum_tree_drift.py --updates 100000000

Priorities as training sets them, log-normal, in batches of 32 at random slots of a memory of 10⁶; every tenth of the
way the root is compared with the exact sum of the leaves (math.fsum).
"""

import argparse
import math
import time

import numpy as np

from cdqn.replay.sum_tree import SumTree


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=100_000_000)
    parser.add_argument("--slots", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random, tree, batch = np.random.default_rng(options.seed), SumTree(options.slots), 32
    tree.set(np.arange(options.slots), random.lognormal(sigma=3, size=options.slots))
    begun, per_report, worst = time.perf_counter(), options.updates // 10, 0.0
    for report in range(1, 11):
        for _ in range(per_report // (1000 * batch)):
            slots = random.integers(options.slots, size=(1000, batch))
            values = random.lognormal(sigma=3, size=(1000, batch))
            for row in range(1000):
                tree.set(slots[row], values[row])
        exact = math.fsum(tree.leaves(options.slots))
        worst = max(worst, abs(tree.total - exact) / exact)
        print(f"{report * per_report:,} updates: relative error {abs(tree.total - exact) / exact:.1e}", flush=True)
    print(f"largest {worst:.1e}, {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
