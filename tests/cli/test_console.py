"""Bars and lines of runs on a terminal, and where there is none."""

import io

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from cdqn.cli.console import COMPILING, RunsDisplay, TrainingDisplay, describe_progress, duration, shortened
from cdqn.training.events import Evaluated, EvaluationResult, Warned
from helpers import progress

WIDTHS = (80, 100, 140)
LONG = "C-DQN my_package.environments.warehouse:AutonomousForkliftWithObstacles-v17"


def terminal(width):
    return Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None, legacy_windows=False)


def pipe():
    return Console(file=io.StringIO(), force_terminal=False, width=200)


def screen(console, display):
    """What the bars look like at this moment, as lines."""
    paper = terminal(console.width)
    paper.print(display._bar.get_renderable())
    return [line.rstrip() for line in paper.file.getvalue().splitlines()]


class Clock:
    """One that is told the time."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def row_with_everything(**values):
    return progress(q_mean=-123.4, earned_low=-321.0, earned_high=-12.3, return_mean=-231.7, **values)


def test_bar_of_a_run_takes_no_markup_from_the_name_of_its_environment():
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with TrainingDisplay("C-DQN a[/x]b\x1b[2J", 0, 100, console):
        pass
    text = console.file.getvalue()
    assert "a[/x]b" in text
    assert "\x1b[2J" not in text


def test_numbers_of_a_row_are_those_one_waits_for():
    row = progress(return_mean=None, loss=0.51234).row()
    assert describe_progress(row) == (
        "return – · loss 0.512 · Q 5 (earned -10 to 60) · ε 0.10 · DQN branch 70% · 1,000 steps/s"
    )
    early = progress(update=0, loss=None, q_mean=None, statistics={}).row()
    assert describe_progress(early) == "return 10 · warm-up · ε 0.10 · 1,000 steps/s"


def test_numbers_that_find_no_room_are_left_out_from_the_end_and_the_return_never():
    row = progress().row()
    assert describe_progress(row, 40, warnings=2) == "return 10 · 2 warnings · loss 0.5"
    assert describe_progress(row, 21, warnings=1) == "return 10 · 1 warning"
    assert describe_progress(row, 3) == "return 10"
    assert all(cell_len(describe_progress(row, room)) <= room for room in range(9, 120))


@pytest.mark.parametrize(("name", "width", "short"), [("abcdefgh", 8, "abcdefgh"), ("abcdefghi", 8, "abcd…ghi")])
def test_names_are_shortened_in_the_middle(name, width, short):
    assert shortened(name, width) == short


def test_wide_letters_count_twice_when_a_name_is_shortened():
    assert all(cell_len(shortened("倉庫の環境" * 4, width)) <= width for width in range(3, 40))


def test_durations_are_hours_minutes_and_seconds():
    assert [duration(seconds) for seconds in (0, 83.9, 7262, None)] == ["0:00:00", "0:01:23", "2:01:02", "-:--:--"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("title", ["C-DQN CartPole-v1", LONG])
@pytest.mark.parametrize("until", [50_000, 50_000_000])
def test_a_run_keeps_steps_percentage_time_left_return_and_warnings_at_every_width(width, title, until):
    console = terminal(width)
    with TrainingDisplay(title, 0, until, console) as display:
        display(Warned(10, "it diverges; do something about it", "diverging"), None)
        display(row_with_everything(step=until // 4), None)
        bar, numbers = screen(console, display)
    assert max(map(cell_len, (bar, numbers))) <= width
    assert f"{until // 4:,} of {until:,}" in bar
    assert " 25 % " in bar
    assert bar.endswith(":--")  # the time left, which nobody knows after one row
    assert title in bar or ("…" in bar and title[:9] in bar and title[-4:] in bar)
    assert numbers.strip().startswith("return -232 · 1 warning · loss 0.5")
    assert "do something about it" in console.file.getvalue()
    assert ("DQN branch 70%" in numbers) == (width >= 100)
    assert "Q -123 (earned -321 to -12.3)" in numbers


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("prefix", ["", "MountainCarWithAVeryLongNameIndeed-v0/"])
@pytest.mark.parametrize("total", [3_000, 50_000_000])
def test_several_runs_keep_them_too_on_one_line_each(width, prefix, total):
    console = terminal(width)
    names = [f"{prefix}cdqn-seed{seed}" for seed in range(2)]
    with RunsDisplay(dict.fromkeys(names, total), console) as display:
        for name in names:
            display(name, row_with_everything(step=total // 2).row())
        lines = screen(console, display)
    assert len(lines) == 2
    for line, name in zip(lines, names, strict=True):
        assert cell_len(line) <= width
        assert line.startswith(shortened(name, 12)[:6])
        assert line.split()[0].endswith(name[-5:])
        for words in (f"{total // 2:,} of {total:,}", " 50 % ", ":--", "return -232"):
            assert words in line
        assert line.count("━") == 5, "half of a bar of ten"
        assert ("loss 0.5" in line) == (width > 80 or (total == 3_000 and not prefix))


def test_bar_says_that_the_update_is_being_compiled_as_long_as_it_lasts():
    console = terminal(80)
    with TrainingDisplay("C-DQN", 0, 1000, console) as display:
        display(progress(step=100), None)
        with display.compiling():
            assert screen(console, display)[1].strip() == COMPILING
        assert screen(console, display)[1].strip().startswith("return 10")
    assert COMPILING not in console.file.getvalue().splitlines()[-1]


def test_runs_say_that_their_update_is_being_compiled_where_there_is_room():
    for width, words in ((80, "compiling"), (140, COMPILING)):
        console = terminal(width)
        with RunsDisplay({"cdqn-seed0": 3000}, console) as display:
            display("cdqn-seed0", {"kind": "compiling", "step": 1000})
            assert screen(console, display)[0].endswith(words)


def test_without_a_terminal_there_is_a_line_for_every_twentieth_and_every_warning_and_no_control_character():
    console, clock = pipe(), Clock()
    with TrainingDisplay("C-DQN", 0, 1000, console, clock) as display:
        for step in (20, 50, 70, 100, 250, 1000):
            clock.now = step / 10
            display(progress(step=step), None)
        with display.compiling():
            pass
        display(Warned(260, "it diverges", "diverging"), None)
    text = console.file.getvalue()
    assert text.splitlines() == [
        f"{place} · {times} · {describe_progress(progress().row())}"
        for place, times in (
            ("step 50 of 1,000 (5 %)", "0:00:05 elapsed, 0:01:35 left"),
            ("step 100 of 1,000 (10 %)", "0:00:10 elapsed, 0:01:30 left"),
            ("step 250 of 1,000 (25 %)", "0:00:25 elapsed, 0:01:15 left"),
            ("step 1,000 of 1,000 (100 %)", "0:01:40 elapsed, 0:00:00 left"),
        )
    ] + [COMPILING, "step 260: it diverges"]
    assert all(letter.isprintable() or letter == "\n" for letter in text)


def test_long_run_without_a_terminal_is_heard_of_every_ten_minutes():
    console, clock = pipe(), Clock()
    with TrainingDisplay("C-DQN", 0, 50_000_000, console, clock) as display:
        for minute in range(1, 26):
            clock.now = 60.0 * minute
            display(progress(step=1000 * minute), None)
        clock.now += 60
        display(progress(step=2_500_000), None)
        clock.now += 540
        display(progress(step=2_509_000), None)
    told = [line.split(" of ")[0] for line in console.file.getvalue().splitlines()]
    assert told == ["step 10,000", "step 20,000", "step 2,500,000"]


def test_time_left_of_a_resumed_run_is_told_from_what_was_done_since():
    console, clock = pipe(), Clock()
    with TrainingDisplay("C-DQN", 900, 1000, console, clock) as display:
        clock.now = 10.0
        display(progress(step=950), None)
    assert "(95 %) · 0:00:10 elapsed, 0:00:10 left" in console.file.getvalue()


def evaluated(step):
    return Evaluated(step, EvaluationResult(np.array([1.0, 3.0]), np.array([5, 5]), 0.0)).row()


def test_evaluation_of_a_single_episode_has_no_error():
    console = pipe()
    with TrainingDisplay("C-DQN", 0, 100, console) as display:
        display(Evaluated(50, EvaluationResult(np.array([3.0]), np.array([5]), 0.0)), None)
    assert console.file.getvalue() == "step 50: greedy return 3 over 1 episode\n"


def test_several_runs_are_counted_when_their_last_evaluation_is_done():
    console = pipe()
    with RunsDisplay({"a": 100, "b": 100}, console) as display:
        for name, step in (("a", 50), ("b", 100), ("a", 100)):
            display(name, evaluated(step))
    assert console.file.getvalue().splitlines() == [
        "b: greedy return 2 ± 1 over 2 episodes (1 of 2 runs done)",
        "a: greedy return 2 ± 1 over 2 episodes (2 of 2 runs done)",
    ]


def test_several_runs_without_a_terminal_have_a_line_for_every_twentieth_of_all_their_steps():
    console, clock = pipe(), Clock()
    with RunsDisplay({"a": 100, "b": 100, "c": 100}, console, {"c": 100}, clock) as display:
        for name, step in (("a", 10), ("a", 60), ("b", 50), ("a", 60)):
            clock.now += 10
            display(name, {"kind": "compiling", "step": step})
            display(name, progress(step=step).row())
        display("a", evaluated(100))
    assert console.file.getvalue().splitlines() == [
        "compiling the update (about ten seconds, once for each run)",
        "step 110 of 300 (36 %) · 0:00:10 elapsed, 0:03:10 left · 1 of 3 runs done · a: return 10 · loss 0.5",
        "step 160 of 300 (53 %) · 0:00:20 elapsed, 0:00:46 left · 1 of 3 runs done · a: return 10 · loss 0.5",
        "step 210 of 300 (70 %) · 0:00:30 elapsed, 0:00:24 left · 1 of 3 runs done · b: return 10 · loss 0.5",
        "a: greedy return 2 ± 1 over 2 episodes (2 of 3 runs done)",
    ]
