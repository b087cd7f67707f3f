"""The authors' published curves, packed with the library; README.txt beside this file says where they are from."""

import csv
from functools import cache
from importlib.resources import files

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
