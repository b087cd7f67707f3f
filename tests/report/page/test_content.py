"""What the page shows of a folder, and what it says of what it cannot show."""

import json

import pytest

from cdqn.errors import CheckpointError
from cdqn.report.page.content import charts_of, read_folder
from cdqn.report.reproduction import Claim, Point, Reproduction, write_about, write_claims, write_rows


def leave(folder, name="fig5", points=None, published=(), claims=None):
    """A folder as `cdqn reproduce` leaves it."""
    points = points or [Point("cdqn", "SpaceInvaders", step, "return", step / 2, 0.1) for step in (1, 2, 3)]
    claims = claims or [Claim("DQN diverges", "> 10 times", "12 times", True)]
    folder.mkdir(exist_ok=True)
    reproduction = Reproduction(name, "3 runs", points, claims, published, {"gamma": 0.9})
    write_rows(folder / f"{name}.csv", points)
    write_claims(folder / f"{name}_claims.csv", reproduction)
    if published:
        write_rows(folder / f"{name}_published.csv", published)
    write_about(folder / f"{name}.json", reproduction, title="a title", seconds=3.0)


def test_experiments_are_read_with_their_claims_in_the_order_of_the_paper(tmp_path):
    for name in ("table1", "fig10", "fig5"):
        leave(tmp_path, name)
    page = read_folder(tmp_path)
    assert [experiment.name for experiment in page.experiments] == ["fig5", "fig10", "table1"]
    first = page.experiments[0]
    assert first.claims == [Claim("DQN diverges", "> 10 times", "12 times", True)]
    assert first.about["settings"] == {"gamma": 0.9}
    assert page.problems == []


def test_a_chart_for_each_game_and_quantity_and_the_authors_beside(tmp_path):
    ours = [
        Point(algorithm, f"{game}, {variant}", step, quantity, 1.0, 0.1)
        for algorithm in ("cdqn", "dqn")
        for game in ("A", "B")
        for variant in ("short", "long")
        for quantity in ("return", "loss")
        for step in (1, 2)
    ]
    theirs = [Point("cdqn", "A (Atari), short", 5, "return", 2.0, float("nan"))]
    charts = charts_of(ours, theirs)
    assert [(chart.title, chart.y_label) for chart in charts] == [
        ("A", "training return"),
        ("A", "loss (squared TD error)"),
        ("B", "training return"),
        ("B", "loss (squared TD error)"),
        ("A (Atari)", "training return"),
    ]
    assert [series.label for series in charts[0].series] == ["C-DQN, short", "C-DQN, long", "DQN, short", "DQN, long"]
    assert charts[0].series[0].dash != charts[0].series[1].dash
    assert charts[4].series[0].label == "the authors', C-DQN"
    assert charts[4].series[0].error is None


def test_curves_over_many_decades_have_logarithmic_axes():
    points = [Point("rg", "width 10", 10.0**k, "msbe", 10.0**-k, 0.0) for k in range(6)]
    (chart,) = charts_of(points, [])
    assert (chart.log_x, chart.log_y) == (True, True)
    (chart,) = charts_of([point._replace(value=-1.0) for point in points], [])
    assert (chart.log_x, chart.log_y) == (True, False)


def test_single_numbers_are_bars():
    points = [Point(name, "300 episodes", 0, "energy", 1.0, 0.1) for name in ("lqg", "none")]
    (chart,) = charts_of(points, [])
    assert chart.bars
    assert [series.colour for series in chart.series] == ["#E69F00", "#56B4E9"]


def test_last_tests_of_the_runs_are_bars_and_their_curves_are_not():
    points = [Point("cdqn", f"seed {seed}", 133_333.0, "final_energy", 0.74, 0.1) for seed in (0, 1)]
    points += [Point("cdqn", "seed 0", time, "energy", 0.8, 0.1) for time in (100.0, 200.0)]
    final, curve = charts_of(points, [])
    assert (final.bars, final.x_label, final.y_label) == (True, "", "energy of the last policy")
    assert (curve.bars, curve.x_label) == (False, "simulated time")


def test_values_that_are_no_numbers_are_left_out():
    points = [Point("dqn", "A", step, "loss", value, 0.1) for step, value in ((1, 1.0), (2, float("inf")), (3, 2.0))]
    (chart,) = charts_of(points, [])
    assert chart.series[0].x == [1, 3]


def test_what_cannot_be_read_is_named_and_the_rest_is_shown(tmp_path):
    leave(tmp_path, "fig5")
    leave(tmp_path, "fig6")
    leave(tmp_path, "fig7")
    leave(tmp_path, "fig10")
    (tmp_path / "fig6.csv").write_text("a,b\n1,2\n")
    (tmp_path / "fig7.json").unlink()
    (tmp_path / "fig10.json").write_text("[1]")
    (tmp_path / "fig15.json").write_text("{")
    run = tmp_path / "games" / "laptop" / "fig5" / "SpaceInvaders" / "cdqn-seed0"
    run.mkdir(parents=True)
    (run / "config.json").write_text("{}")
    page = read_folder(tmp_path)
    assert [experiment.name for experiment in page.experiments] == ["fig5"]
    told = "\n".join(page.problems)
    assert "fig6.csv has the columns a, b" in told
    assert "fig7 is left out: it has no fig7.json" in told
    assert "fig10.json" in told
    assert "fig15.json cannot be read" in told
    assert "games/laptop/fig5/SpaceInvaders/cdqn-seed0 is not complete" in told


@pytest.mark.parametrize("make", [False, True])
def test_a_folder_with_nothing_to_report_is_refused(tmp_path, make):
    folder = tmp_path / "empty"
    if make:
        folder.mkdir()
    with pytest.raises(CheckpointError, match=r"cdqn reproduce"):
        read_folder(folder)


def test_links_are_not_followed(tmp_path):
    leave(tmp_path / "out")
    (tmp_path / "secret.json").write_text(json.dumps({"name": "secret"}))
    (tmp_path / "out" / "fig9.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(CheckpointError, match="symbolic link"):
        read_folder(tmp_path / "out")
