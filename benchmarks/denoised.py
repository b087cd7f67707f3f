"""DC-DQN: does it stay bounded, how closely must V follow, and what does V cost? (docs/denoised.md)

    python benchmarks/denoised.py bounded --seeds 5 --out docs/data/denoised/bounded.csv
    python benchmarks/denoised.py lag --seeds 5 --out docs/data/denoised/lag.csv
    python benchmarks/denoised.py cost --out docs/data/denoised/cost.csv
    python benchmarks/denoised.py doubling --out docs/data/denoised/doubling.csv

`bounded` and `lag` train on 5000 transitions of random play in CartPole, half of all transitions never stored, where
DQN diverges: network 64-64, step size 3e-4, an exact copy every 20 updates, single steps, uniform replay, no double
Q-learning, no clipping. Setting A: Huber loss, γ 0.99, 15 000 updates. Setting C: half of the squared error, γ 0.999,
20 000 updates. Written are the mean of max Q(s) over the last 250 updates, the largest such mean of the run, the bound
r_max/(1−γ), the loss, the largest |v_lag| of the second half as a share of |Q|, and the greedy return over 20 episodes.

`doubling`: the smallest task on which DQN diverges, with V that can only fit what Q can.

`cost`: milliseconds per update of C-DQN and of DC-DQN, whose V has a network of its own or a second head on Q's
features, alternating, nothing but the update, one thread.
"""

import argparse
import csv
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import cdqn
from cdqn.algorithms import DCDQN, Algorithm
from cdqn.algorithms.base import TARGET_SETTINGS
from cdqn.envs import EnvSpec
from cdqn.experiments.demo.offline import collect_random
from cdqn.nn.networks import parameter_count
from cdqn.replay import Batch
from cdqn.training.learner import Learner

ENV = "CartPole-v1"
COMMON: dict[str, Any] = {
    "hidden": (64, 64),
    "dueling": False,
    "double_q": False,
    "n_step": 1,
    "replay": "uniform",
    "batch_size": 32,
    "learning_rate": 3e-4,
    "learning_rate_decay": 1.0,
    "adam_epsilon": 1e-8,
    "gradient_clip_norm": float("inf"),
    "target_period_updates": 20,
    "target_copy": "exact",
    "normalize_rewards": False,
    "compile": "on",
}
SETTINGS: dict[str, dict[str, Any]] = {"A": {"loss": "huber", "gamma": 0.99}, "C": {"loss": "mse", "gamma": 0.999}}
UPDATES = {"A": 15_000, "C": 20_000}
V_STEP_SIZES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
V_AVERAGES = (10, 30, 300, 1000)
SLOW_COPY_UPDATES = (20, 200, 5000)
ROW = 250
"""Updates over which statistics are averaged."""


class SharedTorso(DCDQN):
    v_shares_torso = True


def data_of(seed: int) -> Batch:
    rows = collect_random(ENV, 5000, seed).transitions
    count = len(rows.action)
    return Batch(
        rows.observation,
        rows.action,
        rows.reward.astype(np.float32),
        rows.next_observation,
        rows.terminated,
        np.ones(count, np.float32),
        np.arange(count),
    )


def update_v_alone(learner: Learner, batch: Batch) -> None:
    """A step of V towards the same target; Q, its moments and copies, and the count of updates stay."""
    length = parameter_count(learner.networks["q"])
    vectors = (learner.theta, learner.first_moment, learner.second_moment, learner.target, learner.slow)
    kept = [vector[:length].clone() for vector in vectors]
    learner.update(batch)
    for vector, own in zip(vectors, kept, strict=True):
        vector[:length] = own
    learner.updates -= 1


def trained(setting: str, algorithm: type[Algorithm], seed: int, updates: int, extra: int = 0) -> dict[str, Any]:
    """One run: what it came to."""
    idle = () if algorithm.has_target else TARGET_SETTINGS
    settings = {name: value for name, value in (COMMON | SETTINGS[setting]).items() if name not in idle}
    agent = cdqn.Agent(ENV, algorithm=algorithm, seed=seed, **settings)
    learner, data, rng = agent.trainer.learner, data_of(seed), np.random.default_rng(seed)
    learner.choose_backend(updates)

    def drawn() -> Batch:
        slots = rng.integers(len(data.action), size=COMMON["batch_size"])
        return Batch(*(column[slots] for column in data))

    rows = []
    for _ in range(updates // ROW):
        found = []
        for _ in range(ROW):
            for _ in range(extra):
                update_v_alone(learner, drawn())
            found.append(learner.update(drawn()).statistics)
        rows.append({name: statistics.fmean(one[name] for one in found) for name in found[0]})
    lags = [abs(row["v_lag"] / row["q_mean"]) for row in rows[len(rows) // 2 :] if "v_lag" in row]
    return {
        "q": rows[-1]["q_mean"],
        "largest_q": max(abs(row["q_mean"]) for row in rows),
        "bound": 1 / (1 - SETTINGS[setting]["gamma"]),
        "loss": rows[-1]["loss"],
        "lag_share": max(lags, default=None),
        "return": agent.evaluate(20).mean,
    }


def bounded(seeds: range, scale: float) -> Iterator[dict[str, Any]]:
    for setting, updates in UPDATES.items():
        for seed in seeds:
            for name in ("dqn", "cdqn", "rg", "dcdqn"):
                found = trained(setting, cdqn.algorithms.ALGORITHMS[name], seed, int(scale * updates))
                yield {"setting": setting, "algorithm": name, "seed": seed} | found


def lag(seeds: range, scale: float) -> Iterator[dict[str, Any]]:
    """V with other step sizes and averages, with slow copies of other paces, and with updates of its own."""
    studied = ("v_step_size", "v_average_updates", "slow_copy_updates")
    values = zip(studied, (V_STEP_SIZES, V_AVERAGES, SLOW_COPY_UPDATES), strict=True)
    variants = [(type("Variant", (DCDQN,), {name: one}), 0) for name, ones in values for one in ones]
    variants += [(DCDQN, extra) for extra in (1, 3)]
    for seed in seeds:
        for kind, extra in variants:
            found = trained("A", kind, seed, int(scale * UPDATES["A"]), extra)
            yield {name: getattr(kind, name) for name in studied} | {"extra_updates": extra, "seed": seed} | found


def doubling_end(algorithm: str, v_fits: bool, rate: float, period: int, slow_updates: int, updates: int) -> float:
    """|w| after gradient descent from 1 on the two states with Q = w and 2w, both of which lead to the second for 0.

    The loss is ½δ², the mean over the states, γ 0.99; w = 0 is right. V is exact, or the best that is proportional to
    Q, which is 6/5 of it. "denoised residual": DC-DQN's second term alone.
    """
    discount, w, target, slow = 0.99, 1.0, 1.0, 1.0
    denoised = algorithm not in ("dqn", "cdqn")
    for update in range(1, updates + 1):
        gradient = 0.0
        for feature in (1.0, 2.0):
            v = discount * (1.2 * feature if v_fits else 2.0) * slow
            reward = v - discount * 2 * slow if denoised else 0.0
            dqn = feature * w - reward - discount * 2 * target
            msbe = feature * w - reward - discount * 2 * w
            on_dqn_branch = algorithm == "dqn" or (algorithm != "denoised residual" and abs(dqn) >= abs(msbe))
            gradient += (dqn * feature if on_dqn_branch else msbe * (feature - discount * 2)) / 2
        w -= rate * gradient
        slow += (w - slow) / slow_updates
        target = w if update % period == 0 else target
        if abs(w) > 1e12:
            return float("inf")
    return abs(w)


def doubling() -> Iterator[dict[str, Any]]:
    algorithms = (("dqn", False), ("cdqn", False), ("dcdqn", False), ("dcdqn", True), ("denoised residual", True))
    for rate, period, slow_updates in ((0.02, 10, 100), (0.002, 10, 1000), (0.02, 100, 1000), (0.002, 100, 1000)):
        for algorithm, v_fits in algorithms:
            w = doubling_end(algorithm, v_fits, rate, period, slow_updates, round(400 / rate))
            settings = {"learning_rate": rate, "target_period": period, "slow_copy_updates": slow_updates}
            yield settings | {"algorithm": algorithm, "v": "fits" if v_fits else "exact", "w": w}


def random_batch(spec: EnvSpec, size: int) -> Batch:
    rng = np.random.default_rng(0)
    observation, following = (
        rng.integers(2, size=(size, *spec.observation_shape)).astype(spec.observation_dtype) for _ in range(2)
    )
    reward, weight = rng.normal(size=size).astype(np.float32), np.ones(size, np.float32)
    action, slots = rng.integers(spec.num_actions, size=size), np.arange(size)
    return Batch(observation, action, reward, following, rng.random(size) < 0.1, weight, slots)


def cost(repeats: int = 15) -> Iterator[dict[str, Any]]:
    """A network for vectors, MinAtar's and Atari's, each as its preset has it."""
    algorithms: dict[str, Any] = {"cdqn": "cdqn", "dcdqn": "dcdqn", "dcdqn, shared torso": SharedTorso}
    for env, preset, count in (("CartPole-v1", None, 400), ("MinAtar/Breakout-v1", None, 99), ("Pong", "paper-5.1", 5)):
        learners, times = {}, {name: [] for name in algorithms}
        for name, algorithm in algorithms.items():
            agent = cdqn.Agent(env, algorithm=algorithm, preset=preset, memory_size=1000, warmup_steps=100)
            agent.trainer.learner.choose_backend(10**6)
            learners[name] = agent.trainer.learner
        batch = random_batch(agent.spec, agent.config.batch_size)
        for repeat in range(repeats + 1):
            for name, learner in learners.items():
                begin = time.process_time()
                for _ in range(count):
                    learner.update(batch)
                if repeat:  # the first is for compiling
                    times[name].append((time.process_time() - begin) / count * 1e3)
        for name, learner in learners.items():
            ratios = sorted(mine / theirs for mine, theirs in zip(times[name], times["cdqn"], strict=True))
            yield {
                "network_of": env,
                "backend": learner.backend,
                "algorithm": name,
                "ms": statistics.median(times[name]),
                "ratio": statistics.median(ratios),
                "lowest": ratios[0],
                "highest": ratios[-1],
                "parameters": len(learner.theta),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["bounded", "lag", "cost", "doubling"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of updates")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    parts = {
        "bounded": lambda: bounded(seeds, arguments.scale),
        "lag": lambda: lag(seeds, arguments.scale),
        "cost": cost,
        "doubling": doubling,
    }
    rows = parts[arguments.part]()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with open(arguments.out, "w", newline="", encoding="utf-8") as file:
        writer = None
        for row in rows:
            shown = {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in row.items()}
            if writer is None:
                writer = csv.DictWriter(file, shown)
                writer.writeheader()
            writer.writerow(shown)
            file.flush()
            print(*(f"{name} {value}" for name, value in shown.items()), sep=" · ", flush=True)


if __name__ == "__main__":
    main()
