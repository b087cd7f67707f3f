"""What a run looks like in a terminal: a live bar, or plain lines where nobody watches.

Whatever the width, a run keeps its steps, percentage, time left and return; further numbers come where there is room.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from rich.cells import cell_len, set_cell_size
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from cdqn.report.terminal import harmless, say
from cdqn.training.events import Event, Row

COMPILING = "compiling the update (about ten seconds, once)"
LINES = 20
"""Of a run where there is no terminal: one for every 5 %."""
SILENCE_SECONDS = 600.0
"""After which there is one more, however little was done: 5 % of a run of the paper take a day."""
BAR, RETURN, SHORTEST_NAME = 10, 16, 12
"""Columns that a bar, a return and a name are left at least."""

Clock = Callable[[], float]


def describe_progress(row: Row, room: int | None = None, warnings: int = 0) -> str:
    """The numbers that one wants to see while waiting, the most important first: as many as there is room for."""
    parts = [f"return {_number(row['return_mean'])}"]
    if warnings:
        parts.append(f"{warnings} warning{'s' if warnings > 1 else ''}")
    if row["update"] == 0:
        parts.append("warm-up")
    if row["loss"] is not None:
        parts.append(f"loss {_number(row['loss'])}")
    if row["q_mean"] is not None:
        earned = row.get("earned_low"), row.get("earned_high")
        beside = "" if None in earned else f" (earned {_number(earned[0])} to {_number(earned[1])})"
        parts.append(f"Q {_number(row['q_mean'])}{beside}")
    parts.append(f"ε {row['epsilon']:.2f}")
    if row.get("dqn_share") is not None:
        parts.append(f"DQN branch {row['dqn_share']:.0%}")
    parts.append(f"{row['steps_per_second']:,.0f} steps/s")
    text, *rest = parts
    for part in rest:
        longer = f"{text} · {part}"
        if room is not None and cell_len(longer) > room:
            break
        text = longer
    return text


def shortened(text: str, width: int) -> str:
    """At most so wide: the middle gives way, because the ends are what tells names apart."""
    if cell_len(text) <= width:
        return text
    tail = (width - 1) // 2
    return set_cell_size(text, width - 1 - tail).rstrip() + "…" + set_cell_size(text[::-1], tail)[::-1].lstrip()


def duration(seconds: float | None) -> str:
    """Hours, minutes and seconds: 0:01:23."""
    if seconds is None:
        return "-:--:--"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


class _Words(ProgressColumn):
    """What a function says of a task."""

    def __init__(self, words: Callable[[Task], str], style: str = "") -> None:
        self._words, self._style = words, style
        super().__init__(Column(no_wrap=True))

    def render(self, task: Task) -> Text:
        return Text(self._words(task), self._style)


def _place(task: Task) -> str:
    """Steps, percentage and time left, always equally wide."""
    total = f"{int(task.total or 0):,}"
    left = duration(task.time_remaining)
    return f"{int(task.completed):>{len(total)},} of {total} {int(task.percentage):>3} % {left:>8}"


def _width_of_place(total: int) -> int:
    return 2 * len(f"{total:,}") + len(" of  100 %  0:00:00") + 1


class _WithNumbers(Progress):
    """The numbers of a task under its bar."""

    def get_renderables(self) -> Iterable[RenderableType]:
        yield super().make_tasks_table(self.tasks)
        for task in self.tasks:
            yield Text(f"  {task.fields['numbers'](self.console.width - 2)}", no_wrap=True, overflow="ellipsis")


class _Display:
    """Bars that are shown while the block lasts, in a terminal only."""

    def __init__(self, console: Console, bar: Progress) -> None:
        self._console = console
        self._live = console.is_terminal
        self._bar = bar

    def _warn(self, text: str) -> None:
        say(self._console, text, "yellow")

    def __enter__(self) -> Self:
        if self._live:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, _: TracebackType | None) -> None:
        if self._live:
            self._bar.stop()


class TrainingDisplay(_Display):
    """A callback that shows one run: a bar with its numbers underneath, or lines."""

    def __init__(
        self, title: str, first_step: int, until_step: int, console: Console, clock: Clock = time.monotonic
    ) -> None:
        room_for_name = _width_of_place(until_step) + BAR + len("⠋    ")
        name = _Words(lambda task: _named(task, console.width - room_for_name), "bold")
        columns = (SpinnerColumn(), name, BarColumn(None), _Words(_place))
        super().__init__(console, _WithNumbers(*columns, console=console, expand=True))
        self._steps = _Steps(first_step, until_step, clock)
        self._warnings = 0
        self._task = self._bar.add_task(
            harmless(title), total=until_step, completed=first_step, numbers=lambda room: "starting"
        )

    def __call__(self, event: Event, agent: Any) -> None:
        row = event.row()
        if row["kind"] == "progress":
            step = min(row["step"], self._steps.until)
            self._bar.update(self._task, completed=step)
            self._show(lambda room: describe_progress(row, room, self._warnings))
            if self._steps.due(step) and not self._live:
                say(self._console, f"{self._steps.describe(step)} · {describe_progress(row)}")
        elif row["kind"] == "warning":
            self._warnings += 1
            self._warn(f"step {row['step']:,}: {row['message']}")
        elif row["kind"] == "evaluation":
            say(self._console, f"step {row['step']:,}: {_evaluation(row)}")
        elif row["kind"] == "calibration":
            say(self._console, f"step {row['step']:,}: {row['note']}")

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """Says so while the update is compiled."""
        before = self._bar.tasks[0].fields["numbers"]
        self._show(lambda room: COMPILING)
        if not self._live:
            say(self._console, COMPILING)
        yield
        self._show(before)

    def _show(self, numbers: Callable[[int], str]) -> None:
        self._bar.update(self._task, numbers=numbers)


class CountDisplay(_Display):
    """A bar for work that is counted: episodes of an evaluation, updates of several runs."""

    def __init__(self, title: str, total: int, console: Console) -> None:
        columns = (
            TextColumn("{task.description}", style="bold", markup=False),
            BarColumn(bar_width=40),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        super().__init__(console, Progress(*columns, console=console))
        self._task = self._bar.add_task(harmless(title), total=total)

    def advance(self, count: int = 1) -> None:
        self._bar.advance(self._task, count)

    def set(self, done: float, total: float) -> None:
        self._bar.update(self._task, completed=done, total=total)


class RunsDisplay(_Display):
    """One line for each of several runs that is under way; without a terminal one now and then."""

    def __init__(
        self,
        totals: Mapping[str, int],
        console: Console,
        steps_done: Mapping[str, int] | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        """`totals` are the steps of each run by name, `steps_done` those that were done before."""
        widest = max(map(cell_len, totals), default=0)
        taken = _width_of_place(max(totals.values(), default=0)) + BAR + len("   ")

        def width_of_names() -> int:
            return min(widest, max(SHORTEST_NAME, min(console.width - taken - RETURN, console.width // 4)))

        columns = (
            _Words(lambda task: _named(task, width_of_names()), "bold"),
            BarColumn(BAR),
            _Words(_place),
            _Words(lambda task: task.fields["numbers"](console.width - taken - width_of_names())),
        )
        super().__init__(console, Progress(*columns, console=console))
        self._totals = totals
        self._done_steps = dict.fromkeys(totals, 0) | dict(steps_done or {})
        self._steps = _Steps(sum(self._done_steps.values()), sum(totals.values()), clock)
        self._tasks: dict[str, Any] = {}
        self._warnings = dict.fromkeys(totals, 0)
        self._done = sum(self._done_steps[name] >= total for name, total in totals.items())
        self._compiling_told = False

    def __call__(self, name: str, row: Row) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._bar.add_task(
                harmless(name), total=self._totals[name], numbers=lambda room: "starting"
            )
        task, step = self._tasks[name], min(row["step"], self._totals[name])
        if row["kind"] == "progress":
            warnings = self._warnings[name]
            self._bar.update(task, completed=step, numbers=lambda room: describe_progress(row, room, warnings))
            self._count(name, step, row)
        elif row["kind"] == "compiling":
            self._bar.update(task, numbers=lambda room: COMPILING if room >= len(COMPILING) else "compiling")
            if not self._live and not self._compiling_told:
                say(self._console, f"{COMPILING[:-1]} for each run)")
            self._compiling_told = True
        elif row["kind"] == "warning":
            self._warnings[name] += 1
            self._warn(f"{name}: step {row['step']:,}: {row['message']}")
        elif step == self._totals[name]:
            self._done += 1
            self.hide(name)
            say(self._console, f"{name}: {_evaluation(row)} ({self._done} of {len(self._totals)} runs done)")

    def hide(self, name: str) -> None:
        """A run that is over, however it ended."""
        if name in self._tasks:
            self._bar.update(self._tasks[name], visible=False)

    def _count(self, name: str, step: int, row: Row) -> None:
        self._done_steps[name] = max(step, self._done_steps[name])
        together = sum(self._done_steps.values())
        if self._steps.due(together) and not self._live:
            done = f"{self._done} of {len(self._totals)} runs done"
            say(self._console, f"{self._steps.describe(together)} · {done} · {name}: {describe_progress(row, 40)}")


class _Steps:
    """Where work stands, for lines that are written now and then."""

    def __init__(self, first: int, until: int, clock: Clock) -> None:
        self.until = until
        self._first = first
        self._clock = clock
        self._begun = self._told_at = clock()
        self._told = LINES * first // max(until, 1)

    def due(self, step: int) -> bool:
        """True once for every line: one for each of `LINES` parts, and one after each `SILENCE_SECONDS` without."""
        before, self._told = self._told, max(self._told, LINES * step // self.until)
        due = self._told > before or self._clock() - self._told_at >= SILENCE_SECONDS
        if due:
            self._told_at = self._clock()
        return due

    def describe(self, step: int) -> str:
        passed, done = self._clock() - self._begun, step - self._first
        left = passed * (self.until - step) / done if done else None
        times = f"{duration(passed)} elapsed, {duration(left)} left"
        return f"step {step:,} of {self.until:,} ({100 * step // self.until} %) · {times}"


def _named(task: Task, width: int) -> str:
    return shortened(task.description, max(SHORTEST_NAME, width))


def _evaluation(row: Row) -> str:
    """The return of the policy without random actions."""
    error = f" ± {row['stderr']:.3g}" if row["episodes"] > 1 else ""
    return f"greedy return {row['mean']:.5g}{error} over {row['episodes']} episode{'s' if row['episodes'] > 1 else ''}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
