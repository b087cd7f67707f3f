"""Bars and lines of runs on a terminal, and where there is none."""

import io

import numpy as np
from rich.console import Console

from cdqn.cli.console import RunsDisplay, TrainingDisplay, describe_progress
from cdqn.training.events import Evaluated, EvaluationResult, Warned
from helpers import progress


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
        "1,000 steps/s · return – · loss 0.512 · Q 5 (earned -10 … 60) · ε 0.10 · DQN branch 70%"
    )
    early = progress(loss=None, q_mean=None, statistics={}).row()
    assert describe_progress(early) == "1,000 steps/s · return 10 · ε 0.10"


def test_without_a_terminal_there_is_a_line_for_each_tenth_and_every_warning():
    console = Console(file=io.StringIO(), force_terminal=False, width=200)
    with TrainingDisplay("C-DQN", 0, 1000, console) as display:
        for step in (50, 100, 150, 250):
            display(progress(step=step), None)
        display(Warned(260, "it diverges", "diverging"), None)
    lines = console.file.getvalue().splitlines()
    assert [line.partition(" · ")[0] for line in lines] == [
        "step 100 of 1,000",
        "step 250 of 1,000",
        "step 260: it diverges",
    ]


def test_several_runs_are_counted_when_their_last_evaluation_is_done():
    console = Console(file=io.StringIO(), force_terminal=False, width=200)
    with RunsDisplay({"a": 100, "b": 100}, console) as display:
        for name, step in (("a", 50), ("b", 100), ("a", 100)):
            display(name, Evaluated(step, EvaluationResult(np.array([1.0, 3.0]), np.array([5, 5]), 0.0)).row())
    assert console.file.getvalue().splitlines() == [
        "b: greedy return 2 ± 1 (1 of 2 runs done)",
        "a: greedy return 2 ± 1 (2 of 2 runs done)",
    ]
