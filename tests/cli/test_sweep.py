"""`cdqn sweep`: what it prints and leaves, how it is continued, and what it refuses."""

import csv
import json
import shlex
import sys
from pathlib import Path

import pytest

from cdqn.cli.main import _parse, main
from cdqn.cli.sweep import SweepDisplay
from cdqn.runs.sweep.trials import Trial
from cdqn.training.run_config import read_run_config
from run_files import InlinePool, one_line
from small_sweep import small_plan

TINY = ["--steps", "300", "--hidden", "8", "--warmup-steps", "40", "--batch-size", "8", "--update-period-steps", "8"]
TINY += [
    "--evaluation-period-steps",
    "60",
    "--log-period-steps",
    "20",
    "--evaluation-episodes",
    "2",
    "--compile",
    "off",
]
SPACE = "learning_rate = {low = 1e-4, high = 1e-1, log = true}\nn_step = [1, 2]\ndueling = [true, false]\n"


@pytest.fixture
def space(here, monkeypatch):
    """A file, and workers in this process."""
    monkeypatch.setattr("cdqn.runs.workers.local.LocalPool", lambda jobs: InlinePool())
    Path("space.toml").write_text(SPACE)
    return ["--space", "space.toml"]


def test_sweep_leaves_table_picture_csv_and_a_line_that_trains_the_best(space, capsys):
    command = ["sweep", "cli_envs:Line-v0", *space, "--trials", "3", "--out", "s", *TINY]
    assert main(command) == 0
    out = capsys.readouterr().out
    for word in (
        "trial-002: return",
        "(3 of 3 trials done)",
        "0 (defaults)",
        "seed 1000 was used to choose",
        "best: trial",
    ):
        assert word in out
    with open("s/sweep.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["trial"] for row in rows] == ["0", "1", "2"]
    assert Path("s/sweep.png").stat().st_size > 10_000
    best = max(rows, key=lambda row: (float(row["value"]), -int(row["trial"])))
    (line,) = [line.strip() for line in out.splitlines() if line.startswith("  cdqn train")]
    pasted = _parse(shlex.split(line)[1:]).config.resolved()
    trained = read_run_config(Path("s") / f"trial-{int(best['trial']):03d}" / "seed1000", ["cli_envs"])[1]
    measured = ("seed", "evaluation_period_steps", "log_period_steps")
    assert {k: v for k, v in vars(pasted).items() if k not in measured} == {
        k: v for k, v in vars(trained).items() if k not in measured
    }
    trials = Path("s/trials.json").read_bytes()
    assert main(command) == 0  # the same command finds nothing left to do
    assert Path("s/trials.json").read_bytes() == trials
    assert "trials done" not in capsys.readouterr().out
    assert main(["sweep", "cli_envs:Line-v0", *space, "--trials", "3", "--out", "s", *TINY, "--gamma", "0.9"]) == 1
    assert "gamma None, and gamma 0.9 is asked for" in one_line(capsys)


def test_resume_goes_on_with_a_sweep_by_the_users_word_alone(space, capsys):
    assert main(["sweep", "cli_envs:Line-v0", *space, "--trials", "1", "--seeds", "2", "--out", "s", *TINY]) == 0
    content = json.loads(Path("s/sweep.json").read_text())
    Path("s/sweep.json").write_text(json.dumps(content | {"trials": 2}))
    capsys.readouterr()
    assert main(["resume", "s"]) == 1
    assert "--allow-import cli_envs" in one_line(capsys)
    assert main(["resume", "s", "--allow-import", "cli_envs"]) == 0
    out = capsys.readouterr().out
    assert "trial-001" in out
    assert "seeds 1000 to 1001 were used to choose" in out
    assert {path.name for path in Path("s").glob("trial-*/*")} == {"seed1000", "seed1001"}


def test_usual_space_is_shown_and_written_down(space, capsys):
    assert main(["sweep", "cli_envs:Line-v0", "--trials", "1", *TINY]) == 0
    folder = Path("runs/sweep-cli_envs-Line-v0")
    out = capsys.readouterr().out
    for line in (folder / "space.toml").read_text().splitlines()[2:]:
        assert f"  {line}" in out
    assert "target_period_updates" in out
    assert "batch_size" not in (folder / "space.toml").read_text(), "it is given"


@pytest.mark.parametrize(
    ("text", "flags", "words"),
    [
        ("learning_rat = [1e-3, 1e-4]", [], "did you mean learning_rate"),
        ("", [], "space.toml is empty"),
        ("n_step = [1, 2]", ["--n-step", "3"], "drop one of the two"),
        ("target_period_updates = [1, 2]", ["--algorithm", "rg"], "rg has no target network"),
        (SPACE, ["--space", "nowhere.toml"], "--space nowhere.toml cannot be read"),
        (SPACE, ["--trials", "0"], "trials is 0"),
        (SPACE, ["--steps", "500"], "nothing would be learned"),
    ],
)
def test_refusals_are_one_line_and_leave_nothing(space, text, flags, words, here, capsys):
    Path("space.toml").write_text(text)
    assert main(["sweep", "CartPole-v1", *space, *flags]) == 1
    assert words in one_line(capsys)
    assert [path.name for path in here.iterdir()] == ["space.toml"]


@pytest.mark.parametrize("arguments", [["sweep", "CartPole-v1"], ["resume", "s"]])
def test_missing_optuna_is_named_with_the_line_that_installs_it(space, arguments, capsys, monkeypatch):
    Path("s").mkdir()
    Path("s/sweep.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert main(arguments) == 1
    assert "pip install 'cdqn[sweep]'" in one_line(capsys)


def test_failed_trials_are_named_with_what_to_do(space, capsys):
    Path("space.toml").write_text("n_step = [1, 2]\n")
    assert main(["sweep", "cli_envs:Raises-v0", *space, "--trials", "2", "--out", "s", *TINY]) == 1
    out, err = capsys.readouterr()
    assert "trial-001 failed: RuntimeError: the game has crashed" in err
    assert "`cdqn resume s` tries them again" in err
    assert "cdqn train" not in out


def test_trial_that_was_given_up_says_when(capsys):
    trial = Trial(7, {}, state="pruned", evaluations={1000: [(60, 1.0), (1200, 2.5)]})
    SweepDisplay(small_plan(trials=9)).tell_trial(trial, [trial])
    assert capsys.readouterr().out.startswith("trial-007: pruned at step 1,200, return 2.500 by then (1 of 9")


def test_interrupted_sweep_says_how_to_go_on(space, capsys, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("cdqn.runs.sweep.search.run_sweep", interrupt)
    assert main(["sweep", "cli_envs:Line-v0", *space, "--out", "s", *TINY]) == 130
    assert "stopped: `cdqn resume s` resumes it" in capsys.readouterr().out
