"""What the page shows: for each experiment in a folder its charts, its claims, and how it was run.

A folder of `cdqn reproduce` has for each NAME: NAME.json (what was run), NAME.csv (our curves), NAME_claims.csv, and
NAME_published.csv where the authors' curves are known. It may come from anywhere: what cannot be read is named.
"""

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cdqn.errors import CheckpointError
from cdqn.report.palette import ALGORITHMS, OTHER_COLOURS
from cdqn.report.reproduction import Claim, Point
from cdqn.report.runs import read_run
from cdqn.storage.files import read_json, require_no_links

LOG_DECADES = 2.5
"""Positive values over more decades than this want a logarithmic axis."""
QUANTITY_LABELS = {
    "return": "training return",
    "loss": "loss (squared TD error)",
    "q_over_bound": "Q / bound",
    "msbe": "MSBE (sum over pairs)",
    "distance": "|Q − Q*|² (sum over pairs)",
    "greedy_return": "return of the greedy policy",
    "min_q": "least Q",
    "average_reward": "average reward per step",
    "q_distance": "distance between the learned Q",
    "energy": "energy",
    "final_energy": "energy of the last policy",
    "failed_episodes": "failed episodes of the last policy",
    "kappa": "condition number",
    "test_score": "test score",
}
X_LABELS = {"average_reward": "epochs", "q_distance": "epochs", "energy": "simulated time", "kappa": "N or 1/(1 − γ)"}
"""Of curves that are not drawn over steps."""


class Series(NamedTuple):
    """A line of a chart, with its standard errors where there are any."""

    label: str
    colour: str
    dash: str
    x: list[float]
    y: list[float]
    error: list[float] | None
    """None for the authors' curves, and for single runs."""


class Chart(NamedTuple):
    """One pair of axes."""

    title: str
    x_label: str
    y_label: str
    log_x: bool
    log_y: bool
    bars: bool
    """One number for each series in place of a curve."""
    series: list[Series]


class Experiment(NamedTuple):
    """A section of the page."""

    name: str
    about: dict[str, Any]
    charts: list[Chart]
    claims: list[Claim]


class Page(NamedTuple):
    """All of it."""

    folder: str
    experiments: list[Experiment]
    problems: list[str]
    """What could not be read, or is not complete."""


def read_folder(folder: Path) -> Page:
    """Everything that `cdqn reproduce` has left there."""
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is not a folder: give one that `cdqn reproduce --out` has made")
    require_no_links(folder)
    experiments, problems = [], []
    for path in sorted(folder.glob("*.json"), key=lambda path: _order(path.stem)):
        try:
            experiments.append(_read_experiment(path))
        except (CheckpointError, OSError, ValueError, KeyError, TypeError) as error:
            problems.append(f"{path.name} is left out: {error}")
    named = {experiment.name for experiment in experiments}
    for data in sorted(folder.glob("*_claims.csv")):
        name = data.stem.removesuffix("_claims")
        if name not in named and not (folder / f"{name}.json").exists():
            problems.append(f"{name} is left out: it has no {name}.json, so it is not known how it was run")
    problems += _unfinished(folder)
    if not experiments:
        reasons = f" ({'; '.join(problems)})" if problems else ""
        raise CheckpointError(f"{folder} has nothing to report{reasons}: `cdqn reproduce fig1 --out {folder}` makes it")
    return Page(folder.name, experiments, problems)


def _unfinished(folder: Path) -> list[str]:
    """Runs of games that have been begun and have not come to their evaluation."""
    found = []
    for config in sorted(folder.glob("games/*/*/*/*/config.json")):
        if not _is_complete(config.parent):
            found.append(
                f"{config.parent.relative_to(folder)} is not complete: the command that began it goes on with it"
            )
    return found


def _is_complete(folder: Path) -> bool:
    """Whether a run has been evaluated at the end of its budget."""
    try:
        run = read_run(folder)
        return run.final_evaluation is not None and run.final_evaluation["step"] >= run.config["steps"]
    except (CheckpointError, KeyError, TypeError):
        return False


def _order(name: str) -> tuple[int, str]:
    """Figures by their numbers, and the rest after them."""
    digits = "".join(character for character in name if character.isdigit())
    return (int(digits) if name.startswith("fig") and digits else 10_000, name)


def _read_experiment(path: Path) -> Experiment:
    about = read_json(path, "an experiment")
    if not isinstance(about, dict) or not isinstance(about.get("name"), str):
        raise CheckpointError(f"{path} does not say which experiment it is of")
    ours = _read_points(path.with_suffix(".csv"))
    published = path.with_name(f"{path.stem}_published.csv")
    theirs = _read_points(published) if published.exists() else []
    claims = _read_claims(path.with_name(f"{path.stem}_claims.csv"))
    return Experiment(path.stem, about, charts_of(ours, theirs), claims)


def _read_points(path: Path) -> list[Point]:
    with open(path, newline="", encoding="utf-8") as file:
        return [
            Point(algorithm, setting, float(step), quantity, float(value), float(stderr))
            for algorithm, setting, step, quantity, value, stderr in _rows(file, Point._fields)
        ]


def _rows(file: Any, fields: Sequence[str]) -> Iterable[list[str]]:
    """The rows of a table that has these columns."""
    reader = csv.reader(file)
    head = next(reader, [])
    if tuple(head) != tuple(fields):
        raise CheckpointError(f"{file.name} has the columns {', '.join(head) or 'none'}, not {', '.join(fields)}")
    return reader


def _read_claims(path: Path) -> list[Claim]:
    verdicts = {"True": True, "False": False, "": None}
    with open(path, newline="", encoding="utf-8") as file:
        rows = _rows(file, Claim._fields)
        return [Claim(text, expected, found, verdicts[holds]) for text, expected, found, holds in rows]


def charts_of(ours: Sequence[Point], theirs: Sequence[Point]) -> list[Chart]:
    """A chart for each quantity and each game; the authors' curves are on ours where they have the same settings."""
    keys = list(dict.fromkeys(_chart_key(point) for point in (*ours, *theirs)))
    return [
        _chart(
            quantity,
            panel,
            [point for point in ours if _chart_key(point) == (quantity, panel)],
            [point for point in theirs if _chart_key(point) == (quantity, panel)],
        )
        for quantity, panel in keys
    ]


def _chart_key(point: Point) -> tuple[str, str]:
    """Its quantity, and its game where a setting begins with one."""
    game, comma, _ = point.setting.partition(", ")
    is_game = point.quantity in ("return", "loss", "q_over_bound")
    return point.quantity, game if comma or is_game else ""


def _chart(quantity: str, panel: str, ours: Sequence[Point], theirs: Sequence[Point]) -> Chart:
    series = [*_series(ours, panel, False), *_series(theirs, panel, True)]
    bars = all(len(line.x) == 1 for line in series)
    x = [value for line in series for value in line.x]
    y = [value for line in series for value in line.y]
    over, label = "" if bars else X_LABELS.get(quantity, "steps"), QUANTITY_LABELS.get(quantity, quantity)
    return Chart(panel, over, label, _is_wide(x) and not bars, _is_wide(y), bars, series)


def _series(points: Iterable[Point], panel: str, published: bool) -> list[Series]:
    """A line for each algorithm and setting, in the order of the data."""
    lines: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        if math.isfinite(point.value):
            lines.setdefault((point.algorithm, point.setting), []).append(point)
    settings = list(dict.fromkeys(setting for _, setting in lines))
    made = []
    for (algorithm, setting), line in lines.items():
        name, colour = _look(algorithm, [key for key, _ in lines])
        variant = setting.removeprefix(panel).removeprefix(", ") if len(settings) > 1 else ""
        label = ", ".join(filter(None, ("the authors'" if published else "", name, variant)))
        dashes = ("solid", "dash", "dot", "dashdot")
        dash = "dot" if published and panel == "" else dashes[settings.index(setting) % len(dashes)]
        errors = [point.stderr for point in line]
        shown = None if published or not any(map(math.isfinite, errors)) else errors
        made.append(Series(label, colour, dash, [p.step for p in line], [p.value for p in line], shown))
    return made


def _look(algorithm: str, among: Sequence[str]) -> tuple[str, str]:
    """Label and colour; Q-table learning is DQN's rule on a table, and has its colour."""
    if algorithm in ALGORITHMS:
        return ALGORITHMS[algorithm].label, ALGORITHMS[algorithm].colour
    if algorithm == "q_table":
        return "Q-table", ALGORITHMS["dqn"].colour
    others = [name for name in dict.fromkeys(among) if name not in ALGORITHMS and name != "q_table"]
    return algorithm, OTHER_COLOURS[others.index(algorithm) % len(OTHER_COLOURS)]


def _is_wide(values: Sequence[float]) -> bool:
    """Whether positive values differ by many powers of ten."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite or min(finite) <= 0:
        return False
    return math.log10(max(finite) / min(finite)) > LOG_DECADES
