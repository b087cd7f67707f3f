"""The suite's numbers, from runs whose evaluations are known."""

import numpy as np
import pytest

from cdqn.report import suite
from cdqn.report.statistics import interquartile_mean, stratified_interval


def write_suite(folder, make, returns):
    """`returns`: task → algorithm → one list of evaluations for each seed."""
    ids = {"CartPole": "CartPole-v1", "CliffWalking": "cdqn/CliffWalking-v0"}
    for task, algorithms in returns.items():
        for algorithm, seeds in algorithms.items():
            for seed, values in enumerate(seeds):
                rows = [make.evaluation(100 * (i + 1), [value, value]) for i, value in enumerate(values)]
                make.write(folder / task / f"{algorithm}-seed{seed}", rows, algorithm, seed, ids[task])
    return suite.read_suite(folder)


def test_score_of_a_run_by_hand(tmp_path, make):
    floor = suite.TASKS["CartPole"].random
    (run,) = write_suite(tmp_path, make, {"CartPole": {"cdqn": [[0.0, floor, 460.0, 500.0, 500.0]]}})
    score = suite.score_of(run)
    high = (460 - floor) / (500 - floor)
    assert score.final == pytest.approx((460 + 500 + 500) / 3)
    assert score.final_normalized == pytest.approx((high + 2) / 3)
    assert score.area == pytest.approx((0 + 0 + high + 2) / 5), "worse than random counts as random"
    assert score.reached == 300
    assert not score.diverged


def test_never_reached_is_none_and_shown_as_a_dash(tmp_path, make):
    runs = write_suite(tmp_path, make, {"CartPole": {"cdqn": [[30.0, 40.0]]}})
    results = suite.results_of(runs)
    assert results["CartPole"]["cdqn"][0].reached is None


def test_difference_is_over_the_tasks_that_both_have(tmp_path, make):
    returns = {
        "CartPole": {"cdqn": [[500.0], [500.0]], "dqn": [[22.2], [22.2]]},
        "CliffWalking": {"cdqn": [[-200.0], [-200.0]]},
    }
    results = suite.results_of(write_suite(tmp_path, make, returns))
    estimate = suite.difference(results, ("cdqn", "dqn"), lambda score: score.area, np.random.default_rng(0))
    assert estimate == pytest.approx((1.0, 1.0, 1.0), abs=2e-3)


def test_runs_without_evaluation_are_left_out(tmp_path, make):
    make.write(tmp_path / "CartPole" / "cdqn-seed0", [make.progress(100)])
    assert suite.read_suite(tmp_path) == []


def test_stratified_interval_resamples_within_tasks_only():
    """Two tasks without spread inside: whatever is drawn, the pool is the same, so the interval is a point."""
    groups = [np.full(4, 0.0), np.full(4, 1.0)]
    estimate = stratified_interval([groups], lambda parts: parts[0].mean(-1), np.random.default_rng(0))
    assert estimate == (0.5, 0.5, 0.5)


def test_stratified_interval_equals_a_plain_loop():
    rng = np.random.default_rng(1)
    groups = [rng.normal(size=5), rng.normal(3, 1, size=7)]
    estimate = stratified_interval([groups], lambda parts: interquartile_mean(parts[0]), np.random.default_rng(2))
    slow = np.random.default_rng(3)
    means = [
        float(interquartile_mean(np.concatenate([slow.choice(group, len(group)) for group in groups])))
        for _ in range(4000)
    ]
    assert estimate.value == pytest.approx(float(interquartile_mean(np.concatenate(groups))))
    assert (estimate.low, estimate.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.08)


def test_picture_has_a_panel_for_each_task_and_one_for_all(tmp_path, make):
    returns = {
        "CartPole": {"cdqn": [[30.0, 500.0], [20.0, 400.0]], "dqn": [[30.0, 300.0], [20.0, 200.0]]},
        "CliffWalking": {"cdqn": [[-200.0, -13.0]], "dqn": [[-200.0, -200.0]]},
    }
    figure = suite.draw_suite(write_suite(tmp_path, make, returns))
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]
    assert titles == ["CartPole", "CliffWalking", "all tasks, normalised (IQM)"]
    assert len(figure.axes[0].lines) >= 4, "curves and the reference"


def test_a_policy_worse_than_chance_does_not_hide_the_others(tmp_path, make):
    returns = {"CliffWalking": {"cdqn": [[-20_000.0, -13.0], [-200.0, -13.0]]}}
    low, high = suite.draw_suite(write_suite(tmp_path, make, returns)).axes[0].get_ylim()
    assert -300 < low < -200
    assert -13 < high < 100
