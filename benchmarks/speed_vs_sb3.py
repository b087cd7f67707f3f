"""Steps per second on CartPole against stable-baselines3's DQN: the same work, alternating, in one process.

    python benchmarks/speed_vs_sb3.py [--repeats 5] [--steps 20000]

Both learn plain DQN (no double Q, no dueling, uniform replay, Huber loss, Adam) with the same network, batch 32,
one update for every 4 steps and the same period of the target network, on one thread. stable-baselines3 runs with
4 environments, as we do, and with 1, as it does by default. What each spends on its first steps (compilation
included) is not counted. C-DQN with all that is on by default (dueling, double Q, prioritized replay) is measured
beside them: that is more work, and what a user gets.
"""

import argparse
import csv
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import stable_baselines3
import torch
from stable_baselines3.common.env_util import make_vec_env

import cdqn

WARMUP_STEPS = 4_000
RESULTS = Path(__file__).parent / "results" / "speed_vs_sb3.csv"
Run = Callable[[int], None]


def peer(num_envs: int, width: int) -> Run:
    """stable-baselines3's DQN; returns a function that trains it further."""
    model = stable_baselines3.DQN(
        "MlpPolicy",
        make_vec_env("CartPole-v1", num_envs, seed=0),
        learning_rate=1e-3,
        buffer_size=100_000,
        learning_starts=1_000,
        batch_size=32,
        train_freq=4 // num_envs,
        gradient_steps=1,
        target_update_interval=200,
        exploration_fraction=0.01,
        exploration_final_eps=0.05,
        policy_kwargs={"net_arch": [width, width]},
        device="cpu",
        seed=0,
    )
    return lambda steps: model.learn(steps, reset_num_timesteps=False, log_interval=10**9) and None


def ours(agent_class: type[cdqn.Agent], width: int, **settings: object) -> Run:
    """One of our agents; returns a function that trains it further."""
    common = {
        "learning_rate": 1e-3,
        "batch_size": 32,
        "update_period_steps": 4,
        "target_period_updates": 50,
        "steps": 1_000_000,
        "seed": 0,
    }
    agent = agent_class("CartPole-v1", hidden=(width, width), **(common | settings))
    return lambda steps: agent.learn(steps) and None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--widths", type=int, nargs="+", default=[64, 128])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    rows = []
    for width in arguments.widths:
        plain = {"double_q": False, "dueling": False, "replay": "uniform"}
        plain |= {"n_step": 1, "exploration": "epsilon", "normalize_rewards": False}
        runs = {
            "stable-baselines3 DQN, 4 environments": peer(4, width),
            "stable-baselines3 DQN, 1 environment": peer(1, width),
            "cdqn DQN, the same work": ours(cdqn.DQN, width, **plain),
            "cdqn C-DQN, defaults": ours(cdqn.CDQN, width),
        }
        speeds: dict[str, list[float]] = {name: [] for name in runs}
        for run in runs.values():
            run(WARMUP_STEPS)
        for _ in range(arguments.repeats):
            for name, run in runs.items():
                begin = time.perf_counter()
                run(arguments.steps)
                speeds[name].append(arguments.steps / (time.perf_counter() - begin))
        print(f"\nCartPole-v1, {width}×{width}, {arguments.repeats} alternating repeats of {arguments.steps} steps")
        references = list(runs)[:2]
        for name, values in speeds.items():
            line = f"  {name:<40}{statistics.median(values):>8.0f} steps/s [{min(values):.0f} … {max(values):.0f}]"
            if name in references:
                print(line)
                continue
            for reference in references:
                ratios = [a / b for a, b in zip(values, speeds[reference], strict=True)]
                line += f"  {statistics.median(ratios):.2f}× [{min(ratios):.2f} … {max(ratios):.2f}]"
                rows += [(width, name, reference, i, ratio) for i, ratio in enumerate(ratios)]
            print(line)
        rows += [(width, name, "steps/s", i, v) for name, values in speeds.items() for i, v in enumerate(values)]
    print("\nratios: to stable-baselines3 with 4 environments, and with 1; median [smallest … largest] of the repeats")
    RESULTS.parent.mkdir(exist_ok=True)
    with open(RESULTS, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["width", "algorithm", "quantity", "repeat", "value"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
