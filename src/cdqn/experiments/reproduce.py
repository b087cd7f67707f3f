"""Which figures can be done again, and by which functions; loaded when they are asked for."""

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from cdqn.errors import ConfigError
from cdqn.experiments.request import Request
from cdqn.report.reproduction import Reproduction


class Figure(NamedTuple):
    """Where a figure is made; each function is named as module:function, the module as seen from this folder."""

    experiment: str
    """Request → Reproduction."""
    picture: str
    """(reproduction, path) → None: writes it as PNG or PDF, by the suffix."""


FIGURES = {
    "fig1": Figure("section3.cliff_walking:fig1", "section3.figure:draw_fig1"),
    "fig2": Figure("section3.cliff_walking:fig2", "section3.figure:draw_fig2"),
    "fig3": Figure("section3.cliff_walking:fig3", "section3.figure:draw_fig3"),
    "fig8": Figure("wet_chicken.runs:reproduce", "wet_chicken.figure:draw"),
    "fig9": Figure("cooling.runs:fig9", "cooling.figure:draw_fig9"),
    "controllers": Figure("cooling.runs:compare_controllers", "cooling.figure:draw_controllers"),
    "conditioning": Figure("section3.conditioning:conditioning", "section3.figure:draw_conditioning"),
}


def check(figures: list[str]) -> None:
    """Refuse a figure that is not there, before the first of them is run."""
    for name in figures:
        if name not in FIGURES:
            raise ConfigError(f"there is no figure {name!r} to reproduce: choose from {', '.join(FIGURES)}")


def run(name: str, request: Request) -> Reproduction:
    """Do the experiment of a figure."""
    check([name])
    reproduction: Reproduction = _load(FIGURES[name].experiment)(request)
    return reproduction


def draw(reproduction: Reproduction, path: Path) -> None:
    """Write the figure as PNG or PDF, by the suffix."""
    _load(FIGURES[reproduction.name].picture)(reproduction, path)


def _load(place: str) -> Any:
    module, function = place.split(":")
    return getattr(import_module(f"cdqn.experiments.{module}"), function)
