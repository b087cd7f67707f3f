"""Fuzz for as long as one likes: python tests/fuzz/run.py --minutes 60 --seed 0 --examples 500

Each round runs every fuzzer with another seed; the first failure ends it and prints the seed that repeats it.
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
    parser.add_argument("--examples", type=int, default=500, help="that each fuzzer looks at in a round")
    options = parser.parse_args()
    environment = os.environ | {"CDQN_FUZZ_EXAMPLES": str(options.examples)}
    end, seed = time.monotonic() + 60 * options.minutes, options.seed
    while True:
        command = [sys.executable, "-m", "pytest", "-q", "-x", str(FOLDER), f"--hypothesis-seed={seed}"]
        code = subprocess.run(command, cwd=FOLDER.parent.parent, env=environment, check=False).returncode
        if code:
            print(f"found something: python tests/fuzz/run.py --minutes 0 --seed {seed} --examples {options.examples}")
            return code
        print(f"seed {seed}: {options.examples} examples of each fuzzer, nothing found", flush=True)
        seed += 1
        if time.monotonic() > end:
            return 0


if __name__ == "__main__":
    sys.exit(main())
