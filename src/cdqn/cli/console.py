"""What a run looks like in a terminal: a live bar, or plain lines where nobody watches."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)

from cdqn.report.terminal import harmless, say
from cdqn.training.events import Event, Row


def describe_progress(row: Row) -> str:
    """The numbers of a progress row that one wants to see while waiting."""
    parts = [f"{row['steps_per_second']:,.0f} steps/s", f"return {_number(row['return_mean'])}"]
    if row["loss"] is not None:
        parts.append(f"loss {_number(row['loss'])}")
    if row["q_mean"] is not None:
        earned = row.get("earned_low"), row.get("earned_high")
        beside = "" if None in earned else f" (earned {_number(earned[0])} … {_number(earned[1])})"
        parts.append(f"Q {_number(row['q_mean'])}{beside}")
    parts.append(f"ε {row['epsilon']:.2f}")
    if row.get("dqn_share") is not None:
        parts.append(f"DQN branch {row['dqn_share']:.0%}")
    return " · ".join(parts)


class _Display:
    """Bars that are shown while the block lasts, in a terminal only."""

    def __init__(self, console: Console, *columns: ProgressColumn) -> None:
        self._console = console
        self._live = console.is_terminal
        self._bar = Progress(*columns, console=console, disable=not self._live)

    def _warn(self, text: str) -> None:
        say(self._console, text, "yellow")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, _: TracebackType | None) -> None:
        self._bar.stop()


def _run_columns() -> list[ProgressColumn]:
    """Name, bar, steps, time left and numbers of one run."""
    return [
        TextColumn("{task.description}", style="bold", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[numbers]}", markup=False),
    ]


class TrainingDisplay(_Display):
    """A callback that shows one run."""

    def __init__(self, title: str, first_step: int, until_step: int, console: Console) -> None:
        super().__init__(console, SpinnerColumn(), *_run_columns())
        self._until_step = until_step
        self._last_tenth = 10 * first_step // until_step
        self._task = self._bar.add_task(harmless(title), total=until_step, completed=first_step, numbers="")

    def __call__(self, event: Event, agent: Any) -> None:
        row = event.row()
        if row["kind"] == "progress":
            numbers = describe_progress(row)
            self._bar.update(self._task, completed=min(row["step"], self._until_step), numbers=numbers)
            tenth = 10 * row["step"] // self._until_step
            if not self._live and tenth > self._last_tenth:
                self._last_tenth = tenth
                say(self._console, f"step {row['step']:,} of {self._until_step:,} · {numbers}")
        elif row["kind"] == "warning":
            self._warn(f"step {row['step']:,}: {row['message']}")
        elif row["kind"] == "evaluation":
            error = f" ± {row['stderr']:.3g}" if row["episodes"] > 1 else ""
            text = f"step {row['step']:,}: greedy return {row['mean']:.5g}{error} (episodes: {row['episodes']})"
            say(self._console, text)
        elif row["kind"] == "calibration":
            say(self._console, f"step {row['step']:,}: {row['note']}")


class CountDisplay(_Display):
    """A bar for work that is counted: episodes of an evaluation, updates of several runs."""

    def __init__(self, title: str, total: int, console: Console) -> None:
        super().__init__(
            console,
            TextColumn("{task.description}", style="bold", markup=False),
            BarColumn(bar_width=40),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        self._task = self._bar.add_task(harmless(title), total=total)

    def advance(self, count: int = 1) -> None:
        self._bar.advance(self._task, count)

    def set(self, done: float, total: float) -> None:
        self._bar.update(self._task, completed=done, total=total)


class RunsDisplay(_Display):
    """One bar for each of several runs that is under way."""

    def __init__(self, totals: Mapping[str, int], console: Console) -> None:
        """`totals` are the steps of each run, by name."""
        super().__init__(console, *_run_columns())
        self._totals = totals
        self._tasks: dict[str, Any] = {}
        self._done = 0

    def __call__(self, name: str, row: Row) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._bar.add_task(harmless(name), total=self._totals[name], numbers="")
        task = self._tasks[name]
        if row["kind"] == "progress":
            self._bar.update(task, completed=min(row["step"], self._totals[name]), numbers=describe_progress(row))
        elif row["kind"] == "warning":
            self._warn(f"{name}: step {row['step']:,}: {row['message']}")
        elif row["step"] >= self._totals[name]:
            self._done += 1
            self.hide(name)
            text = f"{name}: greedy return {row['mean']:.5g} ± {row['stderr']:.3g}"
            say(self._console, f"{text} ({self._done} of {len(self._totals)} runs done)")

    def hide(self, name: str) -> None:
        """A run that is over, however it ended."""
        if name in self._tasks:
            self._bar.update(self._tasks[name], visible=False)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
