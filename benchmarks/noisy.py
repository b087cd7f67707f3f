"""Control tasks in which the next state is random: DC-DQN beside C-DQN, DQN, RG and QRC (docs/denoised.md).

    python benchmarks/noisy.py --tasks FrozenLake4x4,FrozenLake8x8 --out runs/noisy
    python benchmarks/noisy.py --only-read --out runs/noisy --csv docs/data/denoised/noisy.csv \
        --figure docs/figures/noisy.png

For each task one `cdqn compare`, whose line is printed: every algorithm with its own defaults, seeds from --seed on,
a greedy evaluation of 100 episodes (30 where they are long) ten times in a run. What is there already is not run
again. The rows of the table are runs: the last evaluation, and the mean of all ten.
"""

import argparse
import csv
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

from cdqn.report.axes import figure_of, save
from cdqn.report.palette import appearance, in_order

HERE = Path(__file__).parent
ALGORITHMS = "dcdqn,cdqn,dqn,rg"
EVALUATIONS = 10
COLUMNS = 4
"""Of the picture."""


class GustyCartPole(gym.Wrapper):
    """CartPole of 500 steps in wind: with every step the cart and the pole get a kick, of normal distribution."""

    def __init__(self, gust: float = 0.1) -> None:
        super().__init__(gym.wrappers.TimeLimit(CartPoleEnv(), 500))
        self.gust = gust

    def step(self, action: Any) -> Any:
        cart = self.unwrapped
        x, speed, angle, turning = cart.state
        kicks = self.gust * cart.np_random.normal(size=2)
        cart.state = (x, speed + kicks[0], angle, turning + kicks[1])
        return super().step(action)


class Task(NamedTuple):
    """What is played, and for how long."""

    env_id: str
    steps: int
    settings: tuple[str, ...] = ()
    episodes: int = 100
    """Of an evaluation."""
    has_rival: bool = True
    """Whether QRC plays it too."""


TASKS = {
    "FrozenLake4x4": Task("FrozenLake-v1", 30_000),
    "FrozenLake8x8": Task("FrozenLake8x8-v1", 60_000),
    "SlipperyCliff": Task("CliffWalking-v1", 20_000, ("--env-kwargs", '{"is_slippery": true}')),
    "TaxiInRain": Task("Taxi-v3", 100_000, ("--env-kwargs", '{"is_rainy": true}')),
    "Blackjack": Task("Blackjack-v1", 30_000),
    "CartPoleInGusts": Task("noisy:GustyCartPole", 50_000, episodes=30),
    "LunarLanderInWind": Task(
        "LunarLander-v3", 100_000, ("--env-kwargs", '{"enable_wind": true}'), 30, has_rival=False
    ),
}


def command(name: str, arguments: argparse.Namespace) -> list[str]:
    """The comparison on a task, as a line for the shell."""
    task = TASKS[name]
    algorithms = arguments.algorithms or ALGORITHMS + (",rivals:QRC" if task.has_rival else "")
    period = task.steps // EVALUATIONS
    words = ["compare", task.env_id, "--algorithms", algorithms, "--seed", str(arguments.seed)]
    words += ["--seeds", str(arguments.seeds), "--steps", str(task.steps), "--evaluation-period-steps", str(period)]
    words += ["--evaluation-episodes", str(task.episodes), "--jobs", str(arguments.jobs), *task.settings]
    return [*words, *shlex.split(arguments.settings), "--out", str(arguments.out.resolve() / name)]


def read(folder: Path) -> list[dict[str, Any]]:
    """The runs of a comparison, one row each; a run that was not finished is left out."""
    rows = []
    for run in sorted(path.parent for path in folder.glob("*/metrics.jsonl")):
        config = json.loads((run / "config.json").read_text())["config"]
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        found = {row["step"]: row["mean"] for row in lines if row["kind"] == "evaluation"}
        if max(found, default=0) < config["steps"]:
            continue
        rows.append(
            {
                "task": folder.name,
                "algorithm": config["algorithm"].removeprefix("rivals:").lower(),
                "seed": config["seed"],
                "final": f"{found[max(found)]:.5g}",
                "mean_of_evaluations": f"{np.mean(list(found.values())):.5g}",
            }
        )
    return rows


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """A panel for each task: the last evaluation of each run, and their mean with its standard error."""
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    lines = -(-len(tasks) // COLUMNS)
    figure = figure_of(width=13, height=2.6 * lines + 0.3)
    panels = figure.subplots(lines, COLUMNS).ravel()
    for unused in panels[len(tasks) :]:
        unused.remove()
    for axes, task in zip(panels, tasks, strict=False):
        names = in_order(row["algorithm"] for row in rows if row["task"] == task)
        if min(float(row["final"]) for row in rows if row["task"] == task) < -300:  # a policy that never arrives
            axes.set_yscale("symlog", linthresh=10)
        for place, name in enumerate(names):
            values = [float(row["final"]) for row in rows if (row["task"], row["algorithm"]) == (task, name)]
            look = appearance(name, names)
            axes.plot([place] * len(values), values, "o", color=look.colour, alpha=0.3, markersize=4)
            error = np.std(values, ddof=1) / len(values) ** 0.5
            axes.errorbar(place, np.mean(values), error, fmt="_", color=look.colour, markersize=22, linewidth=2)
        labels = ["QRC" if name == "qrc" else appearance(name).label for name in names]
        axes.set_xticks(range(len(names)), labels)
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.set_title(task, fontsize=10.5, loc="left")
        axes.grid(color="#e6e6e6", linewidth=0.8, axis="y")
        axes.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--algorithms", help=f"default: {ALGORITHMS}, and QRC on the small tasks")
    parser.add_argument("--settings", default="", help="flags of `cdqn compare` for all of them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only-read", action="store_true", help="run nothing: gather what is there")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--csv", type=Path, help="where the table goes")
    parser.add_argument("--figure", type=Path, help="where the picture goes")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in arguments.tasks.split(","):
        folder = arguments.out / name
        words = ["resume", str(folder.resolve()), "--allow-import", "noisy", "--allow-import", "rivals"]
        words = words if folder.exists() else command(name, arguments)
        if not arguments.only_read:
            print("cdqn", shlex.join(words), flush=True)
            subprocess.run(
                [sys.executable, "-m", "cdqn", *words], cwd=HERE, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True
            )
        rows += read(folder)
    for name in dict.fromkeys(row["task"] for row in rows):
        for algorithm in dict.fromkeys(row["algorithm"] for row in rows):
            for column in ("final", "mean_of_evaluations"):
                values = [float(row[column]) for row in rows if (row["task"], row["algorithm"]) == (name, algorithm)]
                if values:
                    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
                    print(f"{name:<20}{algorithm:<8}{column:<22}{np.mean(values):9.4g} ± {error:.2g} ({len(values)})")
    if arguments.csv:
        arguments.csv.parent.mkdir(parents=True, exist_ok=True)
        with open(arguments.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    if arguments.figure:
        draw(rows, arguments.figure)


if __name__ == "__main__":
    main()
