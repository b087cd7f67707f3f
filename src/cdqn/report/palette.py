"""How each algorithm looks and in which order it stands, in every table and every picture."""

from collections.abc import Iterable
from typing import NamedTuple

from cdqn.algorithms import ALGORITHMS as _OURS


class Appearance(NamedTuple):
    """The name readers know an algorithm by, and its colour."""

    label: str
    colour: str


# In house order. The colours are Okabe and Ito's, which stay apart for readers with any of the common colour vision
# deficiencies.
ALGORITHMS = {name: Appearance(algorithm.label, algorithm.colour) for name, algorithm in _OURS.items()}
OTHER_COLOURS = ("#E69F00", "#56B4E9", "#000000")
"""For algorithms of users, by their names in order: a folder is read without importing their code."""


def appearance(algorithm: str, among: Iterable[str] = ()) -> Appearance:
    """How an algorithm looks beside others; one of a user's has the name of its class."""
    if algorithm in ALGORITHMS:
        return ALGORITHMS[algorithm]
    others = sorted({algorithm, *among} - set(ALGORITHMS))
    return Appearance(algorithm.rpartition(":")[2], OTHER_COLOURS[others.index(algorithm) % len(OTHER_COLOURS)])


def in_order(names: Iterable[str]) -> list[str]:
    """Each name once: ours in house order, then those of users."""
    names = set(names)
    return [name for name in ALGORITHMS if name in names] + sorted(names - set(ALGORITHMS))
