"""Figures of games: return and loss, a column for each game; the authors' curves on theirs, or beside ours."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cdqn.report.authors import AuthorsLine, authors_games
from cdqn.report.axes import GREY, INK, decorate, figure_of, save, tick_log_axis
from cdqn.report.palette import appearance
from cdqn.report.reproduction import Point, Reproduction, select

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 2, 1, 2)))
"""Of the variants of an algorithm, in their order."""
QUANTITIES = ("return", "loss")
# Where the authors' curves of a figure stand in their logs: section, their variant → ours.
AUTHORS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "fig4": (("5.1", "default", ""),),
    "fig5": (("5.2", "half_data_discarded", ""),),
    "fig6": (
        ("5.2", "RandReplace", "random"),
        ("5.2", "smallerFIFO", "small fifo"),
        ("5.2", "smallerRandReplace", "small random"),
    ),
    "fig7": (("5.3", "default", ""),),
    "fig11": (
        ("5.1", "default", "period 2000"),
        ("B.3", "target_update_200_updates", "period 200"),
        ("B.3", "target_update_20_updates", "period 20"),
    ),
    "fig13": (("B.5", "lr_2e-5", "lr 2e-5"),),
    "fig14": tuple(("E.2", f"prio_eps_{epsilon}", f"ε_p {epsilon}") for epsilon in ("1e-8", "1e-6", "1e-4")),
}
ALGORITHMS_SHOWN = {"fig11": ("cdqn", "dqn"), "fig13": ("cdqn",)}
"""Where a figure shows less of a section than its logs hold."""
LETTERS_PER_INCH = 11
"""Of a caption."""


def authors_lines(figure: str) -> list[AuthorsLine]:
    """The authors' curves of a figure, with our names of its variants."""
    wanted = {(section, theirs): ours for section, theirs, ours in AUTHORS.get(figure, ())}
    shown = ALGORITHMS_SHOWN.get(figure, ("cdqn", "dqn", "rg"))
    return [
        line._replace(variant=wanted[line.section, line.variant])
        for line in authors_games()
        if (line.section, line.variant) in wanted and line.algorithm in shown
    ]


def published(figure: str) -> list[Point]:
    """The authors' curves as data, under our names."""
    return [
        Point(line.algorithm, _setting(line), step, line.quantity, value, float("nan"))
        for line in authors_lines(figure)
        for step, value in zip(line.step_T, line.value_T, strict=True)
    ]


def _setting(line: AuthorsLine) -> str:
    seed = f"seed {line.seed}" if line.section in ("5.3", "B.5") else ""
    return ", ".join(filter(None, (f"{line.game} (Atari)", line.variant, seed)))


def draw(reproduction: Reproduction, path: str | Path) -> None:
    """PNG or PDF, by the suffix of `path`."""
    theirs = authors_lines(reproduction.name)
    ours = list(dict.fromkeys((row.algorithm, row.setting) for row in reproduction.rows))
    games = list(dict.fromkeys(setting.partition(", ")[0] for _, setting in ours))
    their_games = list(dict.fromkeys(line.game for line in theirs))
    beside = [game for game in their_games if game not in games or "stand in" in reproduction.about]
    columns = len(games) + len(beside)
    variants = dict.fromkeys([setting.partition(", ")[2] for _, setting in ours])
    styles = _styles(list(variants), list(dict.fromkeys(line.variant for line in theirs)))
    figure = figure_of(width=max(6.4, 3.3 * columns), height=6.2)
    axes_QC = figure.subplots(len(QUANTITIES), columns, squeeze=False)
    for column, game in enumerate(games):
        mine = [(algorithm, setting) for algorithm, setting in ours if setting.partition(", ")[0] == game]
        on_top = [] if game in beside else [line for line in theirs if line.game == game]
        for axes, quantity in zip(axes_QC[:, column], QUANTITIES, strict=True):
            _draw_ours(axes, reproduction, mine, quantity, styles)
            _draw_theirs(axes, on_top, quantity, styles, faint=True)
        axes_QC[0, column].set_title(game, fontsize=11, color=INK, loc="left")
    for column, game in enumerate(beside, start=len(games)):
        for axes, quantity in zip(axes_QC[:, column], QUANTITIES, strict=True):
            _draw_theirs(axes, [line for line in theirs if line.game == game], quantity, styles, faint=False)
        axes_QC[0, column].set_title(f"the authors': {game}, Atari", fontsize=11, color=GREY, loc="left")
    _finish(axes_QC)
    _caption(figure, f"{reproduction.name.replace('fig', 'Fig. ')} again", reproduction.about)
    save(figure, path)


def draw_table(reproduction: Reproduction, path: str | Path) -> None:
    """Table 1 as bars: test scores with their standard errors, a panel for each game."""
    games = list(dict.fromkeys(row.setting for row in reproduction.rows))
    figure = figure_of(width=max(6.4, 3.0 * len(games)), height=3.6)
    for axes, game in zip(figure.subplots(1, len(games), squeeze=False)[0], games, strict=True):
        rows = [row for row in reproduction.rows if row.setting == game]
        for place, row in enumerate(rows):
            error = None if np.isnan(row.stderr) else row.stderr
            axes.bar(place, row.value, yerr=error, color=appearance(row.algorithm).colour, width=0.6, capsize=4)
        axes.set_xticks(range(len(rows)), [appearance(row.algorithm).label for row in rows])
        axes.set_title(game, fontsize=11, color=INK, loc="left")
        axes.axhline(0, color=GREY, linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    _caption(figure, "Table 1 again: test scores (App. B.4)", reproduction.about)
    save(figure, path)


def _finish(axes_QC: Any) -> None:
    for row, quantity in zip(axes_QC, QUANTITIES, strict=True):
        for axes in row:
            if quantity == "loss":
                axes.set_yscale("log")
                tick_log_axis(axes)
            decorate(axes)
            axes.set_xlabel("steps" if quantity == "loss" else "", color=INK)
            if not axes.lines:
                axes.text(0.5, 0.5, "not published", color=GREY, ha="center", transform=axes.transAxes)
                axes.set(xticks=[], yticks=[], xlabel="")
        row[0].set_ylabel({"return": "training return", "loss": "loss (squared TD error)"}[quantity], color=INK)
    for axes in axes_QC[0]:
        if axes.lines:
            axes.legend(fontsize=8, frameon=False)


def _caption(figure: Any, title: str, about: str) -> None:
    """Above the panels, in as many lines as the width asks for."""
    lines = textwrap.wrap(about, int(LETTERS_PER_INCH * figure.get_figwidth()))
    figure.suptitle("\n".join([title, *lines]), fontsize=10.5, color=INK)


def _styles(ours: Sequence[str], theirs: Sequence[str]) -> dict[str, Any]:
    """A line for each variant; where theirs have other names, by rank of their numbers, or else by place."""
    styles = {variant: STYLES[place % len(STYLES)] for place, variant in enumerate(ours)}
    if all(map(_number, [*ours, *theirs])) and len(ours) == len(theirs):
        by_rank = [styles[variant] for variant in sorted(ours, key=_number)]
        return dict(zip(sorted(theirs, key=_number), by_rank, strict=True)) | styles
    return {variant: STYLES[place % len(STYLES)] for place, variant in enumerate(theirs)} | styles


def _number(variant: str) -> float:
    """The number in the name of a variant, 0 if there is none: a target period of 200, ε_p of 1e-6."""
    found = re.search(r"\d[\d.]*(e[+-]?\d+)?", variant)
    return float(found[0]) if found else 0.0


def _draw_ours(
    axes: Axes, reproduction: Reproduction, lines: Sequence[tuple[str, str]], quantity: str, styles: dict[str, Any]
) -> None:
    for algorithm, setting in lines:
        variant = setting.partition(", ")[2]
        step_T, value_T, stderr_T = select(reproduction, algorithm, setting, quantity)
        look = appearance(algorithm)
        label = f"{look.label}, {variant}" if variant else look.label
        axes.plot(step_T, value_T, color=look.colour, linewidth=1.5, linestyle=styles[variant], label=label)
        if np.isfinite(stderr_T).any() and quantity != "loss":
            low_T, high_T = value_T - stderr_T, value_T + stderr_T
            axes.fill_between(step_T, low_T, high_T, color=look.colour, alpha=0.18, linewidth=0)


def _draw_theirs(axes: Axes, lines: Iterable[AuthorsLine], quantity: str, styles: dict[str, Any], faint: bool) -> None:
    seen = set()
    for line in lines:
        if line.quantity != quantity:
            continue
        look = appearance(line.algorithm)
        label = f"{look.label}, {line.variant}" if line.variant else look.label
        label = f"authors' {label}" if faint else label
        axes.plot(
            line.step_T,
            line.value_T,
            color=look.colour,
            linewidth=0.9 if faint else 1.3,
            alpha=0.55 if faint else 0.9,
            linestyle=styles[line.variant],
            label=None if label in seen else label,
        )
        seen.add(label)
