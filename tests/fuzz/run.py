"""Fuzz for as long as one likes: python tests/fuzz/run.py --minutes 60 --seed 0

Each round runs every fuzzer, with a seed of its own, in two processes; the first failure ends it and prints the seed
that repeats it. A round that has begun is finished.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first round; the next has the next")
    parser.add_argument("--jobs", default="2")
    options = parser.parse_args()
    begun, seed = time.monotonic(), options.seed
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-n", options.jobs, "--dist", "worksteal", str(FOLDER)]
    while True:
        command = [*pytest, f"--hypothesis-seed={seed}"]
        environment = os.environ | {"CDQN_FUZZ_SEED": str(seed)}
        code = subprocess.run(command, cwd=FOLDER.parent.parent, env=environment, check=False).returncode
        if code:
            print(f"found something: python tests/fuzz/run.py --minutes 0 --seed {seed}")
            return code
        minutes = (time.monotonic() - begun) / 60
        print(f"seed {seed}: nothing found; {seed - options.seed + 1} rounds in {minutes:.0f} minutes", flush=True)
        if minutes > options.minutes:
            return 0
        seed += 1


if __name__ == "__main__":
    sys.exit(main())
