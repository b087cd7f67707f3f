"""Data and claims of a figure: what is written, what is found again, what the terminal shows."""

import csv
import io
import math

from rich.console import Console

from cdqn.report.reproduction import Claim, Point, Reproduction, render_claims, select, write_claims, write_rows

ROWS = [
    Point("cdqn", "a", 0, "loss", 1 / 3, 0.125),
    Point("dqn", "a", 0, "loss", 7.0, math.nan),
    Point("cdqn", "b", 0, "loss", 8.0, 0.0),
    Point("cdqn", "a", 50_000, "loss", 1e-12, 0.0),
    Point("cdqn", "a", 0, "q", 9.0, 0.0),
]
CLAIMS = [
    Claim("it falls", "below 1", "0.5 ± 0.1", True),
    Claim("it rises, at last", "above 1", "0.5", False),
    Claim("it lasts", "", "3 s", None),
]
FIGURE = Reproduction("fig0", "2 runs, seed 0", ROWS, CLAIMS)


def table_in(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_rows_are_written_with_their_digits(tmp_path):
    write_rows(tmp_path / "a.csv", ROWS)
    rows = table_in(tmp_path / "a.csv")
    assert list(rows[0]) == list(Point._fields)
    assert list(rows[0].values()) == ["cdqn", "a", "0", "loss", "0.33333333", "0.125"]
    assert (rows[3]["step"], rows[3]["value"], rows[1]["stderr"]) == ("50000", "1e-12", "nan")


def test_claims_are_written_with_a_verdict_where_there_is_one(tmp_path):
    write_claims(tmp_path / "a.csv", FIGURE)
    rows = table_in(tmp_path / "a.csv")
    assert [row["holds"] for row in rows] == ["True", "False", ""]
    assert rows[1]["text"] == "it rises, at last"


def test_one_curve_is_selected_by_algorithm_setting_and_quantity():
    step, value, stderr = select(FIGURE, "cdqn", "a", "loss")
    assert (step.tolist(), value.tolist(), stderr.tolist()) == ([0, 50_000], [1 / 3, 1e-12], [0.125, 0])


def test_curve_that_is_not_there_is_empty():
    assert [column.shape for column in select(FIGURE, "rg", "a", "loss")] == [(0,)] * 3


def test_table_of_claims_says_what_holds_what_does_not_and_what_is_only_reported():
    console = Console(file=io.StringIO(), width=100)
    console.print(render_claims(FIGURE))
    lines = console.file.getvalue().splitlines()
    for text, verdict in (("it falls", "holds"), ("it rises", "does not hold"), ("it lasts", "reported")):
        (line,) = (line for line in lines if text in line)
        assert verdict in line
    assert "fig0: 2 runs, seed 0" in lines[0]
    assert "±: standard error" in lines[-1]


def test_data_and_claims_are_written_with_named_columns(tmp_path):
    reproduction = Reproduction(
        "fig1",
        "two runs",
        [Point("RG", "width 10", 10_000_000, "msbe", 1.25, float("nan"))],
        [Claim("a", "1", "2 ± 1", False), Claim("b", "1", "1", None)],
    )
    write_rows(tmp_path / "data.csv", reproduction.rows)
    write_claims(tmp_path / "claims.csv", reproduction)
    assert (tmp_path / "data.csv").read_text() == (
        "algorithm,setting,step,quantity,value,stderr\nRG,width 10,10000000,msbe,1.25,nan\n"
    )
    assert (tmp_path / "claims.csv").read_text() == "text,expected,found,holds\na,1,2 ± 1,False\nb,1,1,\n"
    assert [list(column.cells) for column in render_claims(reproduction).columns][-1] == [
        "[red]does not hold[/]",
        "reported",
    ]


def test_selecting_a_curve_that_is_not_there_gives_an_empty_one():
    steps = [10, 100, 1_000, 10_000]
    rows = [
        Point("RG", "width 20", step, quantity, 1e4 / step, 1.0) for quantity in ("msbe", "distance") for step in steps
    ]
    reproduction = Reproduction("fig1", "made up", rows, [])
    step_T, value_T, stderr_T = select(reproduction, "RG", "width 30", "msbe")
    assert step_T.size == value_T.size == stderr_T.size == 0
    assert select(reproduction, "RG", "width 20", "distance")[0].tolist() == steps
