"""`cdqn reproduce`: data, claims and pictures of each figure that was asked for."""

import csv

from cdqn.cli.main import main


def test_reproduce_leaves_data_claims_and_pictures_and_prints_the_verdicts(tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    assert main(["reproduce", "conditioning", "fig2", "conditioning", "--scale", "smoke", "--out", str(out)]) == 0
    expected = {
        f"{name}{end}" for name in ("fig2", "conditioning") for end in (".csv", "_claims.csv", ".png", ".pdf", ".json")
    }
    expected.add("fig2_published.csv")
    assert {path.name for path in out.iterdir()} == expected
    with open(out / "fig2.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["algorithm", "setting", "step", "quantity", "value", "stderr"]
    printed = capsys.readouterr().out
    assert "holds" in printed
    assert "seed 0, scale smoke" in printed
    assert printed.count("conditioning.png") == 1  # asked for twice, done once


def test_the_seed_decides_the_data(tmp_path):
    for name, seed in (("a", "0"), ("b", "0"), ("c", "1")):
        flags = ["--scale", "smoke", "--seed", seed, "--jobs", "1", "--out", str(tmp_path / name)]
        assert main(["reproduce", "fig3", *flags]) == 0
    a, b, c = ((tmp_path / name / "fig3.csv").read_bytes() for name in "abc")
    assert a == b != c


def test_figure_8_takes_other_algorithms_and_no_other_figure_does(tmp_path, capsys):
    flags = ["--scale", "smoke", "--jobs", "1", "--runs", "1", "--out", str(tmp_path / "out")]
    assert main(["reproduce", "fig8", "--algorithms", "dqn,dcdqn", *flags]) == 0
    assert {line.split(",")[0] for line in (tmp_path / "out" / "fig8.csv").read_text().splitlines()[1:]} == {
        "dqn",
        "dcdqn",
    }
    assert "--algorithms dqn,dcdqn" in (tmp_path / "out" / "fig8.json").read_text()
    capsys.readouterr()
    assert main(["reproduce", "fig3", "--algorithms", "dqn", *flags]) == 1
    assert "algorithms can be chosen for fig8 alone" in capsys.readouterr().err
    assert main(["reproduce", "fig8", "--algorithms", "ddqn", *flags]) == 1
    assert "there is no algorithm 'ddqn'" in capsys.readouterr().err


def test_a_figure_that_is_not_there_is_one_line_and_nothing_is_run(tmp_path, capsys):
    assert main(["reproduce", "conditioning", "fig99", "--out", str(tmp_path / "out")]) == 1
    assert "there is no figure 'fig99' to reproduce: did you mean fig9 or" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_report_is_one_page_of_what_reproduce_left(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["reproduce", "conditioning", "--scale", "smoke", "--out", str(out)]) == 0
    (out / "fig5.json").write_text("{")
    assert main(["report", str(out), "--out", str(tmp_path / "pages" / "page.html")]) == 0
    page = (tmp_path / "pages" / "page.html").read_text()
    assert "conditioning" in page
    assert "cdqn reproduce conditioning --scale smoke" in page
    captured = capsys.readouterr()
    assert "fig5.json is left out" in captured.err
    assert "page.html" in captured.out


def test_report_of_a_folder_without_results_is_one_line(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 1
    assert "has nothing to report: `cdqn reproduce fig1" in capsys.readouterr().err
