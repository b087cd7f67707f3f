"""Figure 8 as numbers: its curves, and what came out beside what the paper says and the authors' curves show."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cdqn.algorithms import ALGORITHMS
from cdqn.report.reproduction import Claim, Point
from cdqn.report.statistics import Mean, mean_of

FloatArray = NDArray[np.float64]

LAST_PART = 0.05
"""Final numbers are means over this part of the epochs, the last 100 of 2000: a single evaluation fluctuates."""

# The authors' curves over the same epochs, 10 repeats: mean and standard error (report/authors/fig8_wet_chicken.csv).
AUTHORS = {
    "dqn": (14.64, 0.04),
    "cdqn": (13.97, 0.14),
    "rg": (10.57, 0.58),
    "cdqn-dqn": (53.5, 1.8),
    "cdqn-rg": (14.7, 1.1),
    "dqn-rg": (67.7, 1.0),
}
_DISTANCES = {"cdqn-dqn": "|Q_CDQN − Q_DQN|", "cdqn-rg": "|Q_CDQN − Q_RG|", "dqn-rg": "|Q_DQN − Q_RG|"}
EXCESS = "cdqn-dqn+cdqn-rg-dqn-rg"
"""|Q_CDQN − Q_DQN| + |Q_CDQN − Q_RG| − |Q_DQN − Q_RG|: zero where Q_CDQN lies between the other two."""


class Curves(NamedTuple):
    """What the experiment recorded, by algorithm; E evaluations, R repeats, X positions, A actions."""

    epoch_E: NDArray[np.int64]
    reward_ER: dict[str, FloatArray]
    q_ERXA: dict[str, FloatArray]

    def distances(self) -> dict[str, FloatArray]:
        """√Σ(Q₁ − Q₂)² over the positions 0 … 19 and the actions, for each repeat, and their `EXCESS`."""
        distance_ER = {}
        for pair in _DISTANCES:
            one, other = pair.split("-")
            if one in self.q_ERXA and other in self.q_ERXA:
                distance_ER[pair] = np.sqrt(((self.q_ERXA[one] - self.q_ERXA[other]) ** 2).sum((2, 3)))
        if len(distance_ER) < len(_DISTANCES):
            return distance_ER
        return distance_ER | {EXCESS: distance_ER["cdqn-dqn"] + distance_ER["cdqn-rg"] - distance_ER["dqn-rg"]}


def rows(curves: Curves) -> list[Point]:
    """Every curve of the figure."""
    quantities = {"average_reward": curves.reward_ER, "q_distance": curves.distances()}
    return [
        Point(name, f"{value_ER.shape[1]} repeats", int(epoch), quantity, *mean_of(value_R))
        for quantity, values in quantities.items()
        for name, value_ER in values.items()
        for epoch, value_R in zip(curves.epoch_E, value_ER, strict=True)
    ]


def judge(curves: Curves, scale: str) -> list[Claim]:
    """What App. A.1 says, with verdicts: on final numbers at the scale "paper" only, and none at all at "smoke"."""
    distances = curves.distances()
    numbers = [*_rewards(curves), *_final_distances(curves), *([_lies_between(curves)] if EXCESS in distances else [])]
    sentences = [*_orders(curves), *([_rises_and_falls(curves)] if "cdqn-dqn" in distances else [])]
    single = next(iter(curves.reward_ER.values())).shape[1] == 1  # has no standard error to judge by
    if scale != "paper" or single:
        numbers = [claim._replace(holds=None) for claim in numbers]
    if scale == "smoke" or single:
        sentences = [claim._replace(holds=None) for claim in sentences]
    return [*numbers, *sentences]


def last_part(curves: Curves, value_ER: FloatArray) -> FloatArray:
    """For each repeat the mean over the last epochs."""
    late_E = curves.epoch_E > (1 - LAST_PART) * curves.epoch_E[-1]
    value_R: FloatArray = value_ER[late_E].mean(0)
    return value_R


def _rewards(curves: Curves) -> list[Claim]:
    return [
        _beside_authors(f"final average reward of {ALGORITHMS[name].label}", name, last_part(curves, reward_ER))
        for name, reward_ER in curves.reward_ER.items()
    ]


def _final_distances(curves: Curves) -> list[Claim]:
    distances = curves.distances()
    return [
        _beside_authors(f"final {text}", pair, last_part(curves, distances[pair]))
        for pair, text in _DISTANCES.items()
        if pair in distances
    ]


def _beside_authors(text: str, name: str, value_R: FloatArray) -> Claim:
    """Holds within two standard errors of the difference."""
    found = mean_of(value_R)
    if name not in AUTHORS:
        return Claim(text, "not in the paper", f"{found:.2f}", None)
    authors = Mean(*AUTHORS[name])
    apart = abs(found.value - authors.value) / np.hypot(found.stderr, authors.stderr)
    return Claim(
        text, f"{authors:.2f} (authors' curve)", f"{found:.2f} ({apart:.1f} standard errors apart)", bool(apart <= 2)
    )


def _orders(curves: Curves) -> list[Claim]:
    """Paired by repeat: both algorithms have seen the same data."""
    claims = []
    for better, worse, said in (
        ("dqn", "rg", "RG significantly underperforms DQN"),
        ("dqn", "cdqn", "C-DQN is slightly worse than DQN"),
        ("cdqn", "rg", "C-DQN is better than RG"),
        ("dcdqn", "cdqn", "beyond the paper, DC-DQN is better than C-DQN"),
    ):
        if not {better, worse} <= set(curves.reward_ER):
            continue
        gain = mean_of(last_part(curves, curves.reward_ER[better] - curves.reward_ER[worse]))
        text = f"{said}: {ALGORITHMS[better].label} − {ALGORITHMS[worse].label}"
        claims.append(Claim(text, "> 0", f"{gain:.2f}", bool(gain.value > 2 * gain.stderr)))
    return claims


def _rises_and_falls(curves: Curves) -> Claim:
    distance_ER = curves.distances()["cdqn-dqn"]
    peak = int(distance_ER.mean(1).argmax())
    fall = mean_of(distance_ER[peak] - last_part(curves, distance_ER))
    epoch, epochs = curves.epoch_E[peak], curves.epoch_E[-1]
    early = bool(epoch <= epochs / 4)
    return Claim(
        "|Q_CDQN − Q_DQN| increases rapidly in the beginning and then slowly decreases",
        "130 at epoch 95, then down to 53 (authors' curve)",
        f"{distance_ER[peak].mean():.1f} at epoch {epoch} of {epochs}, then down by {fall:.2f}",
        early and bool(fall.value > 2 * fall.stderr),
    )


def _lies_between(curves: Curves) -> Claim:
    distances = curves.distances()
    excess_R, span_R = last_part(curves, distances[EXCESS]), last_part(curves, distances["dqn-rg"])
    share = float(excess_R.mean() / span_R.mean())
    return Claim(
        "Q_CDQN lies on the line from Q_DQN to Q_RG: |Q_CDQN − Q_DQN| + |Q_CDQN − Q_RG| − |Q_DQN − Q_RG| → 0",
        "0; the authors' curve: from 173 down to 0.55, 0.8 % of |Q_DQN − Q_RG|; holds below 2 %",
        f"from {distances[EXCESS].mean(1).max():.0f} down to {mean_of(excess_R):.2f}, "
        f"{100 * share:.1f} % of |Q_DQN − Q_RG|",
        share < 0.02,
    )
