"""Figures of games: train what is not yet trained, in folders that figures share, and judge what came out."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from cdqn.algorithms import ALGORITHMS
from cdqn.errors import CdqnError
from cdqn.experiments.games.claims import judge, judge_table
from cdqn.experiments.games.figure import published
from cdqn.experiments.games.plans import FIGURES, Line
from cdqn.experiments.games.results import Result, rows
from cdqn.experiments.processes import run_tasks
from cdqn.experiments.request import Request
from cdqn.report import protocol
from cdqn.report.reproduction import Point, Reproduction
from cdqn.report.runs import read_run
from cdqn.runs.protocol import EPISODES, run_protocol
from cdqn.runs.run_pool import Plan, PlannedRun, open_plan, run_all
from cdqn.storage.files import read_json
from cdqn.training.events import Row

STAND_IN = "MinAtar's games and small tasks stand in for Atari's games"
PLAN_FILE = "games.json"
TEST_EPISODES = {"smoke": 2, "laptop": 100, "paper": EPISODES}
"""Of a validation, and of the test (App. B.4: 400)."""


def reproduce(name: str, request: Request) -> Reproduction:
    """One of the figures."""
    results, seeds = _train(name, request)
    claims = judge(name, results, request.scale)
    settings = {_describe(result.line): _settings(result.line) for result in results}
    return Reproduction(name, _about(request, seeds), rows(results), claims, published(name), settings)


def table1(request: Request) -> Reproduction:
    """Table 1: the runs of figure 7, and on each of them the test of App. B.4."""
    results, seeds = _train("table1", request)
    folders = [run.path for result in results for run in result.runs.values()]
    episodes = TEST_EPISODES[request.scale]
    tasks = {
        f"the test of {folder.parent.name} {folder.name}": partial(_test, folder, episodes)
        for folder in folders
        if not _is_tested(folder, episodes)
    }
    run_tasks(tasks, request.pool, 4 * episodes, request.on_progress)
    cells = protocol.table1(folders)
    data = [
        Point(
            cell.algorithm,
            cell.env_id,
            0,
            "test_score",
            cell.mean,
            float("nan") if cell.stderr is None else cell.stderr,
        )
        for cell in cells
    ]
    return Reproduction("table1", _about(request, seeds), data, judge_table(cells, request.scale))


fig4, fig5, fig6, fig7, fig10, fig11, fig13, fig14, fig15 = (
    partial(reproduce, name) for name in ("fig4", "fig5", "fig6", "fig7", "fig10", "fig11", "fig13", "fig14", "fig15")
)


def planned_runs(name: str, scale: str, seeds: range) -> Plan:
    """Every run of a figure, by its name; seed by seed, so that a part of them says something."""
    lines = FIGURES[name].lines(scale)
    return {line.run_name(seed): PlannedRun(line.env_id, line.config(seed)) for seed in seeds for line in lines}


def _train(name: str, request: Request) -> tuple[list[Result], range]:
    lines = FIGURES[name].lines(request.scale)
    seeds = range(request.seed, request.seed + (request.runs or FIGURES[name].seeds(request.scale)))
    plan = planned_runs(name, request.scale, seeds)
    folder = (request.out or Path()) / "games" / request.scale
    open_plan(folder / PLAN_FILE, {}, plan)
    outcomes = run_all(folder, plan, request.pool, _progress(plan, request.on_progress))
    if missing := [f"{outcome.name}: {outcome.problem}" for outcome in outcomes if not outcome.finished]:
        raise CdqnError(
            f"{len(missing)} of {len(plan)} runs are not complete ({'; '.join(missing)}): the same command tries again"
        )
    return [Result(line, {seed: read_run(folder / line.run_name(seed)) for seed in seeds}) for line in lines], seeds


def _progress(plan: Plan, on_progress: Callable[[int, int], None] | None) -> Callable[[str, Row], None] | None:
    """From the rows of many runs to one count of steps."""
    if on_progress is None:
        return None
    done = dict.fromkeys(plan, 0)
    total = sum(run.config.steps for run in plan.values())

    def note(name: str, row: Row) -> None:
        done[name] = max(done[name], int(row["step"]))
        on_progress(sum(done.values()), total)

    return note


def _about(request: Request, seeds: range) -> str:
    stand_in = "" if request.scale == "paper" else f", {STAND_IN}"
    runs = f"{len(seeds)} run{'s' if len(seeds) > 1 else ''} of each"
    numbers = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    return f"{runs}, {numbers}, scale {request.scale}{stand_in}"


def _describe(line: Line) -> str:
    return " ".join(filter(None, (ALGORITHMS[line.algorithm].label, line.variant, "on", line.game)))


def _settings(line: Line) -> str:
    """The preset, and what differs from it."""
    changes = ", ".join(f"{name} {value}" for name, value in line.settings.items())
    return f"preset {line.preset}" + (f" with {changes}" if changes else "")


def _test(run: Path, episodes: int, on_progress: Callable[[int], None]) -> None:
    played = 0

    def count() -> None:
        nonlocal played
        played += 1
        on_progress(played)

    run_protocol(run, episodes, on_episode=count)


def _is_tested(run: Path, episodes: int) -> bool:
    path = run / "protocol.json"
    if not path.exists():
        return False
    content = read_json(path, "the test of a run")
    return isinstance(content, dict) and content.get("episodes") == episodes
