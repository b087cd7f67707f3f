"""Seconds that `import cdqn` takes once torch is loaded, and which optional packages it loads (none).

python benchmarks/import_time.py
"""

import statistics
import subprocess
import sys

OPTIONAL = ("tensorboard", "minatar", "stable_baselines3", "imageio_ffmpeg", "ale_py", "ray", "wandb", "pygame")
SCRIPT = f"""
import time, sys, torch
begin = time.perf_counter()
import cdqn
seconds = time.perf_counter() - begin
print(seconds, *[name for name in {OPTIONAL!r} if name in sys.modules])
"""


def main() -> None:
    lines = [
        subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(5)
    ]
    seconds = [float(line[0]) for line in lines]
    loaded = sorted({name for line in lines for name in line[1:]})
    print(f"import cdqn: median {statistics.median(seconds):.2f} s [{min(seconds):.2f} … {max(seconds):.2f}] of 5")
    print(f"optional packages loaded: {', '.join(loaded) or 'none'}")


if __name__ == "__main__":
    main()
