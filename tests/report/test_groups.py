"""Which runs belong together, what they are called, and how they look."""

import pytest

from cdqn.errors import ConfigError
from cdqn.report.groups import DASHES, differing_settings, group_runs, looks, setting_label, short
from cdqn.report.palette import ALGORITHMS
from cdqn.report.runs import read_run


@pytest.fixture
def runs(tmp_path, make):
    """Two algorithms with two periods and two seeds; RG, on which the period does not act, with two seeds."""
    found = []
    for algorithm, period in (("dqn", 5), ("dqn", 100), ("cdqn", 5), ("cdqn", 100), ("rg", None)):
        for seed in (0, 1):
            folder = tmp_path / f"{algorithm}-{period}-{seed}"
            found.append(read_run(make.write(folder, [], algorithm, seed, target_period_updates=period)))
    return found


def test_groups_are_in_the_order_of_the_runs_and_named_by_what_was_varied(runs):
    groups = group_runs(runs, ["target_period_updates"])
    labels = ["DQN, target period 5", "DQN, target period 100", "C-DQN, target period 5", "C-DQN, target period 100"]
    assert [group.label for group in groups] == [*labels, "RG"]
    assert all([run.seed for run in group.runs] == [0, 1] for group in groups)
    assert groups[1].variant == {"target_period_updates": 100}
    assert groups[-1].variant == {}


def test_without_varied_settings_an_algorithm_is_a_group(runs):
    groups = group_runs([run for run in runs if run.config["target_period_updates"] != 5])
    assert [(group.label, len(group.runs)) for group in groups] == [("DQN", 2), ("C-DQN", 2), ("RG", 2)]


def test_what_cannot_be_averaged_is_refused(tmp_path, make):
    a = read_run(make.write(tmp_path / "a", []))
    b = read_run(make.write(tmp_path / "b", [], env_id="Acrobot-v1", seed=1))
    c = read_run(make.write(tmp_path / "c", []))
    with pytest.raises(ConfigError, match="Acrobot-v1, CartPole-v1"):
        group_runs([a, b])
    with pytest.raises(ConfigError, match="both C-DQN with seed 0"):
        group_runs([a, c])


def test_algorithms_keep_their_colours_and_variants_are_told_apart(runs):
    groups = group_runs(runs, ["target_period_updates"])
    found = looks(groups)
    assert len(set(found)) == len(groups)
    for group, look in zip(groups[::2], found[::2], strict=True):
        assert look == (ALGORITHMS[group.algorithm].colour, "solid")
    assert [look.dashes for look in found] == [*DASHES[:2], *DASHES[:2], "solid"]
    assert [look.colour for look in looks(group_runs(runs[:2] + runs[4:6]))] == ["#D55E00", "#0072B2"]


@pytest.mark.parametrize("count", [3, 7, 20])
def test_variants_of_one_algorithm_have_hues_of_their_own(count, tmp_path, make):
    runs = [read_run(make.write(tmp_path / str(n), [], n_step=n)) for n in range(1, count + 1)]
    found = looks(group_runs(runs, ["n_step"]))
    assert len(set(found)) == count
    assert found[0].colour == ALGORITHMS["cdqn"].colour
    assert len({look.colour for look in found}) == min(count, 7)


@pytest.mark.parametrize("count", [2, 5, 9])
def test_many_variants_of_two_algorithms_differ(count, tmp_path, make):
    runs = [
        read_run(make.write(tmp_path / f"{name}{n}", [], name, n_step=n))
        for name in ("cdqn", "dqn")
        for n in range(count)
    ]
    assert len(set(looks(group_runs(runs, ["n_step"])))) == 2 * count


@pytest.mark.parametrize(
    ("value", "text"), [(True, "on"), (False, "off"), (1e-3, "0.001"), ([64, 64], "64×64"), (5, "5"), ("fifo", "fifo")]
)
def test_values_are_short(value, text):
    assert short(value) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [("target_period_updates", "target period"), ("warmup_steps", "warmup"), ("steps", "steps"), ("gamma", "gamma")],
)
def test_settings_are_in_words_without_their_units(name, text):
    assert setting_label(name) == text


def test_what_was_varied_is_no_difference_of_the_algorithms(runs):
    assert differing_settings(group_runs(runs, ["target_period_updates"])) == ""
    mixed = [runs[0], runs[6]]
    assert differing_settings(group_runs(mixed)) == "own settings: target_period_updates DQN 5, C-DQN 100"
