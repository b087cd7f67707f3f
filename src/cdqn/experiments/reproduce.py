"""Which figures can be done again, and by which functions; loaded when they are asked for."""

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from cdqn.errors import ConfigError
from cdqn.experiments.request import Request
from cdqn.report.reproduction import Reproduction


class Figure(NamedTuple):
    """Where a figure is made; each function is named as module:function."""

    experiment: str
    """Request → Reproduction."""
    picture: str
    """(reproduction, path) → None: writes it as PNG or PDF, by the suffix."""


FIGURES = {
    "fig1": Figure("cdqn.experiments.cliff_walking:fig1", "cdqn.report.section3:draw_fig1"),
    "fig2": Figure("cdqn.experiments.cliff_walking:fig2", "cdqn.report.section3:draw_fig2"),
    "fig3": Figure("cdqn.experiments.cliff_walking:fig3", "cdqn.report.section3:draw_fig3"),
    "fig8": Figure("cdqn.experiments.wet_chicken:reproduce", "cdqn.report.wet_chicken:draw"),
    "fig9": Figure("cdqn.experiments.cooling:fig9", "cdqn.report.cooling:draw_fig9"),
    "controllers": Figure("cdqn.experiments.cooling:compare_controllers", "cdqn.report.cooling:draw_controllers"),
    "conditioning": Figure("cdqn.experiments.conditioning:conditioning", "cdqn.report.section3:draw_conditioning"),
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
    return getattr(import_module(module), function)
