"""How each algorithm looks and in which order it stands, in every table and every picture."""

from typing import NamedTuple


class Appearance(NamedTuple):
    """The name readers know an algorithm by, and its colour."""

    label: str
    colour: str


# The order is the house order. The colours are Okabe and Ito's blue, vermilion and bluish green, which
# stay apart for readers with any of the common colour vision deficiencies.
ALGORITHMS = {
    "cdqn": Appearance("C-DQN", "#0072B2"),
    "dqn": Appearance("DQN", "#D55E00"),
    "rg": Appearance("RG", "#009E73"),
}
