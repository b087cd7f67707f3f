"""stable-baselines3's DQN with the published tuned settings of rl-baselines3-zoo, on the suite's classic tasks.

The settings are those of rl_zoo3 2.9.2, hyperparams/dqn.yml; budget, evaluations and seeds are those of `cdqn suite`,
so that the two can be put side by side.

python benchmarks/zoo_comparison.py --seeds 5 --jobs 2 --out docs/data/zoo_dqn.csv
"""

import argparse
import csv
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from cdqn.runs.suite import EPISODES, EVALUATIONS
from cdqn.tasks.suite import TASKS

ZOO = {
    "CartPole": {
        "learning_rate": 2.3e-3,
        "batch_size": 64,
        "buffer_size": 100_000,
        "learning_starts": 1000,
        "gamma": 0.99,
        "target_update_interval": 10,
        "train_freq": 256,
        "gradient_steps": 128,
        "exploration_fraction": 0.16,
        "exploration_final_eps": 0.04,
    },
    "MountainCar": {
        "learning_rate": 4e-3,
        "batch_size": 128,
        "buffer_size": 10_000,
        "learning_starts": 1000,
        "gamma": 0.98,
        "target_update_interval": 600,
        "train_freq": 16,
        "gradient_steps": 8,
        "exploration_fraction": 0.2,
        "exploration_final_eps": 0.07,
    },
    "LunarLander": {
        "learning_rate": 6.3e-4,
        "batch_size": 128,
        "buffer_size": 50_000,
        "learning_starts": 0,
        "gamma": 0.99,
        "target_update_interval": 250,
        "train_freq": 4,
        "gradient_steps": -1,
        "exploration_fraction": 0.12,
        "exploration_final_eps": 0.1,
    },
}
ZOO["Acrobot"] = ZOO["LunarLander"]


def train(task_name: str, seed: int) -> list[tuple[str, str, int, int, str, float]]:
    """The evaluations of one run."""
    import gymnasium as gym
    import torch
    from stable_baselines3 import DQN
    from stable_baselines3.common.evaluation import evaluate_policy

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    task = TASKS[task_name]
    model = DQN(
        "MlpPolicy", task.env_id, policy_kwargs={"net_arch": [256, 256]}, seed=seed, device="cpu", **ZOO[task_name]
    )
    evaluation = gym.make(task.env_id)
    evaluation.reset(seed=10_000 + seed)
    rows = []
    period = task.steps // EVALUATIONS
    from stable_baselines3.common.callbacks import BaseCallback

    class Evaluate(BaseCallback):
        def _on_step(self) -> bool:
            if self.num_timesteps % period == 0:
                mean, _ = evaluate_policy(self.model, evaluation, EPISODES, deterministic=True, warn=False)
                rows.append((task_name, "sb3-zoo", seed, self.num_timesteps, "evaluation_mean", float(mean)))
            return True

    model.learn(task.steps, callback=Evaluate())
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tasks", default=",".join(ZOO))
    parser.add_argument("--out", type=Path, default=Path("docs/data/zoo_dqn.csv"))
    options = parser.parse_args()
    rows = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        futures = [pool.submit(train, name, seed) for seed in range(options.seeds) for name in options.tasks.split(",")]
        for future in as_completed(futures):
            rows += future.result()
            print(*rows[-1], flush=True)
            with open(options.out, "w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(("task", "algorithm", "seed", "step", "quantity", "value"))
                writer.writerows(sorted(rows))


if __name__ == "__main__":
    main()
