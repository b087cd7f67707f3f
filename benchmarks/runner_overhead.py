"""What the runner of compare, suite and reproduce costs: the same runs by `cdqn compare --jobs 2` and by hand.

python benchmarks/runner_overhead.py --repeats 3

By hand: two shells, each of which trains its half of the runs one after the other with `cdqn train`. Every one of these
starts Python and imports PyTorch anew, and draws a picture; the runner does so once for each process, and draws one in
the end. So that the runner itself is measured, and not what it saves, each way is also timed with runs of two lengths:
the difference is time spent in training alone. Both ways alternate.
"""

import argparse
import csv
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

SEEDS = 4
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


def cdqn(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "cdqn", *arguments]


def finish(commands: Sequence[Sequence[str]]) -> None:
    """Run commands one after the other, in a shell of their own each time."""
    for command in commands:
        subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=True)


def by_the_runner(folder: Path, env_id: str, settings: Sequence[str]) -> None:
    runs = ("--algorithms", "cdqn", "--seeds", str(SEEDS), "--jobs", "2", "--out", str(folder / "runner"))
    finish([cdqn("compare", env_id, *runs, *settings)])


def by_hand(folder: Path, env_id: str, settings: Sequence[str]) -> None:
    commands = [
        cdqn("train", env_id, "--seed", str(seed), "--out", str(folder / f"hand-{seed}"), *settings)
        for seed in range(SEEDS)
    ]
    shells = [
        subprocess.Popen(
            [sys.executable, __file__, "--shell", *(shlex.join(command) for command in commands[half::2])],
            env=ENVIRONMENT,
        )
        for half in range(2)
    ]
    if any(shell.wait() for shell in shells):
        raise SystemExit("a run failed")


WAYS = {"runner": by_the_runner, "hand": by_hand}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--steps", type=int, nargs=2, default=(15_000, 45_000), help="a short and a long run")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--csv", type=Path, default=Path(__file__).parent / "results" / "runner_overhead.csv")
    parser.add_argument("--shell", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.shell:
        finish([shlex.split(command) for command in options.shell])
        return
    rows = []
    for repeat in range(options.repeats):
        for steps in options.steps:
            for way, run in WAYS.items():
                with tempfile.TemporaryDirectory() as folder:
                    begun = time.perf_counter()
                    run(Path(folder), options.env, ("--steps", str(steps)))
                    rows.append((way, steps, repeat, round(time.perf_counter() - begun, 2)))
                    print(*rows[-1], flush=True)
    with open(options.csv, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([("way", "steps", "repeat", "seconds"), *rows])
    seconds = {(way, steps, repeat): took for way, steps, repeat, took in rows}
    short, long = options.steps
    for text, of in {
        f"{SEEDS} runs of {long} steps, everything included": lambda way, r: seconds[way, long, r],
        "per step of training": lambda way, r: seconds[way, long, r] - seconds[way, short, r],
    }.items():
        ratios = sorted(of("runner", r) / of("hand", r) for r in range(options.repeats))
        print(
            f"{text}: runner / by hand {statistics.median(ratios):.3f} [{ratios[0]:.3f} … {ratios[-1]:.3f}]", flush=True
        )


if __name__ == "__main__":
    main()
