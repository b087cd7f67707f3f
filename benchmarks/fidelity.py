"""Training curves of runs of a game under paper-5.1, beside those of the authors where they published them.

    cdqn train SpaceInvaders --preset paper-5.1 --algorithm cdqn --seed 1 --until 200000 --out runs/cdqn    (dqn, rg)
    python benchmarks/fidelity.py space_invaders runs/cdqn runs/dqn runs/rg

Writes docs/data/GAME.csv (loss, return and share of the DQN branch in bins of 40 000 frames, as the authors logged
them) and docs/figures/GAME.png, and prints mean loss and score in bins of 200 000 frames, with the authors' loss of
docs/data/authors_GAME.csv, from their repository Z-T-WANG/ConvergentDQN, MIT licence. There is one of Space Invaders.
"""

import argparse
import csv
import json
from collections import defaultdict
from pathlib import Path

import matplotlib as mpl
import numpy as np

DOCS = Path(__file__).parent.parent / "docs"
FRAMES_PER_STEP = 4
FINE, COARSE = 40_000, 200_000
LABELS = {"cdqn": "C-DQN", "dqn": "DQN", "rg": "RG"}
COLOURS = {"cdqn": "#0072b2", "dqn": "#d55e00", "rg": "#009e73"}
AUTHORS_NAMES = {"CDQN": "cdqn", "DQN": "dqn", "RG": "rg"}


def binned(run: Path, width: int) -> tuple[str, dict[str, dict[int, float]]]:
    """Algorithm, and for each quantity the mean in each bin, by the frame at which the bin ends."""
    algorithm = json.loads((run / "config.json").read_text())["config"]["algorithm"]
    values: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in (run / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        end = -(-FRAMES_PER_STEP * row["step"] // width) * width
        if row["kind"] == "progress" and row["loss"] is not None:
            values["loss"][end].append(row["loss"])
            if row.get("dqn_share") is not None:
                values["dqn_share"][end].append(row["dqn_share"])
        elif row["kind"] == "episode":
            values["return"][end].append(row["return"])
    return algorithm, {name: {end: float(np.mean(v)) for end, v in bins.items()} for name, bins in values.items()}


def authors(game: str) -> dict[str, dict[str, dict[int, float]]]:
    """Algorithm → quantity → end of the bin → mean; empty for a game of which they published no data."""
    curves: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    path = DOCS / "data" / f"authors_{game}.csv"
    if not path.exists():
        return curves
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name = "loss" if row["quantity"] == "mse" else row["quantity"]
            curves[AUTHORS_NAMES[row["algorithm"]]][name][int(row["frames_hi"])] = float(row["mean"])
    return curves


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", help="as it stands in the names of the files: space_invaders")
    parser.add_argument("runs", type=Path, nargs="+")
    arguments = parser.parse_args()
    mpl.use("agg")
    import matplotlib.pyplot as plt

    theirs = authors(arguments.game)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    rows = []
    print("                        frames (million)     loss     score  authors' loss   ratio")
    for run in arguments.runs:
        algorithm, fine = binned(run, FINE)
        rows += [
            (algorithm, quantity, end, f"{value:.6g}") for quantity, bins in fine.items() for end, value in bins.items()
        ]
        ends = sorted(fine["loss"])
        left.plot(
            [(end - FINE / 2) / 1e6 for end in ends],
            [fine["loss"][end] for end in ends],
            color=COLOURS[algorithm],
            label=LABELS[algorithm],
        )
        coarse = binned(run, COARSE)[1]
        last = FRAMES_PER_STEP * max(json.loads(x)["step"] for x in (run / "metrics.jsonl").read_text().splitlines())
        for axes, quantity in ((left, "loss"), (right, "return")):
            known = {end: v for end, v in theirs[algorithm][quantity].items() if end <= last}
            axes.plot(
                [(end - COARSE / 2) / 1e6 for end in known],
                list(known.values()),
                "o",
                mfc="none",
                color=COLOURS[algorithm],
            )
        bins = coarse["return"]
        right.plot([(end - COARSE / 2) / 1e6 for end in bins], list(bins.values()), color=COLOURS[algorithm])
        for end in sorted(coarse["loss"]):
            mine, reference = coarse["loss"][end], theirs[algorithm]["loss"].get(end)
            beside = "" if reference is None else f"{reference:>15.4f}{mine / reference:>8.2f}"
            interval = f"{(end - COARSE) / 1e6:.1f}–{end / 1e6:.1f}"
            print(f"{LABELS[algorithm]:<24}{interval:<16}{mine:>10.4f}{coarse['return'][end]:>10.1f}{beside}")
    left.set(yscale="log", xlabel="million frames", ylabel="loss", title="logged loss")
    right.set(xlabel="million frames", ylabel="score", title="training score")
    if any(curves["loss"] for curves in theirs.values()):
        left.plot([], [], "o", mfc="none", color="grey", label="authors, means over 0.2 million")
    left.legend(frameon=False)
    figure.savefig(DOCS / "figures" / f"{arguments.game}.png", dpi=120)
    with open(DOCS / "data" / f"{arguments.game}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["algorithm", "quantity", "frames_hi", "mean"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
