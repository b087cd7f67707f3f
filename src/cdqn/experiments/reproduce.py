"""Which figures and tables can be done again, and by which functions; loaded when they are asked for."""

import difflib
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from cdqn.errors import ConfigError
from cdqn.experiments.costs import Cost
from cdqn.experiments.request import Request
from cdqn.report.reproduction import Reproduction


class Figure(NamedTuple):
    """Where a figure is made; each function is named as module:function, the module as seen from this folder."""

    label: str
    """As the paper calls it."""
    section: str
    title: str
    experiment: str
    """Request → Reproduction."""
    picture: str
    """(reproduction, path) → None: writes it as PNG or PDF, by the suffix."""
    cost: str
    """(name, scale) → Cost, after a short measurement."""


def _game(label: str, section: str, title: str, name: str) -> Figure:
    return Figure(label, section, title, f"games.runs:{name}", "games.figure:draw", "costs:of_games")


FIGURES = {
    "fig1": Figure(
        "Fig. 1",
        "Sec. 3.1",
        "cliff walking: RG learns slowly",
        "section3.cliff_walking:fig1",
        "section3.figure:draw_fig1",
        "costs:of_tables",
    ),
    "fig2": Figure(
        "Fig. 2",
        "Sec. 3.2",
        "how that depends on γ",
        "section3.cliff_walking:fig2",
        "section3.figure:draw_fig2",
        "costs:of_tables",
    ),
    "fig3": Figure(
        "Fig. 3",
        "Sec. 3.2",
        "one-way cliff walking",
        "section3.cliff_walking:fig3",
        "section3.figure:draw_fig3",
        "costs:of_tables",
    ),
    "conditioning": Figure(
        "(no figure)",
        "Sec. 3.1, App. D",
        "condition numbers",
        "section3.conditioning:conditioning",
        "section3.figure:draw_conditioning",
        "costs:of_conditioning",
    ),
    "fig4": _game("Fig. 4", "Sec. 5.1", "C-DQN, DQN and RG on games", "fig4"),
    "fig5": _game("Fig. 5", "Sec. 5.2", "half of the transitions discarded", "fig5"),
    "fig6": _game("Fig. 6", "Sec. 5.2", "a memory that replaces at random", "fig6"),
    "fig7": _game("Fig. 7", "Sec. 5.3", "difficult games, with γ found automatically", "fig7"),
    "fig8": Figure(
        "Fig. 8",
        "App. A.1",
        "wet chicken: learning where s′ is random",
        "wet_chicken.runs:reproduce",
        "wet_chicken.figure:draw",
        "costs:of_wet_chicken",
    ),
    "fig9": Figure(
        "Fig. 9",
        "App. B.1",
        "cooling a quantum oscillator",
        "cooling.runs:fig9",
        "cooling.figure:draw_fig9",
        "costs:of_cooling",
    ),
    "controllers": Figure(
        "(no figure)",
        "App. B.1",
        "the controllers that cooling is compared with",
        "cooling.runs:compare_controllers",
        "cooling.figure:draw_controllers",
        "costs:of_controllers",
    ),
    "fig10": _game("Fig. 10", "App. B.2", "other games", "fig10"),
    "fig11": _game("Fig. 11", "App. B.3", "update periods of the target network", "fig11"),
    "table1": _game("Table 1", "App. B.4", "test scores", "table1")._replace(picture="games.figure:draw_table"),
    "fig13": _game("Fig. 13", "App. B.5", "a smaller step size", "fig13"),
    "fig14": _game("Fig. 14", "App. E.2", "ε_p of the original prioritization", "fig14"),
    "fig15": _game("Fig. 15", "App. E.3", "γ found automatically, other games", "fig15"),
}
"""In the order of the paper. Figure 12 is a screenshot."""


def check(figures: list[str]) -> None:
    """Refuse a figure that is not there, before the first of them is run."""
    for name in figures:
        if name not in FIGURES:
            near = difflib.get_close_matches(name.lower().replace(" ", "").replace(".", ""), FIGURES, n=2)
            hint = f"did you mean {' or '.join(near)}?" if near else f"choose from {', '.join(FIGURES)}"
            raise ConfigError(f"there is no figure {name!r} to reproduce: {hint}")


def run(name: str, request: Request) -> Reproduction:
    """Do the experiment of a figure."""
    check([name])
    reproduction: Reproduction = load(FIGURES[name].experiment)(request)
    return reproduction


def cost(name: str, scale: str) -> Cost:
    """What a figure takes at a scale, after a measurement of a second or two."""
    found: Cost = load(FIGURES[name].cost)(name, scale)
    return found


def draw(reproduction: Reproduction, path: Path) -> None:
    """Write the figure as PNG or PDF, by the suffix."""
    load(FIGURES[reproduction.name].picture)(reproduction, path)


def load(place: str) -> Any:
    """A function of an experiment, by its place."""
    module, function = place.split(":")
    return getattr(import_module(f"cdqn.experiments.{module}"), function)
