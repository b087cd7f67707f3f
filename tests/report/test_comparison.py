"""The numbers of a comparison, from runs whose evaluations are known."""

import math

import pytest

from cdqn.report.comparison import comparison_table, difference_table, finals_of, summary_table
from cdqn.report.groups import group_runs
from cdqn.report.runs import find_runs, read_run
from cdqn.report.statistics import mean_interval


@pytest.fixture
def groups(tmp_path, make):
    """Makes groups from `{algorithm: final returns, one for each seed}`; None is a run that did not come to its end."""

    def grouped(returns, env_id="CartPole-v1"):
        runs = []
        for algorithm, finals in returns.items():
            for seed, final in enumerate(finals):
                rows = [] if final is None else [make.evaluation(1000, [final])]
                folder = tmp_path / env_id.replace("/", "-") / f"{algorithm}-{seed}"
                runs.append(read_run(make.write(folder, rows, algorithm, seed, env_id)))
        return group_runs(runs)

    return grouped


def table(*runs):
    return comparison_table(group_runs(runs))


def test_rows_hold_the_numbers_of_their_runs(comparison_folder):
    cdqn, dqn, rg = comparison_table(group_runs(find_runs(comparison_folder)))
    assert [row.label for row in (cdqn, dqn, rg)] == ["C-DQN", "DQN", "RG"]
    assert cdqn.finals == (201, 202, 203)
    assert cdqn.final.value == 202
    assert math.isnan(cdqn.final.low)
    assert cdqn.training_return == pytest.approx(110.0)
    assert cdqn.loss == pytest.approx((0.1 * 0.2 * 0.3) ** (1 / 3))
    assert cdqn.q_over_bound == pytest.approx(0.36)
    assert dqn.q_over_bound == pytest.approx((34e4 + 2) / 100)
    assert (cdqn.diverged_runs, dqn.diverged_runs) == (0, 3)


def test_largest_q_counts_its_size_not_its_sign(tmp_path, make):
    rows = [make.progress(10, q_mean=-400.0), make.progress(20, q_mean=50.0)]
    assert table(read_run(make.write(tmp_path / "a", rows)))[0].q_over_bound == 4.0


@pytest.mark.parametrize("worst", [math.nan, math.inf])
def test_loss_that_is_no_number_counts_as_infinite(worst, tmp_path, make):
    """Dropping the NaN would hide the worst run; beside a loss of 0 it would be NaN."""
    rows = [[make.progress(9, loss=end, q_mean=end)] for end in (0.0, 0.5, worst)]
    (row,) = table(*(read_run(make.write(tmp_path / str(seed), rows[seed], seed=seed)) for seed in range(3)))
    assert row.loss == row.q_over_bound == math.inf
    assert row.diverged_runs == 1


def test_run_that_logged_nothing_still_has_a_row(tmp_path, make):
    (row,) = table(read_run(make.write(tmp_path / "a", [])))
    assert row == ("C-DQN", "cdqn", 1, (), None, None, None, 0)
    assert row.final is None


def test_differences_are_paired_by_seed_with_students_interval(groups):
    first, second = [1.0, 2.0, 3.0, 4.0, 5.0], [3.0, 3.0, 6.0, 5.0, 8.0]
    (row,) = difference_table(groups({"dqn": first, "rg": second}))
    assert row.label == "RG"
    assert row.differences == (2, 1, 3, 1, 3)
    assert row.mean == mean_interval([2, 1, 3, 1, 3])
    above = sum((b > a) + 0.5 * (b == a) for a in first for b in second)
    assert row.improvement == pytest.approx(above / 25)


def test_differences_leave_out_seeds_that_only_one_has(groups):
    (row,) = difference_table(groups({"cdqn": [1.0, None, 3.0, 4.0], "dqn": [2.0, 5.0, None, 6.0, 7.0]}))
    assert row.differences == (1, 2), "seeds 0 and 3"
    (row,) = difference_table(groups({"cdqn": [None], "rg": [2.0]}, "Other-v0"))
    assert (row.differences, row.mean, row.improvement) == ((), None, None)


def test_summary_counts_environments_and_normalises_where_the_suite_has_a_scale(groups):
    low, high = [22.6] * 5, [500.0] * 4 + [499.0]
    tasks = {
        "CartPole-v1": groups({"cdqn": low, "dqn": high}),
        "cdqn/FrozenLake8x8-v0": groups({"cdqn": [1.0] * 5, "dqn": [0.0] * 5}, "cdqn/FrozenLake8x8-v0"),
    }
    cdqn, dqn = summary_table(tasks)
    assert cdqn.normalized == (0.5, 0.5, 0.5)
    assert dqn.normalized.value == pytest.approx((1 - 0.2 / 477.4) / 2)
    assert dqn.normalized.low < dqn.normalized.value < dqn.normalized.high
    assert (cdqn.above, cdqn.below, cdqn.improvement) == (None, None, None)
    assert (dqn.above, dqn.below, dqn.improvement) == (1, 1, 0.5)
    assert (dqn.tasks, dqn.runs) == (2, 10)


def test_summary_of_few_seeds_or_unknown_environments_claims_no_more_than_it_knows(groups):
    tasks = {
        "CartPole-v1": groups({"cdqn": [1.0, 2.0], "dqn": [3.0, 4.0], "rg": [9.0]}),
        "Other-v0": groups({"cdqn": [1.0, 2.0], "dqn": [3.0, 4.0]}, "Other-v0"),
    }
    cdqn, dqn = summary_table(tasks)
    assert cdqn.normalized is None
    assert (dqn.above, dqn.below, dqn.improvement) == (None, None, 1.0)


def test_environments_without_a_common_row_have_no_summary(groups):
    assert summary_table({"A-v0": groups({"cdqn": [1.0]}, "A-v0"), "B-v0": groups({"dqn": [1.0]}, "B-v0")}) == []


def test_finals_are_by_seed(groups):
    assert finals_of(groups({"cdqn": [4.0, None, 6.0]})[0].runs) == {0: 4.0, 2: 6.0}
