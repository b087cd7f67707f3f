"""What one training step costs in the prioritized memory, from ten thousand to ten million transitions.

    python benchmarks/replay_scaling.py                  # table on screen, benchmarks/results/replay_scaling.csv
    python benchmarks/replay_scaling.py --sizes 1000000

One measurement is `sample(32)` together with `update_priorities` of the 32 rows, predecessor rule on, in a full
memory with priorities spread over four decades. The rows drawn are all over the memory, as in training. The
promise: a median below 100 µs at a million, growing no faster than log N from the smallest size on.
"""

import argparse
import csv
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cdqn.replay import ArrayStore, PrioritizedReplay, Transitions

BATCH = 32
STREAMS = 4
EPISODE_STEPS = 200
OBSERVATION_SHAPE = (4,)
CHUNK = 100_000


def rows(rng: np.random.Generator, count: int, start: int) -> Transitions:
    """Transitions of `STREAMS` interleaved environments; `start` is the number of rows before them."""
    index = start + np.arange(count)
    observation = rng.standard_normal((count, *OBSERVATION_SHAPE)).astype(np.float32)
    return Transitions(
        observation=observation,
        action=rng.integers(2, size=count),
        reward=rng.random(count).astype(np.float32),
        next_observation=observation + 1,
        terminated=np.zeros(count, bool),
        stream=index % STREAMS,
        first=(index // STREAMS) % EPISODE_STEPS == 0,
    )


def td_errors(rng: np.random.Generator, count: int) -> np.ndarray:
    """Log-normal: most small, a few large, as in training."""
    return rng.lognormal(mean=-2.0, sigma=1.5, size=count).astype(np.float32)


def full_memory(rng: np.random.Generator, size: int) -> PrioritizedReplay:
    """A memory where every row is filled and every priority was computed from a TD error."""
    replay = PrioritizedReplay(ArrayStore(size, OBSERVATION_SHAPE, np.float32), rng=rng)
    for start in range(0, size, CHUNK):
        replay.add(rows(rng, min(CHUNK, size - start), start))
    for start in range(0, size, CHUNK):
        slots = np.arange(start, min(start + CHUNK, size))
        replay.update_priorities(slots, td_errors(rng, len(slots)))
    return replay


def microseconds(action: Callable[[int], None], repeats: int) -> np.ndarray:
    """Time of each call, after a tenth as many calls to warm up."""
    times = np.empty(repeats)
    for i in range(-(repeats // 10), repeats):
        start = time.perf_counter_ns()
        action(i)
        times[max(i, 0)] = time.perf_counter_ns() - start
    return times / 1e3


def measure(size: int, repeats: int, seed: int) -> dict[str, np.ndarray]:
    """Times in µs of the two things a training loop does with a memory of this size."""
    rng = np.random.default_rng(seed)
    replay = full_memory(rng, size)
    errors = [td_errors(rng, BATCH) for _ in range(64)]
    additions = [rows(rng, STREAMS, STREAMS * i) for i in range(64)]

    def sample_and_update(i: int) -> None:
        batch = replay.sample(BATCH, beta=0.5)
        replay.update_priorities(batch.slots, errors[i % 64])

    def add(i: int) -> None:
        replay.add(additions[i % 64])

    return {
        "sample_and_update_us": microseconds(sample_and_update, repeats),
        "add_4_us": microseconds(add, repeats),
    }


def main() -> None:
    """Measure, print, write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes_default = [10_000, 100_000, 1_000_000, 10_000_000]
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes_default, help="transitions in memory")
    parser.add_argument("--repeats", type=int, default=20_000, help="measurements per size")
    parser.add_argument("--seed", type=int, default=0)
    default_out = Path(__file__).parent / "results"
    parser.add_argument("--out", type=Path, default=default_out, help="folder of replay_scaling.csv")
    args = parser.parse_args()

    measure(1000, 100, args.seed)  # compile
    table: list[tuple[str, int, str, float]] = []
    smallest: tuple[int, dict[str, float]] | None = None
    header = f"{'quantity':<22}{'N':>10}{'median µs':>11}{'p10':>8}{'p90':>8}{'ratio':>8}{'log ratio':>11}"
    print(header)
    for size in args.sizes:
        times = measure(size, args.repeats, args.seed)
        medians = {quantity: float(np.median(values)) for quantity, values in times.items()}
        smallest = smallest or (size, medians)
        log_ratio = math.log(size) / math.log(smallest[0])
        for quantity, values in times.items():
            p10, p90 = np.percentile(values, [10, 90])
            median, ratio = medians[quantity], medians[quantity] / smallest[1][quantity]
            numbers = f"{size:>10}{median:>11.1f}{p10:>8.1f}{p90:>8.1f}{ratio:>8.2f}{log_ratio:>11.2f}"
            print(f"{quantity:<22}{numbers}", flush=True)
            statistics = {"median": median, "p10": p10, "p90": p90, "ratio": ratio, "log_ratio": log_ratio}
            table += [(quantity, size, name, round(float(value), 3)) for name, value in statistics.items()]

    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "replay_scaling.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["quantity", "setting", "statistic", "value"])
        writer.writerows((quantity, f"N={size}", name, value) for quantity, size, name, value in table)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
