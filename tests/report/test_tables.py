"""The tables of a comparison: how they print, what is kept as CSV."""

import csv
import io
import math

import pytest
from rich.console import Console

from cdqn.report import tables
from cdqn.report.comparison import ComparisonRow, DifferenceRow, SummaryRow, comparison_table
from cdqn.report.groups import group_runs
from cdqn.report.runs import find_runs, read_run
from cdqn.report.statistics import Estimate
from cdqn.report.tables import format_number

FIVE = (480.0, 500.0, 490.0, 500.0, 470.0)


def printed(table, width=100):
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    return console.file.getvalue()


def row(finals=FIVE, runs=None, label="C-DQN"):
    return ComparisonRow(label, "cdqn", len(finals) if runs is None else runs, finals, 450.0, 0.5, 0.4, 0)


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_five_runs_are_a_mean_with_its_interval():
    text = printed(tables.render([row()]))
    assert "488.0 [471.8, 504.2]" in text
    assert "95 % interval, Student's t" in text
    assert "no interval is claimed" not in text


def test_fewer_runs_are_shown_one_by_one_and_no_interval_is_claimed():
    text = printed(tables.render([row((412.0, 500.0, 488.0))]))
    assert "412.0, 500.0, 488.0" in text
    assert "no interval is claimed" in text
    assert "95 %" not in text


def test_runs_that_did_not_come_to_their_end_are_counted_aloud():
    text = printed(tables.render([row(runs=7), row((1.0, 2.0), 3, "DQN"), row((), 2, "RG")]))
    assert "[471.8, 504.2] (n=5)" in text
    assert "1.000, 2.000 (n=2)" in text
    assert "–" in text
    assert "95 %" in text
    assert "no interval is claimed" in text


def test_label_of_a_folder_is_no_markup():
    assert "[red]x[/red]\\x1b" in printed(tables.render([row(label="[red]x[/red]\x1b")]))


def test_differences_have_signs_and_say_from_what():
    rows = [DifferenceRow("DQN", (2.0, 1.0, 3.0, 1.0, 3.0), 0.84), DifferenceRow("RG", (-1.5, 0.0, 2.0), 0.5)]
    text = printed(tables.render_differences(rows, "C-DQN"))
    assert "less C-DQN" in text
    assert "+2.000 [+0.7583, +3.242]" in text
    assert "-1.500, 0, +2.000" in text
    assert "84%" in text


def test_summary_shows_what_it_knows():
    rows = [
        SummaryRow("C-DQN", 2, 10, Estimate(0.9, 0.8, 1.0), None, None, None, 0),
        SummaryRow("DQN", 2, 10, Estimate(0.5, 0.4, 0.6), 0, 2, 0.125, 3),
    ]
    text = printed(tables.render_summary(rows))
    assert "0.5000 [0.4000, 0.6000]" in text
    assert "12%" in text
    assert "normalised" not in printed(tables.render_summary([line._replace(normalized=None) for line in rows]))
    few = printed(tables.render_summary([line._replace(normalized=Estimate(0.5, math.nan, math.nan)) for line in rows]))
    assert "[" not in few


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


def test_tables_of_long_labels_fit_80_columns():
    long = "C-DQN, target period 100, learning rate 0.00025"
    text = printed(tables.render([row(label=long), row((-1.234e-5, 1e30), label=long)]), width=80)
    text += printed(tables.render_differences([DifferenceRow(long, FIVE, 0.5)], long), width=80)
    text += printed(tables.render_summary([SummaryRow(long, 2, 9, Estimate(0.5, 0.4, 0.6), 1, 1, 0.5, 0)]), width=80)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_csv_keeps_full_precision_and_leaves_empty_what_is_not_claimed(tmp_path, comparison_folder):
    rows = comparison_table(group_runs(find_runs(comparison_folder)))
    rows += [row(), ComparisonRow("RG", "rg", 1, (), None, math.inf, None, 1)]
    tables.write_csv(tmp_path / "new" / "table.csv", rows)
    cdqn, dqn, _, five, none = read(tmp_path / "new" / "table.csv")
    assert (cdqn["row"], cdqn["algorithm"], cdqn["runs"], cdqn["evaluated_runs"]) == ("C-DQN", "cdqn", "3", "3")
    assert (cdqn["evaluation_mean"], cdqn["evaluation_low"]) == ("202.0", "")
    assert float(dqn["q_over_bound_largest"]) == rows[1].q_over_bound
    assert float(five["evaluation_low"]) == rows[3].final.low
    assert (none["evaluation_mean"], none["loss_geometric_mean"], none["diverged_runs"]) == ("", "inf", "1")


def test_csv_of_differences_and_summary_name_their_columns(tmp_path):
    tables.write_differences_csv(tmp_path / "d.csv", [DifferenceRow("DQN", FIVE, 0.5)], "C-DQN")
    (line,) = read(tmp_path / "d.csv")
    assert (line["row"], line["less"], line["seeds"], line["difference_mean"]) == ("DQN", "C-DQN", "5", "488.0")
    assert line["probability_above"] == "0.5"
    tables.write_summary_csv(tmp_path / "s.csv", [SummaryRow("DQN", 2, 10, None, 0, 2, 0.125, 3)])
    (line,) = read(tmp_path / "s.csv")
    assert (line["environments"], line["normalized_mean"], line["better"], line["worse"]) == ("2", "", "0", "2")
    assert line["diverged_runs"] == "3"


def test_curves_csv_has_every_curve_in_long_form(tmp_path, make):
    rows = [make.progress(10, loss=None), make.progress(20, loss=math.nan), make.episode(20, 9.0)]
    folder = make.write(tmp_path / "a", [*rows, make.evaluation(20, [4.0])], algorithm="dqn", seed=3)
    tables.write_curves_csv(tmp_path / "curves.csv", group_runs([read_run(folder)]))
    lines = (tmp_path / "curves.csv").read_text().splitlines()
    assert lines[0] == "algorithm,setting,seed,step,quantity,value"
    assert "dqn,CartPole-v1,3,10,q_mean,34.0" in lines
    assert [line for line in lines if ",loss," in line] == ["dqn,CartPole-v1,3,20,loss,nan"]
    assert "dqn,CartPole-v1,3,20,episode_return,9.0" in lines
    assert "dqn,CartPole-v1,3,20,evaluation_mean,4.0" in lines
    tables.write_curves_csv(tmp_path / "curves.csv", group_runs([read_run(folder)], ["gamma"]))
    assert read(tmp_path / "curves.csv")[0]["setting"] == "CartPole-v1, gamma 0.99"
