"""Runs that differ in nothing but their seeds: a row of a table, a curve of a picture, with its name and its look."""

import colorsys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cdqn.errors import ConfigError
from cdqn.report.palette import ALGORITHMS, OTHER_COLOURS, appearance
from cdqn.report.runs import Run

DASHES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
"""Line styles of the variants of an algorithm."""


class Look(NamedTuple):
    """How a group is drawn."""

    colour: str
    dashes: Any = "solid"


class Group(NamedTuple):
    """An algorithm with some settings, over its seeds."""

    algorithm: str
    variant: dict[str, Any]
    """The settings that were varied, with their values; without those that do not act on the algorithm."""
    runs: list[Run]

    @property
    def label(self) -> str:
        """As readers see it: C-DQN, target period 5."""
        return ", ".join([appearance(self.algorithm).label, *self.variant_labels])

    @property
    def variant_labels(self) -> list[str]:
        """Each varied setting with its value: target period 5."""
        return [f"{setting_label(name)} {short(value)}" for name, value in self.variant.items()]


def setting_label(name: str) -> str:
    """A setting in words, without its unit."""
    return name.removesuffix("_updates").removesuffix("_steps").replace("_", " ")


def short(value: Any) -> str:
    """The value of a setting in few letters."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return "×".join(map(short, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def group_runs(runs: Iterable[Run], varied: Sequence[str] = ()) -> list[Group]:
    """Runs by algorithm and varied settings, in the order in which they come, after checking that means make sense."""
    runs = list(runs)
    environments = sorted({run.env_id for run in runs})
    if len(environments) > 1:
        raise ConfigError(
            f"runs of different environments ({', '.join(environments)}) cannot be averaged: "
            "compare those of one environment at a time"
        )
    groups: dict[str, Group] = {}
    for run in runs:
        variant = {name: run.config[name] for name in varied if run.config.get(name) is not None}
        group = groups.setdefault(f"{run.algorithm} {variant}", Group(run.algorithm, variant, []))
        for twin in group.runs:
            if twin.seed == run.seed:
                raise ConfigError(
                    f"{twin.path} and {run.path} are both {group.label} with seed {run.seed}: "
                    "a seed counts once, so move one of them elsewhere"
                )
        group.runs.append(run)
    return list(groups.values())


def looks(groups: Sequence[Group]) -> list[Look]:
    """Of each group. An algorithm has its colour; its variants have shades and dashes, or, where it is alone, hues."""
    algorithms = [group.algorithm for group in groups]
    found = []
    for index, algorithm in enumerate(algorithms):
        own = appearance(algorithm, algorithms).colour
        place = algorithms[:index].count(algorithm)
        if len(set(algorithms)) == 1:
            hues = [own, *(hue for hue in _HUES if hue != own)]
            found.append(Look(hues[place % len(hues)], DASHES[place // len(hues) % len(DASHES)]))
        else:
            shade = _shade(own, place, algorithms.count(algorithm))
            found.append(Look(shade, DASHES[place % len(DASHES)]))
    return found


_HUES = (*(look.colour for look in ALGORITHMS.values()), *OTHER_COLOURS)


def _shade(colour: str, place: int, count: int) -> str:
    """The colour itself for the first of several, and lighter ones, never too faint, for those that follow."""
    if place == 0:
        return colour
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    lighter = light + (0.78 - light) * place / max(1, count - 1)
    return "#" + "".join(f"{round(255 * part):02X}" for part in colorsys.hls_to_rgb(hue, lighter, saturation))


def differing_settings(groups: Sequence[Group]) -> str:
    """In which settings the algorithms differ, as a sentence, without those that were varied; empty if in none.

    What does not act on an algorithm is None in its configuration, and no difference.
    """
    varied = {name for group in groups for name in group.variant}
    configs: dict[str, Mapping[str, Any]] = {}
    for group in groups:
        configs.setdefault(group.algorithm, group.runs[0].config)
    names = dict.fromkeys(name for config in configs.values() for name in config)
    parts = []
    for name in names:
        acting = {key: config[name] for key, config in configs.items() if config.get(name) is not None}
        if name not in ("algorithm", "seed", *varied) and len({str(value) for value in acting.values()}) > 1:
            values = ", ".join(f"{appearance(key).label} {short(value)}" for key, value in acting.items())
            parts.append(f"{name} {values}")
    return "own settings: " + "; ".join(parts) if parts else ""
