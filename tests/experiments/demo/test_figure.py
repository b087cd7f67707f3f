"""The demo's table, its picture and its numbers."""

import csv
import io

import numpy as np
import pytest
from rich.console import Console

from cdqn.experiments.demo.figure import COLUMNS, demo_table, render_demo, write_demo
from cdqn.experiments.demo.offline import History
from cdqn.experiments.demo.runs import DemoResult, DemoRun, DemoSetting


def history(*q: float) -> History:
    update_T = np.arange(1, len(q) + 1)
    q_T = np.array(q, dtype=np.float64)
    return History(update_T, q_T**2, q_T, np.ones(len(q)), update_T, np.full(len(q), 9.0))


def result_of(**q_by_algorithm: list[float]) -> DemoResult:
    runs = [DemoRun(name, 100, "", history(*q)) for name, q in q_by_algorithm.items()]
    return DemoResult(DemoSetting(), tuple(runs), 1.0)


def test_q_beyond_one_and_a_half_bounds_at_any_record_counts_as_diverged():
    """Also if it came back, if it is negative, or if it became NaN."""
    for q, diverged in [([1, 149], 0), ([1, 151, 3], 1), ([-151.0], 1), ([1, np.nan], 1), ([1, np.inf], 1)]:
        result = result_of(dqn=q)
        assert [row.diverged_seeds for row in demo_table(result)] == [diverged], q
        assert result.diverged(result.runs[0]) == bool(diverged)


def test_table_shows_median_least_and_most():
    runs = [DemoRun("dqn", seed, "", history(q)) for seed, q in [(100, 5e5), (101, 4e5), (102, 7e5)]]
    runs.append(DemoRun("cdqn", 100, "", history(33.3)))
    result = DemoResult(DemoSetting(), tuple(runs), 1.0)
    console = Console(width=80, file=io.StringIO())
    console.print(render_demo(result))
    lines = [line.split() for line in console.file.getvalue().splitlines() if line.strip()]
    at = [line[0] for line in lines].index("DQN")
    assert lines[at] == ["DQN", "2.5e11", "5.0e5", "9.00", "3/3"]
    assert " ".join(lines[at + 1]) == "[1.6e11 … 4.9e11] [4.0e5 … 7.0e5] [9.00 … 9.00]"
    assert lines[at - 2] == ["C-DQN", "1109", "33.3", "9.00", "0/1"]


def test_picture_and_csv_are_written_in_full(small, tmp_path):
    picture, numbers = write_demo(small, tmp_path / "new" / "folder")
    assert picture.read_bytes().startswith(b"\x89PNG")
    with numbers.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == COLUMNS
    # 6 runs with 3 records of loss and Q and 3 evaluations; the share of DQN's branch for C-DQN's 2 runs
    assert len(rows) == 6 * 3 * 3 + 2 * 3
    (value,) = [row[5] for row in rows if row[:5] == ["dqn", "CartPole-v1", "101", "60", "q"]]
    run = small.of("dqn")[1]
    assert float(value) == pytest.approx(run.history.q_T[-1], rel=1e-5)
