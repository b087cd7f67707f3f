"""What a reproduction leaves: its data, its claims, and a curve of it."""

from cdqn.report.reproduction import (
    Claim,
    Reproduction,
    Row,
    render_claims,
    select,
    write_claims,
    write_rows,
)


def test_data_and_claims_are_written_with_named_columns(tmp_path):
    reproduction = Reproduction(
        "fig1",
        "two runs",
        [Row("RG", "width 10", 10_000_000, "msbe", 1.25, float("nan"))],
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
        Row("RG", "width 20", step, quantity, 1e4 / step, 1.0) for quantity in ("msbe", "distance") for step in steps
    ]
    reproduction = Reproduction("fig1", "made up", rows, [])
    step_T, value_T, stderr_T = select(reproduction, "RG", "width 30", "msbe")
    assert step_T.size == value_T.size == stderr_T.size == 0
    assert select(reproduction, "RG", "width 20", "distance")[0].tolist() == steps
