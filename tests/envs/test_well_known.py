"""Training starts from the shell on environments that users know, with no file written; and their runs can be used.

Budgets are tiny: what is tested is that observations are understood, actions taken and folders loaded.
"""

import json
from typing import NamedTuple

import pytest

from cdqn.cli.main import main

QUICK = ["--steps", "240", "--warmup-steps", "40", "--batch-size", "8", "--hidden", "8", "--update-period-steps", "8"]
QUICK += ["--num-envs", "2", "--memory-size", "300", "--log-period-steps", "60", "--evaluation-episodes", "1"]
QUICK += ["--checkpoint-period-steps", "1000", "--compile", "off"]
CHANNELS = ["--channels", "2", "2", "2"]


class Known(NamedTuple):
    env_id: str
    seen: str
    """How observations are understood, as the first line on the screen says."""
    flags: tuple[str, ...] = ()
    package: str | None = None


KNOWN = [
    Known("FrozenLake-v1", "one-hot codes of 16, 4 actions · preset tabular"),
    Known("Taxi-v3", "one-hot codes of 500, 6 actions · preset tabular"),
    Known("CliffWalking-v1", "one-hot codes of 48, 4 actions · preset tabular"),
    Known("Blackjack-v1", "one-hot codes of 45, 2 actions · preset tabular"),
    Known("LunarLander-v3", "vectors of 8, 4 actions · preset classic-control", package="Box2D"),
    Known(
        "CarRacing-v3",
        "images of 3×96×96, 5 actions · preset images",
        ("--env-kwargs", '{"continuous": false, "max_episode_steps": 20}', "--steps", "48", *CHANNELS),
        "Box2D",
    ),
    Known("MiniGrid-Empty-5x5-v0", "7 actions", package="minigrid"),
    Known("minigrid:MiniGrid-DoorKey-5x5-v0", "7 actions", package="minigrid"),
    Known("highway-fast-v0", "vectors of 25, 5 actions", ("--steps", "48"), "highway_env"),
    Known("highway_env:merge-v0", "vectors of 25, 5 actions", ("--steps", "48"), "highway_env"),
    Known("MinAtar/Asterix-v1", "boards of 10×10×4", package="minatar"),
    Known("Pong", "images of 4×70×54, 6 actions · preset laptop", ("--time-limit-steps", "30", *CHANNELS), "ale_py"),
    Known(
        "Pendulum-v1",
        "vectors of 3, 5 actions · preset classic-control",
        ("--wrapper", "gymnasium.wrappers:DiscretizeAction(bins=5)"),
    ),
]


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.env_id)
def test_training_starts_from_the_shell_and_the_run_can_be_evaluated(known, tmp_path, monkeypatch, capsys):
    if known.package is not None:
        pytest.importorskip(known.package)
    monkeypatch.chdir(tmp_path)
    assert main(["train", known.env_id, "--out", "run", *QUICK, *known.flags]) == 0
    assert known.seen in capsys.readouterr().out
    assert main(["evaluate", "run", "--episodes", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 1
