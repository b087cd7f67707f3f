"""Training starts from the shell on environments that users know, with no file written; and their runs can be used.

Budgets are tiny: what is tested is that observations are understood, actions taken, and folders loaded by themselves.
"""

import json
from typing import NamedTuple

import pytest

from cdqn.cli.main import main
from cdqn.envs import names
from cdqn.report import learning_curve
from run_files import one_line

QUICK = ["--steps", "200", "--warmup-steps", "40", "--batch-size", "8", "--update-period-steps", "8", "--num-envs", "1"]
QUICK += ["--memory-size", "300", "--log-period-steps", "50", "--evaluation-episodes", "1", "--compile", "off"]
CHANNELS = ("--channels", "2", "2", "2")
SHORT = ("--steps", "24", "--warmup-steps", "12")
"""For environments that take their time."""
FEW_CARS = (*SHORT, "--env-kwargs", '{"config": {"duration": 3, "vehicles_count": 3}}')


class Known(NamedTuple):
    env_id: str
    seen: str
    """How observations are understood, as the first line on the screen says."""
    package: str | None = None
    flags: tuple[str, ...] = ()


KNOWN = [
    Known("FrozenLake-v1", "one-hot codes of 16, 4 actions · preset tabular"),
    Known("Taxi-v3", "one-hot codes of 500, 6 actions · preset tabular"),
    Known("CliffWalking-v1", "one-hot codes of 48, 4 actions · preset tabular"),
    Known("Blackjack-v1", "vectors of 45, 2 actions · preset classic-control"),
    Known("LunarLander-v3", "vectors of 8, 4 actions · preset classic-control", "Box2D"),
    Known(
        "CarRacing-v3",
        "images of 3×96×96, 5 actions · preset images",
        "Box2D",
        ("--env-kwargs", '{"continuous": false, "max_episode_steps": 10}', *SHORT, *CHANNELS, "--hidden", "8"),
    ),
    Known("MiniGrid-Empty-5x5-v0", "vectors of 151, 7 actions · preset classic-control", "minigrid"),
    Known("minigrid:MiniGrid-DoorKey-5x5-v0", "vectors of 151, 7 actions", "minigrid"),
    Known("highway-fast-v0", "vectors of 25, 5 actions · preset classic-control", "highway_env", FEW_CARS),
    Known("highway_env:merge-v1", "vectors of 25, 5 actions", "highway_env", SHORT),
    Known("MinAtar/Asterix-v1", "boards of 10×10×4, 5 actions · preset minatar", "minatar"),
    Known(
        "Pong",
        "images of 4×70×54, 6 actions · preset laptop · sticky actions 0",
        "ale_py",
        ("--time-limit-steps", "10", *SHORT, *CHANNELS, "--hidden", "8"),
    ),
    Known(
        "Pendulum-v1",
        "vectors of 3, 5 actions · preset classic-control",
        None,
        ("--wrapper", "gymnasium.wrappers:DiscretizeAction(bins=5)"),
    ),
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working directory, where no pictures are drawn."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(learning_curve, "learning_curve", lambda run, path: None)
    return tmp_path


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.env_id)
def test_training_starts_from_the_shell_and_says_how_it_understands_the_task(known, here, capsys):
    if known.package is not None:
        pytest.importorskip(known.package, reason=f"{known.env_id} needs {known.package}")
    assert main(["train", known.env_id, "--out", "run", *QUICK, *known.flags]) == 0
    assert known.seen in capsys.readouterr().out.splitlines()[0]
    assert json.loads((here / "run" / "config.json").read_text())["config"]["env_id"] == known.env_id


@pytest.mark.parametrize("env_id", ["MiniGrid-Empty-5x5-v0", "minigrid:MiniGrid-Empty-5x5-v0"])
def test_run_of_a_known_package_is_evaluated_resumed_and_played_without_permission(env_id, here, capsys):
    pytest.importorskip("minigrid", reason="MiniGrid needs minigrid")
    assert main(["train", env_id, "--out", "run", *QUICK]) == 0
    capsys.readouterr()
    assert main(["evaluate", "run", "--episodes", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 1
    assert main(["resume", "run", "--steps", "250"]) == 0
    assert main(["play", "run", "--video", "a.gif", "--max-steps", "3"]) == 0


def test_cliff_walking_gets_a_time_limit_unless_one_is_given(here):
    names._tell_of_time_limit.cache_clear()
    with pytest.warns(UserWarning, match="no time limit: episodes are cut off after 200 steps"):
        assert main(["train", "CliffWalking-v1", "--out", "run", *QUICK]) == 0
    rows = [json.loads(line) for line in (here / "run" / "metrics.jsonl").read_text().splitlines()]
    assert {row["length"] for row in rows if row["kind"] == "episode"} == {200}
    given = ["--env-kwargs", '{"max_episode_steps": 50}']
    assert main(["train", "CliffWalking-v1", "--out", "shorter", *QUICK, *given]) == 0
    rows = [json.loads(line) for line in (here / "shorter" / "metrics.jsonl").read_text().splitlines()]
    assert {row["length"] for row in rows if row["kind"] == "episode"} == {50}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["MiniGrid-Emty-5x5-v0"], ["there is no environment 'MiniGrid-Emty-5x5-v0'", "MiniGrid-Empty-5x5-v0"]),
        (["Pendulum-v1"], ["--wrapper 'gymnasium.wrappers:DiscretizeAction(bins=25)'"]),
        (["Pendulum-v1", "--wrapper", "DiscretizeAction(bins=3)"], ["it must be module:Name"]),
        (["Pendulum-v1", "--wrapper", "gymnasium.wrappers:DiscretizeAction(bins=n)"], ["cannot be read", "TimeLimit("]),
        (["Pendulum-v1", "--wrapper", "gymnasium.wrappers:DiscretizeAction"], ["cannot wrap Pendulum-v1", "bins"]),
        (["CartPole-v1", "--hidden", "--no-dueling"], ["a table is for numbered states", "--hidden 128 128"]),
        (["FrozenLake-v1", "--dueling"], ["a table of Q has no dueling streams", "--no-dueling"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_cannot_be_trained_is_one_line_with_what_would_work(arguments, words, here, capsys):
    if arguments[0].startswith("MiniGrid"):
        pytest.importorskip("minigrid", reason="MiniGrid needs minigrid")
    assert main(["train", *arguments, "--out", "run"]) == 1
    text = one_line(capsys)
    for word in words:
        assert word in text
