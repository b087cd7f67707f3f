"""Fixed data of CartPole or of a MinAtar game: C-DQN, DQN and RG beside d3rlpy's DQN and discrete CQL.

Three sets of rows for each seed: random play; expert, an agent of ours with 5 % of random actions; and mixed, half of
either. For CartPole 5000 rows, and the expert earns 475; for MinAtar 20 000, and it has learned for 100 000 steps. The
boards of MinAtar are vectors of 0 and 1 here, for both libraries, which have an MLP for them. Ours have their defaults;
d3rlpy's step size is 1e-3 as ours, and its target network is copied every 100 updates, since its default of 8000 would
not copy at all. Greedy return over 20 episodes after the updates, and the loss of the last tenth.

    python benchmarks/offline.py --seeds 5 --updates 5000 --out docs/data/offline.csv
    python benchmarks/offline.py --env MinAtar/SpaceInvaders-v1 --seeds 5 --out docs/data/offline_minatar.csv

d3rlpy 2.8.1 pins an older Gymnasium; it works with ours if installed beside it:

    pip install --no-deps d3rlpy==2.8.1 gym gym_notices structlog dataclasses-json marshmallow typing-inspect \\
        mypy-extensions scikit-learn joblib threadpoolctl colorama
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import torch
from gymnasium.wrappers import DtypeObservation, FlattenObservation
from minatar.gym import register_envs

import cdqn

register_envs()
CARTPOLE = "CartPole-v1"
OURS = {"C-DQN": cdqn.CDQN, "DQN": cdqn.DQN, "RG": cdqn.ResidualGradient}
NAMES = ("observations", "actions", "rewards", "next_observations", "terminations", "truncations")


def make(name):
    env = gymnasium.make(name)
    return env if name == CARTPOLE else DtypeObservation(FlattenObservation(env), np.float32)


def play(name, agent, epsilon, rows, seed):
    """So many rows of an agent's play, in order; without an agent all actions are random."""
    env, rng, found = make(name), np.random.default_rng(seed), []
    observation, _ = env.reset(seed=seed)
    for _ in range(rows):
        chance = agent is None or rng.random() < epsilon
        action = int(rng.integers(env.action_space.n)) if chance else agent.predict(observation)
        following, reward, terminated, truncated, _ = env.step(action)
        found.append((observation, action, reward, following, terminated, truncated))
        observation = env.reset()[0] if terminated or truncated else following
    found[-1] = (*found[-1][:5], True)  # cut off here
    return dict(zip(NAMES, map(np.array, zip(*found, strict=True)), strict=True))


def expert(name):
    """A DQN agent of seed 1000; that of CartPole as soon as it earns 475 over 20 episodes."""
    if name != CARTPOLE:
        return cdqn.DQN(make(name), seed=1000, steps=100_000).learn(100_000)
    agent = cdqn.DQN(name, seed=1000, steps=30_000)
    while agent.steps < 60_000:
        agent.learn(2_000)
        if agent.evaluate(20).mean >= 475:
            return agent
    raise SystemExit("the expert was not found: no data, no benchmark")


def data_of(env, kind, agent, seed):
    rows = 5_000 if env == CARTPOLE else 20_000
    if kind == "mixed":
        halves = (play(env, None, 1, rows // 2, 500 + seed), play(env, agent, 0.05, rows // 2, 600 + seed))
        return {name: np.concatenate([half[name] for half in halves]) for name in NAMES}
    return play(env, agent if kind == "expert" else None, 0.05, rows, 500 + seed)


def with_ours(env, name, data, seed, updates):
    agent = OURS[name].fit(data, make(env), updates=updates, seed=seed, log_period_steps=max(updates // 10, 1))
    last = [row for row in agent.history if row["kind"] == "progress"][-1]
    return agent.evaluate(20).mean, last["loss"]


def with_d3rlpy(env_name, name, data, seed, updates):
    import d3rlpy

    d3rlpy.seed(seed)
    config = d3rlpy.algos.DQNConfig if name == "d3rlpy DQN" else d3rlpy.algos.DiscreteCQLConfig
    model = config(learning_rate=1e-3, target_update_interval=100).create(device="cpu")
    episodes = d3rlpy.dataset.MDPDataset(
        data["observations"],
        data["actions"],
        data["rewards"],
        data["terminations"].astype(np.float32),
        (data["truncations"] & ~data["terminations"]).astype(np.float32),  # never both, it says
    )
    epochs = model.fit(
        episodes,
        n_steps=updates,
        n_steps_per_epoch=max(updates // 10, 1),
        show_progress=False,
        logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
    )
    env, returns = make(env_name), []
    for episode in range(20):
        observation, _ = env.reset(seed=9000 + episode)
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(int(model.predict(observation[None])[0]))
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    return float(np.mean(returns)), epochs[-1][1]["loss"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", default=CARTPOLE)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--updates", type=int, default=5000)
    parser.add_argument("--data", nargs="+", default=["random", "mixed", "expert"])
    parser.add_argument("--methods", nargs="+", default=[*OURS, "d3rlpy DQN", "d3rlpy CQL"])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    agent, found = expert(options.env), []
    earned = agent.evaluate(20, epsilon=0.05).mean
    print(f"the expert has learned for {agent.steps} steps, and earns {earned:.1f}", flush=True)
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for kind in options.data:
            data = data_of(options.env, kind, agent, seed)
            for name in options.methods:
                begun = time.perf_counter()
                learn = with_ours if name in OURS else with_d3rlpy
                mean, loss = learn(options.env, name, data, seed, options.updates)
                seconds = time.perf_counter() - begun
                row = {"data": kind, "method": name, "seed": seed, "updates": options.updates, "return": mean}
                found.append(row | {"loss": loss, "seconds": seconds})
                print(f"{kind:7} {name:11} seed {seed}: {mean:6.1f}  loss {loss:.4g}  {seconds:.0f} s", flush=True)
                if options.out:
                    with options.out.open("w", newline="") as file:
                        writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
                        writer.writeheader()
                        writer.writerows(found)


if __name__ == "__main__":
    main()
