"""Runs of games that nobody made: a return and a loss that are given."""

from pathlib import Path

import numpy as np

from cdqn.experiments.games.plans import FIGURES
from cdqn.experiments.games.results import Result
from cdqn.report.runs import Run


def make_run(returns, losses, warning=None):
    """A run whose records are these, at equal distances of 100 steps."""
    rows = [
        {"kind": "progress", "step": 100 * (i + 1), "return_mean": r, "loss": loss, "q_mean": 2.0, "q_bound": 10.0}
        for i, (r, loss) in enumerate(zip(returns, losses, strict=True))
    ]
    kinds = {"progress": rows}
    if warning:
        kinds["warning"] = [{"kind": "warning", "step": 100, "message": warning}]
    return Run(Path("nowhere"), {"env_id": "x", "algorithm": "cdqn", "seed": 0}, kinds)


def make_results(figure, behaviour, seeds=3):
    """The curves of a figure; `behaviour(line)` is the final return and the final loss of its runs."""
    results = []
    for line in FIGURES[figure].lines("laptop"):
        final, loss = behaviour(line)
        runs = {
            seed: make_run(np.linspace(0, final + 0.01 * seed, 40), np.geomspace(1.0, loss * (1 + 0.01 * seed), 40))
            for seed in range(seeds)
        }
        results.append(Result(line, runs))
    return results
