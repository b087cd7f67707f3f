"""The authors' published curves, packed with the library; README.txt beside this file says where they are from."""

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]


@cache
def authors_curves(name: str) -> dict[tuple[str, str], Curve]:
    """`{(panel, series): (x, y)}` of a file such as "fig1_cliff_walking"."""
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with files(__package__).joinpath(f"{name}.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            points.setdefault((row["panel"], row["series"]), []).append((float(row["x"]), float(row["y"])))
    return {key: (np.array([x for x, _ in curve]), np.array([y for _, y in curve])) for key, curve in points.items()}


class AuthorsLine(NamedTuple):
    """One curve of one of their Atari runs."""

    section: str
    game: str
    algorithm: str
    variant: str
    """As their logs name it."""
    seed: int
    quantity: str
    """return or loss."""
    step_T: NDArray[np.float64]
    """Agent steps: a quarter of the frames."""
    value_T: NDArray[np.float64]


@cache
def authors_games() -> tuple[AuthorsLine, ...]:
    """Every curve of their Atari runs that is packed with the library."""
    points: dict[tuple[str, str, str, str, int, str], list[tuple[float, float]]] = {}
    with files(__package__).joinpath("games.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = (row["section"], row["game"], row["algorithm"], row["variant"], int(row["seed"]), row["quantity"])
            points.setdefault(key, []).append((float(row["step"]), float(row["mean"])))
    return tuple(AuthorsLine(*key, *np.array(curve).T) for key, curve in points.items())
