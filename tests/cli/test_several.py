"""`cdqn compare`: the settings of each algorithm, what is drawn of the runs, and what a kill leaves."""

import shutil
import signal
from itertools import pairwise

import pytest

from cdqn.cli.main import _parse, main
from cdqn.errors import ConfigError
from cdqn.presets import make_config
from cdqn.report.runs import differing_settings, group_by_algorithm, read_run
from cdqn.storage.checkpoint import newest_step
from run_files import SMALL, assert_same_end, newest_checkpoint, spawn, train, wait_for


def configs(*flags):
    """Of `cdqn compare CartPole-v1` with these flags, by algorithm."""
    command = _parse(["compare", "CartPole-v1", "--seeds", "1", *flags])
    return {config.algorithm: config for config in command.configs()}


def test_each_algorithm_has_its_own_defaults():
    found = configs()
    for algorithm in ("cdqn", "dqn", "rg"):
        assert found[algorithm] == make_config(algorithm, "classic-control").resolved()
    assert found["cdqn"].target_period_updates < found["dqn"].target_period_updates


def test_flag_holds_for_all_even_where_it_equals_the_first_ones_default():
    period = make_config("cdqn", "classic-control").target_period_updates
    found = configs("--target-period-updates", str(period))
    assert found["dqn"].target_period_updates == period
    assert found["rg"].target_period_updates is None, "rg has none: the flag does not act on it"


@pytest.mark.parametrize(
    ("flag", "dueling", "n_step"),
    [(["--no-dueling"], False, 3), (["--n-step=7"], True, 7), (["--n_step", "7"], True, 7)],
)
def test_flags_are_found_in_every_spelling(flag, dueling, n_step):
    for config in configs(*flag).values():
        assert (config.dueling, config.n_step) == (dueling, n_step)


def test_same_settings_are_those_of_the_first_algorithm_named():
    found = configs("--same-settings", "--algorithms", "dqn,cdqn")
    ours, theirs = found["cdqn"].to_json(), found["dqn"].to_json()
    assert {name for name in ours if ours[name] != theirs[name]} == {"algorithm"}
    assert found["cdqn"].target_period_updates == make_config("dqn", "classic-control").target_period_updates


def test_one_algorithm_is_refused_with_the_flag_for_several():
    with pytest.raises(ConfigError, match="--algorithms cdqn,dqn in place of --algorithm"):
        configs("--algorithm", "dqn")


def test_preset_gives_way_to_a_flag_for_every_algorithm_and_says_so_once(recwarn):
    for config in configs("--horizon-multiplier", "15").values():
        assert (config.n_step, config.normalize_rewards, config.horizon_multiplier) == (1, False, 15.0)
    assert len({str(warning.message) for warning in recwarn}) == 1


def test_seeds_count_upwards_from_the_given_one():
    command = _parse(["compare", "CartPole-v1", "--seeds", "3", "--seed", "7", "--algorithms", "rg"])
    assert [config.seed for config in command.configs()] == [7, 8, 9]


def test_what_differs_is_said_with_its_values(tmp_path):
    from cdqn.agent import Agent
    from cdqn.training.run_config import write_run_config

    for algorithm, config in configs("--algorithms", "cdqn,dqn").items():
        write_run_config(tmp_path / algorithm, Agent.from_config("CartPole-v1", config))
    runs = [read_run(tmp_path / name) for name in ("cdqn", "dqn")]
    said = differing_settings(group_by_algorithm(runs))
    assert said == "own settings: target_period_updates C-DQN 20, DQN 100"
    assert differing_settings(group_by_algorithm(runs[:1])) == ""


def test_compare_runs_each_algorithm_and_seed_and_draws(here, capsys):
    flags = [
        "--algorithms",
        "cdqn,rg",
        "--seeds",
        "2",
        "--steps",
        "600",
        "--jobs",
        "2",
        "--target-period-updates",
        "30",
    ]
    assert main(["compare", "CartPole-v1", "--out", "both", *flags, *SMALL]) == 0
    text = capsys.readouterr().out
    assert "C-DQN" in text
    assert "RG" in text
    names = {path.parent.name for path in here.glob("both/*/config.json")}
    assert names == {"cdqn-seed0", "cdqn-seed1", "rg-seed0", "rg-seed1"}
    assert (here / "both" / "comparison.png").stat().st_size > 10_000
    assert (here / "both" / "comparison.csv").read_text().count("\n") == 3
    # A run of a comparison is the run that `train` makes.
    assert train("alone", "--seed", "1", "--target-period-updates", "30", steps=600) == 0
    assert_same_end(here / "both" / "cdqn-seed1", here / "alone")
    # A comparison that lost a run to a crash does what is left.
    shutil.rmtree(here / "both" / "rg-seed1")
    assert main(["resume", "both", "--jobs", "1"]) == 0
    assert newest_checkpoint(here / "both" / "rg-seed1").name == "step-000000600"


@pytest.mark.slow
def test_comparison_that_is_killed_leaves_no_process_behind_and_resumes(here):
    flags = ["--algorithms", "cdqn", "--seeds", "2", "--steps", "12000", "--jobs", "2", "--out", "both"]
    seldom = ["16" if before == "--update-period-steps" else flag for before, flag in pairwise(["", *SMALL])]
    process = spawn("compare", "CartPole-v1", *flags, *seldom)
    runs = [here / "both" / f"cdqn-seed{seed}" for seed in (0, 1)]
    wait_for(lambda: all((run / "checkpoints" / "step-000001000").exists() for run in runs), process)
    process.kill()
    _, err = process.communicate()  # returns when the last worker has closed the pipe, that is, when it is gone
    assert process.returncode == -signal.SIGKILL
    assert "Traceback" not in err
    stopped = [newest_step(run) for run in runs]
    assert all(0 < step < 12000 for step in stopped)
    assert any(step % 1000 for step in stopped), "the runs under way were not saved where they stopped"
    assert main(["resume", "both", "--jobs", "1"]) == 0
    assert all(newest_step(run) == 12000 for run in runs)
