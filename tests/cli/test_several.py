"""`cdqn compare`: each algorithm has its own defaults, what the command line names holds for all it acts on."""

import pytest

from cdqn.cli.main import _parse
from cdqn.presets import make_config
from cdqn.report.runs import differing_settings, group_by_algorithm, read_run


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


def test_seeds_count_upwards_from_the_given_one():
    command = _parse(["compare", "CartPole-v1", "--seeds", "3", "--seed", "7", "--algorithms", "rg"])
    assert [config.seed for config in command.configs()] == [7, 8, 9]


def test_what_differs_is_said_with_its_values(tmp_path):
    from cdqn.agent import Agent, write_run_config

    for algorithm, config in configs("--algorithms", "cdqn,dqn").items():
        write_run_config(tmp_path / algorithm, Agent.from_config("CartPole-v1", config))
    runs = [read_run(tmp_path / name) for name in ("cdqn", "dqn")]
    said = differing_settings(group_by_algorithm(runs))
    assert said == "own settings: target_period_updates C-DQN 20, DQN 100"
    assert differing_settings(group_by_algorithm(runs[:1])) == ""
