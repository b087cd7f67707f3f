"""Digests of the weights after short seeded runs: a rearrangement of the code must not change one of them.

python benchmarks/digests.py > before.txt        (then change the code)
python benchmarks/digests.py | diff before.txt -
"""

import hashlib
import tempfile
from pathlib import Path

import cdqn
from cdqn.algorithms import ALGORITHMS
from cdqn.config import Config

SMALL = {"warmup_steps": 200, "memory_size": 2_000, "log_period_steps": 100, "seed": 3}
TASKS = {
    "CartPole-v1": ({"hidden": (16, 16), "batch_size": 16}, 600),
    "MinAtar/Breakout-v1": ({"hidden": (16,), "batch_size": 16, "update_period_steps": 4}, 500),
    "Pong": ({"hidden": (16,), "channels": (4, 8, 8), "frame_size": (52, 40), "update_period_steps": 8}, 400),
}
VARIANTS = {
    "eager": {"compile": "off"},
    "compiled": {"compile": "on"},
    "n-step, uniform, mse": {"compile": "off", "n_step": 3, "replay": "uniform", "loss": "mse"},
}


def digest(agent: cdqn.agent.Agent) -> str:
    return hashlib.sha256(agent.weights.tobytes()).hexdigest()[:16]


def trained(env_id: str, settings: dict, steps: int) -> cdqn.agent.Agent:
    agent = cdqn.agent.Agent.from_config(env_id, Config(steps=steps, **settings))
    return agent.learn(steps)


def main() -> None:
    for env_id, (own, steps) in TASKS.items():
        for algorithm in ALGORITHMS:
            for name, variant in VARIANTS.items():
                if env_id == "Pong" and name == "compiled":
                    continue  # frames are never compiled by themselves
                settings = {**SMALL, **own, **variant, "algorithm": algorithm}
                print(f"{env_id:20} {algorithm:5} {name:22} {digest(trained(env_id, settings, steps))}", flush=True)
    settings = {**SMALL, "hidden": (16, 16), "compile": "off", "algorithm": "cdqn"}
    whole = trained("CartPole-v1", settings, 600)
    with tempfile.TemporaryDirectory() as folder:
        half = cdqn.agent.Agent.from_config("CartPole-v1", Config(steps=600, **settings)).learn(400)
        half.save(Path(folder) / "run")
        resumed = cdqn.load(Path(folder) / "run").learn(200)
    assert digest(resumed) == digest(whole), "a resumed run is not the uninterrupted one"
    print(f"{'resumed':20} {'cdqn':5} {'':22} {digest(resumed)}")


if __name__ == "__main__":
    main()
