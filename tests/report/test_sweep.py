"""A sweep as a table, a CSV and a picture, from results that are known."""

import csv

import pytest
from rich.console import Console

from cdqn.report.sweep import (
    Setting,
    TrialResult,
    best_result,
    draw_sweep,
    render,
    setting_text,
    sweep_picture,
    write_csv,
)

SETTINGS = [Setting("learning_rate", None, log=True), Setting("n_step", None), Setting("hidden", ((64, 64), (8,)))]


def result(number, value, state="complete", rate=1e-3, hidden=(8,), reached=None):
    settings = {"learning_rate": rate, "n_step": 3, "hidden": hidden}
    return TrialResult(number, state, value, value if reached is None else reached, 100 * number, settings)


RESULTS = [
    result(0, 10.0, hidden=(128, 128)),
    result(1, 30.0, rate=0.00012),
    result(2, None, "pruned", reached=5.0),
    result(3, 30.0, hidden=(64, 64)),
    result(4, None, "failed"),
]


def text_of(table):
    console = Console(width=80, no_color=True)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def test_best_is_the_largest_value_and_the_first_of_equals():
    assert best_result(RESULTS).number == 1
    assert best_result(RESULTS[4:]) is None


def test_table_has_the_best_in_order_the_defaults_and_what_became_of_the_others():
    lines = text_of(render(RESULTS, SETTINGS)).splitlines()
    rows = [line.split() for line in lines if line.strip()[:1].isdigit()]
    assert rows == [
        ["1", "30.00", "0.00012", "3", "8"],
        ["3", "30.00", "0.001", "3", "64", "64"],
        ["0", "(defaults)", "10.00", "0.001", "3", "128", "128"],
    ]
    assert "3 complete · 1 pruned · 1 failed" in lines[-1]


def test_defaults_are_shown_even_if_they_are_the_worst_of_many():
    many = [result(number, float(number)) for number in range(30)]
    rows = [line.split()[0] for line in text_of(render(many, SETTINGS)).splitlines() if line.strip()[:1].isdigit()]
    assert rows == ["29", "28", "27", "26", "25", "24", "23", "22", "21", "20", "0"]


def test_csv_has_a_row_for_each_trial_with_full_precision(tmp_path):
    write_csv(tmp_path / "sweep.csv", [*RESULTS, result(5, 1 / 3, rate=0.1234)], SETTINGS)
    with open(tmp_path / "sweep.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["state"] for row in rows] == ["complete", "complete", "pruned", "complete", "failed", "complete"]
    assert [row["value"] for row in rows] == ["10.0", "30.0", "", "30.0", "", str(1 / 3)]
    assert rows[2]["reached"] == "5.0"
    assert (rows[5]["learning_rate"], rows[3]["hidden"], rows[5]["steps"]) == ("0.1234", "64 64", "500")


def points(axes, marker):
    return [tuple(map(float, xy)) for line in axes.lines if line.get_marker() == marker for xy in line.get_xydata()]


def test_picture_shows_every_trial_in_its_order_and_over_each_setting():
    order, rate, n_step, hidden = draw_sweep(RESULTS, SETTINGS, "title").axes
    assert {(0, 10), (1, 30), (3, 30)} <= set(points(order, "o"))
    assert points(order, "x") == [(2, 5)]
    assert points(order, "D") == [(0, 10)]
    (best,) = [line for line in order.lines if line.get_label() == "best so far"]
    assert best.get_xydata().tolist() == [[0, 10], [1, 30], [2, 30], [3, 30], [4, 30]]
    assert (rate.get_xscale(), n_step.get_xscale()) == ("log", "linear")
    assert [tick.get_text() for tick in hidden.get_xticklabels()] == ["64 64", "8", "128 128"], "the defaults beside"
    assert {(1, 30), (0, 30), (2, 10)} <= set(points(hidden, "o")) | set(points(hidden, "D"))
    assert [axes.get_xlabel() for axes in (rate, n_step, hidden)] == ["learning_rate", "n_step", "hidden"]


@pytest.mark.parametrize("results", [[], RESULTS[4:]])
def test_sweep_in_which_nothing_is_complete_can_be_drawn(tmp_path, results):
    sweep_picture(results, SETTINGS, "nothing", tmp_path / "sweep.png")
    assert (tmp_path / "sweep.png").stat().st_size > 5_000


def test_values_read_as_one_types_them():
    assert [setting_text(value) for value in (0.00010, (8, 8), True, "mse")] == ["0.0001", "8 8", "True", "mse"]
