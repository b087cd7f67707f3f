"""Two versions of this library against each other, alternating, each time in a process of its own.

git worktree add /tmp/old COMMIT
python benchmarks/between_versions.py /tmp/old/src src --repeats 6
"""

import argparse
import os
import statistics
import subprocess
import sys

PLAIN = "double_q=False, dueling=False, replay='uniform', exploration='epsilon', n_step=1, normalize_rewards=False"
WORK = {
    "CartPole, plain DQN, 64×64": (
        1,
        f"cdqn.DQN('CartPole-v1', hidden=(64, 64), update_period_steps=4, steps=40_000, compile='on', {PLAIN})",
        4_000,
        16_000,
    ),
    "Space Invaders, C-DQN, paper-5.1": (
        2,
        "cdqn.CDQN('SpaceInvaders', preset='paper-5.1', steps=100_000, warmup_steps=400, memory_size=5_000)",
        600,
        600,
    ),
}


def steps_per_second(source: str, threads: int, agent: str, first: int, steps: int) -> float:
    code = f"""
import time, torch
torch.set_num_threads({threads}); torch.set_flush_denormal(True)
import cdqn
agent = {agent}
agent.learn({first})
begun = time.perf_counter()
agent.learn({steps})
print({steps} / (time.perf_counter() - begun))
"""
    environment = os.environ | {"PYTHONPATH": os.path.abspath(source)}
    command = [sys.executable, "-W", "ignore", "-c", code]
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--repeats", type=int, default=6)
    options = parser.parse_args()
    for name, work in WORK.items():
        pairs = [
            [steps_per_second(source, *work) for source in (options.old, options.new)] for _ in range(options.repeats)
        ]
        ratios = sorted(new / old for old, new in pairs)
        old, new = (statistics.median(column) for column in zip(*pairs, strict=True))
        middle = statistics.median(ratios)
        print(
            f"{name}: {old:.0f} → {new:.0f} steps/s, ratio {middle:.2f} [{ratios[0]:.2f} … {ratios[-1]:.2f}]",
            flush=True,
        )


if __name__ == "__main__":
    main()
