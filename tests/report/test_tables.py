"""The comparison in numbers: what a row says, how it prints, what is kept as CSV."""

import csv
import io
import math

import numpy as np
import pytest
from rich.console import Console

from cdqn.report.runs import find_runs, read_run
from cdqn.report.statistics import Estimate
from cdqn.report.tables import (
    ComparisonRow,
    comparison_table,
    format_number,
    render,
    write_csv,
    write_curves_csv,
)


def printed(rows, width=100):
    console = Console(file=io.StringIO(), width=width)
    console.print(render(rows))
    return console.file.getvalue()


def table(runs):
    return comparison_table(runs, np.random.default_rng(0))


def test_rows_hold_the_numbers_of_their_runs(comparison_folder):
    cdqn, dqn, rg = table(find_runs(comparison_folder))
    assert [row.algorithm for row in (cdqn, dqn, rg)] == ["cdqn", "dqn", "rg"]
    assert cdqn.runs == cdqn.evaluated_runs == 3
    assert cdqn.evaluation.value == pytest.approx(202.0)  # evaluations 201, 202, 203
    assert 201 <= cdqn.evaluation.low < 202 < cdqn.evaluation.high <= 203
    assert cdqn.training_return == pytest.approx(110.0)
    assert cdqn.loss == pytest.approx(0.2)  # 0.1, 0.2, 0.3
    assert cdqn.q_over_bound == pytest.approx(0.35)
    assert dqn.q_over_bound == pytest.approx((34e4 + 1) / 100)
    assert (cdqn.diverged_runs, dqn.diverged_runs) == (0, 3)


def test_largest_q_counts_its_size_not_its_sign(tmp_path, make):
    rows = [make.progress(10, q_mean=-400.0), make.progress(20, q_mean=50.0)]
    assert table([read_run(make.write(tmp_path / "a", rows))])[0].q_over_bound == 4.0


def test_nan_counts_as_infinite_in_medians(tmp_path, make):
    """np.median of a list with NaN is NaN, and dropping the NaN would hide the worst run."""
    rows = [[make.progress(9, loss=end, q_mean=end)] for end in (0.5, math.nan, math.inf)]
    folders = [make.write(tmp_path / str(seed), rows[seed], seed=seed) for seed in range(3)]
    (row,) = table([read_run(folder) for folder in folders])
    assert row.loss == row.q_over_bound == math.inf
    assert row.diverged_runs == 2
    assert "∞" in printed([row])


def test_runs_without_evaluation_are_counted_aloud(tmp_path, make):
    evaluated = [make.evaluation(10, [5.0]), make.evaluation(20, [7.0])]
    one = read_run(make.write(tmp_path / "a", evaluated, seed=0))
    two = read_run(make.write(tmp_path / "b", evaluated, seed=1))
    none = read_run(make.write(tmp_path / "c", [make.progress(10)], seed=2))
    (row,) = table([one, none])
    assert row.evaluation == (7.0, 7.0, 7.0)  # the last evaluation, not the first
    assert "7.000 (n=1)" in printed([row])
    assert "7.000 [7.000, 7.000] (n=2)" in printed(table([one, two, none]))
    (row,) = table([none])
    assert row.evaluation is None
    assert "–" in printed([row])


def test_run_that_logged_nothing_still_has_a_row(tmp_path, make):
    (row,) = table([read_run(make.write(tmp_path / "a", []))])
    assert row == ComparisonRow("cdqn", 1, 0, None, None, None, None, 0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (1e-5, "1.00e-5"),
        (-1e-5, "-1.00e-5"),
        (0.0012346, "0.001235"),
        (0.5, "0.5000"),
        (487.31, "487.3"),
        (-21.0, "-21.00"),
        (12345.6, "12346"),
        (99999.7, "1.00e5"),
        (5.21e5, "5.21e5"),
        (1e30, "1.00e30"),
        (math.inf, "∞"),
        (-math.inf, "-∞"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_short_at_every_size(value, text):
    assert format_number(value) == text


def test_table_of_awkward_numbers_fits_100_columns():
    row = ComparisonRow("cdqn", 10, 9, Estimate(-1.234e-5, -1.235e30, 1.234e30), -1.2e-5, 1e30, 1e30, 10)
    text = printed([row])
    assert "-1.23e-5 [-1.23e30, 1.23e30] (n=9)" in text
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_csv_keeps_full_precision_and_empty_fields(tmp_path, comparison_folder, make):
    rows = table(find_runs(comparison_folder))
    rows.append(ComparisonRow("rg", 1, 0, None, None, math.inf, None, 1))
    write_csv(tmp_path / "new" / "table.csv", rows)
    with (tmp_path / "new" / "table.csv").open() as file:
        read = list(csv.DictReader(file))
    assert float(read[0]["evaluation_iqm"]) == rows[0].evaluation.value
    assert float(read[1]["q_over_bound_median"]) == rows[1].q_over_bound
    assert (read[3]["evaluation_iqm"], read[3]["loss_median"], read[3]["diverged_runs"]) == ("", "inf", "1")


def test_curves_csv_has_every_curve_in_long_form(tmp_path, make):
    rows = [make.progress(10, loss=None), make.progress(20, loss=math.nan), make.episode(20, 9.0)]
    folder = make.write(tmp_path / "a", [*rows, make.evaluation(20, [4.0])], algorithm="dqn", seed=3)
    write_curves_csv(tmp_path / "curves.csv", [read_run(folder)])
    lines = (tmp_path / "curves.csv").read_text().splitlines()
    assert lines[0] == "algorithm,setting,seed,step,quantity,value"
    assert "dqn,CartPole-v1,3,10,q_mean,34.0" in lines
    assert [line for line in lines if ",loss," in line] == ["dqn,CartPole-v1,3,20,loss,nan"]
    assert "dqn,CartPole-v1,3,20,episode_return,9.0" in lines
    assert "dqn,CartPole-v1,3,20,evaluation_mean,4.0" in lines
