"""A search for settings, as `cdqn sweep` does it. Run again it goes on where it stopped: python examples/sweep.py"""

from pathlib import Path

from cdqn.runs.sweep import sweep
from cdqn.runs.sweep.trials import Trial, best_of

SPACE = {
    "learning_rate": {"low": 1e-4, "high": 1e-2, "log": True},
    "n_step": [1, 3, 5],
    "hidden": [[64, 64], [128, 128]],
}


def main(
    trials: int = 8, steps: int = 20_000, seeds: int = 2, jobs: int = 2, folder: str | Path = "runs/example-sweep"
) -> list[Trial]:
    """All trials; the first has the default settings."""
    return sweep("CartPole-v1", SPACE, folder, trials=trials, seeds=seeds, jobs=jobs, steps=steps)


if __name__ == "__main__":
    trials = main()
    for trial in trials:
        reached = f"return {trial.value:.0f}" if trial.value is not None else trial.state
        print(f"{trial.name}  {reached}  {trial.settings or 'the defaults'}")
    if best := best_of(trials):
        print(f"the best: {best.name}")
