"""`cdqn compare`: the settings of each run, what is said of them, and what it refuses."""

import csv
import shutil

import pytest

from cdqn.cli.main import _parse, main
from cdqn.errors import ConfigError
from cdqn.presets import make_config
from cdqn.report.groups import differing_settings, group_runs
from cdqn.report.runs import read_run
from run_files import SMALL, assert_same_end, newest_checkpoint, one_line, train

TINY = ["--hidden", "8", "--warmup-steps", "100", "--steps", "400", "--update-period-steps", "8", "--compile", "off"]
TINY += ["--log-period-steps", "100", "--evaluation-episodes", "1"]


def parsed(*flags):
    return _parse(["compare", "CartPole-v1", "--seeds", "1", *flags])


def configs(*flags):
    """Of `cdqn compare CartPole-v1` with these flags, by algorithm."""
    command = parsed(*flags)
    return {config.algorithm: config for config in command.configs("CartPole-v1", command.variations())[0]}


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
    assert [config.seed for config in command.configs("CartPole-v1", {})[0]] == [7, 8, 9]


def test_what_differs_is_said_with_its_values(tmp_path):
    from cdqn.agent import Agent
    from cdqn.training.run_config import write_run_config

    for algorithm, config in configs("--algorithms", "cdqn,dqn").items():
        write_run_config(tmp_path / algorithm, Agent.from_config("CartPole-v1", config))
    runs = [read_run(tmp_path / name) for name in ("cdqn", "dqn")]
    said = differing_settings(group_runs(runs))
    assert said == "own settings: target_period_updates C-DQN 20, DQN 100"
    assert differing_settings(group_runs(runs[:1])) == ""


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
    assert (here / "both" / "differences.csv").read_text().count("\n") == 2
    # A run of a comparison is the run that `train` makes.
    assert train("alone", "--seed", "1", "--target-period-updates", "30", steps=600) == 0
    assert_same_end(here / "both" / "cdqn-seed1", here / "alone")
    # A comparison that lost a run to a crash does what is left.
    shutil.rmtree(here / "both" / "rg-seed1")
    assert main(["resume", "both", "--jobs", "1"]) == 0
    assert newest_checkpoint(here / "both" / "rg-seed1").name == "step-000000600"


def test_flag_that_follows_a_variation_is_not_mistaken_for_one():
    command = parsed("--vary", "target_period_updates=5,20", "--n-step", "2", "--vary=gamma=0.9")
    assert command.given.keys() == {"n_step"}
    assert command.variations() == {"target_period_updates": [5, 20], "gamma": [0.9]}


def test_variants_are_crossed_with_algorithms_and_seeds():
    command = parsed("--algorithms", "dqn,rg", "--seeds", "2", "--vary", "target_period_updates=5,20", "--n-step", "2")
    runs, left_out = command.configs("CartPole-v1", command.variations())
    found = [(run.algorithm, run.target_period_updates, run.seed, run.n_step) for run in runs]
    assert found == [
        ("dqn", 5, 0, 2),
        ("dqn", 5, 1, 2),
        ("dqn", 20, 0, 2),
        ("dqn", 20, 1, 2),
        ("rg", None, 0, 2),
        ("rg", None, 1, 2),
    ]
    assert left_out == ["target_period_updates does not act on RG: it is run without"]


def test_variation_goes_before_the_settings_of_the_first_algorithm():
    command = parsed("--same-settings", "--algorithms", "dqn,cdqn", "--vary", "learning_rate=0.1,0.2")
    runs, _ = command.configs("CartPole-v1", command.variations())
    assert [run.learning_rate for run in runs] == [0.1, 0.2, 0.1, 0.2]
    assert {run.target_period_updates for run in runs} == {100}


def test_each_environment_has_the_preset_of_its_kind():
    command = _parse(["compare", "CartPole-v1", "MinAtar/Breakout-v1", "--algorithms", "cdqn"])
    assert command.preset_for("CartPole-v1") == "classic-control"
    assert command.preset_for("MinAtar/Breakout-v1") == "minatar"
    steps = [command.configs(env_id, {})[0][0].steps for env_id in command.env_ids]
    assert steps == [make_config("cdqn", name).steps for name in ("classic-control", "minatar")]


def test_several_environments_and_variants_are_trained_told_and_resumed(here, capsys):
    flags = ["--algorithms", "cdqn,rg", "--vary", "target_period_updates=5,20", "--seeds", "1", "--jobs", "1"]
    assert main(["compare", "CartPole-v1", "FrozenLake-v1", *flags, "--out", "all", *TINY]) == 0
    text = capsys.readouterr().out
    assert "target_period_updates does not act on RG: it is run without" in text
    for words in ("CartPole-v1", "FrozenLake-v1", "less C-DQN, target period 5", "all environments"):
        assert words in text
    names = ["cdqn-target_period_updates=5-seed0", "cdqn-target_period_updates=20-seed0", "rg-seed0"]
    for env_id in ("CartPole-v1", "FrozenLake-v1"):
        place = here / "all" / env_id
        assert {path.parent.name for path in place.glob("*/config.json")} == set(names)
        assert (place / "comparison.png").exists()
        with (place / "comparison.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert [row["row"] for row in rows] == ["C-DQN, target period 5", "C-DQN, target period 20", "RG"]
        finals = [read_run(place / name).final_return for name in names]
        assert [float(row["evaluation_mean"]) for row in rows] == finals
    assert (here / "all" / "summary.csv").read_text().count("\n") == 4
    shutil.rmtree(here / "all" / "FrozenLake-v1" / "rg-seed0")
    assert main(["resume", "all", "--jobs", "1"]) == 0
    assert newest_checkpoint(here / "all" / "FrozenLake-v1" / "rg-seed0").name == "step-000000400"
    assert "all environments" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["CartPole-v1"], "CartPole-v1 is named twice: name each environment once"),
        (["--algorithms", "dqn,cdqn,dqn"], "dqn is named twice: name each algorithm once"),
        (["--algorithms", "cdqn,ddqn"], "there is no algorithm 'ddqn'"),
        (["--algorithm", "dqn"], "give --algorithms cdqn,dqn"),
        (["--seeds", "0"], "seeds is 0"),
        (["--seeds", "500"], "are 1500 runs: at most 1000"),
        (["--seeds", "100", "--vary", "n_step=1,2,3,4"], "variants 12 × seeds 100 are 1200 runs"),
        (["--vary", "seed=1,2"], "give --seeds and --seed"),
        (["--vary", "gamma="], "value missing"),
        (["--vary", "gama=0.9"], "did you mean gamma?"),
        (["--vary", "n_step=0"], "n_step is 0: it must be a whole number of at least 1"),
        (["--vary", "steps=500,5000"], "steps is 500, below warmup_steps 1000"),
        (["--vary", "frame_size=84 84,42 42"], "frame_size: settings of Atari games"),
        (["--gamma", "0.9", "--vary", "gamma=0.9,0.99"], "gamma has values from the flag --gamma already"),
        (["CartPol-v1"], "CartPol-v1"),
    ],
)
def test_comparison_that_cannot_work_is_one_line_and_leaves_no_folder(flags, words, here, capsys):
    assert main(["compare", "CartPole-v1", *flags]) == 1
    assert words in one_line(capsys)
    assert list(here.iterdir()) == []


def test_comparison_of_no_environment_says_what_is_missing(here, capsys):
    assert main(["compare", "--seeds", "3"]) == 1
    assert "write cdqn compare CartPole-v1" in one_line(capsys)


def test_folder_is_named_by_its_first_environments():
    from cdqn.cli.compare import _joined

    assert _joined(("A-v0", "B-v0")) == "A-v0-B-v0"
    assert _joined(("A", "B", "C", "D", "E")) == "A-B-C-and-2-more"
