"""γ, μ and σ as Alg. 1 and App. E.3 find them from 50 000 random steps, over several seeds.

    python benchmarks/automatic_discount.py [--games Skiing PrivateEye Venture Tennis] [--seeds 5]

Writes docs/data/automatic_discount.csv. The play is that of the warm-up of `paper-5.3`: 4 environments, uniformly
random actions, FIRE after a lost life. Frames are not looked at, so they are made small.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from cdqn.envs import describe, make_vec
from cdqn.training.collector import Collector
from cdqn.training.warmup import Calibration, RewardRecord, calibrate

TABLE = Path(__file__).parent.parent / "docs" / "data" / "automatic_discount.csv"
NUM_ENVS, STEPS, HORIZON_MULTIPLIER = 4, 50_000, 15


def find(game: str, seed: int) -> Calibration:
    """What the warm-up of one run would find."""
    env = make_vec(game, NUM_ENVS, preprocessing={"frame_size": (36, 36)})
    collector, record = Collector(env, describe(env), seed), RewardRecord(NUM_ENVS)
    rng = np.random.default_rng(seed)
    while collector.steps < STEPS:
        transitions, _, ended = collector.step(rng.integers(collector.spec.num_actions, size=NUM_ENVS))
        record.add(transitions.reward, transitions.terminated | ended, ended)
    return calibrate(record, HORIZON_MULTIPLIER)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", default=["Skiing", "PrivateEye", "Venture", "Tennis"])
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    with open(TABLE, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["game", "seed", "gamma", "mean", "scale", "reward_frequency", "games", "note"])
        for game in arguments.games:
            gammas = []
            for seed in range(arguments.seeds):
                found = find(game, seed)
                gammas.append(found.gamma)
                numbers = (found.gamma, found.mean, found.scale, found.reward_frequency)
                writer.writerow([game, seed, *(f"{number:.6g}" for number in numbers), found.episodes, found.note])
                file.flush()
            spread = np.std(gammas, ddof=1) if len(gammas) > 1 else 0.0
            print(
                f"{game:<12} γ {np.mean(gammas):.5f} ± {spread:.5f}  {' '.join(f'{g:.5f}' for g in gammas)}", flush=True
            )


if __name__ == "__main__":
    main()
