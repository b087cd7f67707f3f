"""Figures 1, 2 and 3: how the residual gradient learns beside Q-table learning."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

from cdqn.experiments.request import Request
from cdqn.experiments.section3.claims import DOUBLED, SMALL, fig1_claims, fig2_claims, fig3_claims
from cdqn.experiments.section3.figure import published
from cdqn.experiments.section3.runs import (
    DISTANCE,
    MIN_Q,
    MSBE,
    RETURN,
    Curves,
    OnlineTask,
    PairTask,
    rows,
    run_all,
)
from cdqn.report.reproduction import Point, Reproduction

T = TypeVar("T", PairTask, OnlineTask)

# Updates of RG at each γ of figure 2. At 0.9 and 0.99 as the authors; the others are for the exponent. Enough that
# every resample of the runs gets there.
_RG_UPDATES = {0.9: 400_000, 0.95: 1_500_000, 0.98: 4_000_000, 0.99: 7_000_000, 0.995: 12_000_000, 0.999: 100_000_000}


@dataclass(frozen=True)
class Size:
    """How much of the published experiments a scale does."""

    runs: int
    """Of figures 1 and 2."""
    discounts: tuple[float, ...]
    """Of figure 2, besides 1."""
    unconverged_updates: int
    """Of RG with γ = 1."""
    trials: int
    """Runs of figure 3."""
    trial_steps: int


SIZES = {
    "smoke": Size(2, (0.9, 0.95), unconverged_updates=100_000, trials=20, trial_steps=10_000),
    "laptop": Size(10, (0.9, 0.95, 0.98, 0.99), unconverged_updates=1_000_000, trials=100, trial_steps=10_000),
    "paper": Size(10, tuple(_RG_UPDATES), unconverged_updates=10_000_000, trials=100, trial_steps=100_000),
}


_POLICIES = (("q_table", 0.0), ("rg", 0.0), ("rg", 0.01), ("rg", 0.1))
"""Of figure 3: algorithm and ε."""


def fig1_tasks() -> list[PairTask]:
    """The curves of figure 1."""
    updates = {"q_table": (10_000, 30_000), "rg": (400_000, 6_000_000), "cdqn": (40_000, 100_000)}
    return [
        PairTask(algorithm, *system, n)
        for algorithm, budgets in updates.items()
        for system, n in zip((SMALL, DOUBLED), budgets, strict=True)
    ]


def fig2_tasks(size: Size) -> list[PairTask]:
    """The curves of figure 2."""
    width, _ = SMALL
    tasks = [PairTask("q_table", width, discount, 10_000) for discount in (*size.discounts, 1.0)]
    tasks += [PairTask("rg", width, discount, _RG_UPDATES[discount]) for discount in size.discounts]
    return [*tasks, PairTask("rg", width, 1.0, size.unconverged_updates)]


def fig3_tasks(size: Size) -> list[OnlineTask]:
    """The curves of figure 3."""
    return [OnlineTask(algorithm, epsilon, size.trial_steps) for algorithm, epsilon in _POLICIES]


def fig1(request: Request) -> Reproduction:
    """RG is slower than Q-table learning, and the more so on the doubled system."""
    size = _size_of(request)
    tasks = fig1_tasks()
    curves = run_all(tasks, size.runs, (request.seed, 1), request.threads, request.on_progress)
    data = _rows_of(tasks, curves, lambda task: f"width {task.width}", (MSBE, DISTANCE))
    named = {(task.algorithm, task.width): curve for task, curve in zip(tasks, curves, strict=True)}
    claims = fig1_claims(named, request.seed)
    return Reproduction("fig1", request.about(size.runs), data, claims, published("fig1"), asdict(size))


def fig2(request: Request) -> Reproduction:
    """How the learning time depends on γ, at width 10."""
    size = _size_of(request)
    tasks = fig2_tasks(size)
    curves = run_all(tasks, size.runs, (request.seed, 2), request.threads, request.on_progress)
    data = _rows_of(tasks, curves, lambda task: f"gamma {task.discount:g}", (MSBE,))
    named = {(task.algorithm, task.discount): curve for task, curve in zip(tasks, curves, strict=True)}
    claims = fig2_claims(named, request.seed)
    return Reproduction("fig2", request.about(size.runs), data, claims, published("fig2"), asdict(size))


def fig3(request: Request) -> Reproduction:
    """Online, RG learns only what exploration finds for it."""
    size = _size_of(request)
    tasks = fig3_tasks(size)
    curves = run_all(tasks, size.trials, (request.seed, 3), request.threads, request.on_progress)
    data = _rows_of(tasks, curves, lambda task: f"epsilon {task.epsilon:g}", (RETURN, MIN_Q))
    named = dict(zip(_POLICIES, curves, strict=True))
    claims = fig3_claims(named)
    return Reproduction("fig3", request.about(size.trials), data, claims, published("fig3"), asdict(size))


def _rows_of(
    tasks: Sequence[T], curves: Sequence[Curves], setting_of: Callable[[T], str], quantities: tuple[str, ...]
) -> list[Point]:
    """The rows of all tasks, each under the name of its setting."""
    pairs = zip(tasks, curves, strict=True)
    return [row for task, curve in pairs for row in rows(task, setting_of(task), curve, quantities)]


def _size_of(request: Request) -> Size:
    size = SIZES[request.scale]
    return size if request.runs is None else replace(size, runs=request.runs, trials=request.runs)
