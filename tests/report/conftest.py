"""Synthetic run folders: a run is a few formulas of the step, so that every expected number is known."""

import json
from pathlib import Path

import numpy as np
import pytest


def progress(step, **values):
    """A progress row as a run writes it; a keyword overrides a quantity."""
    row = {
        "kind": "progress",
        "step": step,
        "update": step // 4,
        "episodes": step // 100,
        "return_mean": 100.0 + step / 100,
        "loss": 0.5,
        "dqn_share": 0.8,
        "q_mean": 34.0,
        "q_bound": 100.0,
        "epsilon": 0.1,
        "beta": 0.4,
        "gradient_norm": 1.5,
        "steps_per_second": 1000.0,
    }
    return row | values


def evaluation(step, returns):
    """An evaluation row, with its mean made from its returns."""
    mean = float(np.mean(returns))
    return {
        "kind": "evaluation",
        "step": step,
        "episodes": len(returns),
        "epsilon": 0.0,
        "mean": mean,
        "stderr": 1.0,
        "returns": list(returns),
        "lengths": [10] * len(returns),
    }


def episode(step, value):
    return {"kind": "episode", "step": step, "env": 0, "return": value, "length": 10, "ended": "terminated"}


def write_run(folder: Path, rows, algorithm="cdqn", seed=0, env_id="CartPole-v1", tail="", **settings) -> Path:
    """A run folder; `tail` is put behind the last row as it is, to play a kill or a damage."""
    folder.mkdir(parents=True)
    config = {
        "env_id": env_id,
        "algorithm": algorithm,
        "seed": seed,
        "steps": 1000,
        "gamma": 0.99,
        "num_envs": 4,
        **settings,
    }
    (folder / "config.json").write_text(json.dumps({"cdqn": "0.1.0", "config": config}))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + tail)
    return folder


class Rows:
    """The row makers as one fixture, so that test files need not import each other."""

    progress = staticmethod(progress)
    evaluation = staticmethod(evaluation)
    episode = staticmethod(episode)
    write = staticmethod(write_run)


@pytest.fixture
def make():
    return Rows


@pytest.fixture
def comparison_folder(tmp_path):
    """Three algorithms with three seeds each: C-DQN and RG stay calm, DQN leaves the bound behind."""
    for algorithm, growth in (("cdqn", 1.0), ("dqn", 10.0), ("rg", 0.9)):
        for seed in range(3):
            rows = []
            for step in range(100, 1001, 100):
                q = 34.0 * growth ** (step / 250) + seed
                rows.append(progress(step, q_mean=q, loss=0.1 * growth ** (step / 200) * (1 + seed)))
                rows.append(episode(step, 90.0 + seed))
            rows.append(evaluation(1000, [200.0 + seed, 202.0 + seed]))
            if algorithm == "dqn":
                rows.append({"kind": "warning", "step": 900, "message": "training diverges: Q is beyond its bound"})
            write_run(tmp_path / "compare" / f"{algorithm}-seed{seed}", rows, algorithm, seed)
    return tmp_path / "compare"
