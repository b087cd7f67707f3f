"""Statistics against hand-computed values and slow loops."""

import numpy as np
import pytest
from benchmarks import interval_coverage

from cdqn.report.statistics import (
    align_curves,
    bootstrap_interval,
    interquartile_mean,
    mean_band,
    mean_interval,
    mean_over_tasks,
    performance_profile,
    probability_of_improvement,
    student_t,
)


def slow_interquartile_mean(values):
    """Cut every value into 4 equal pieces, drop the lowest and the highest quarter of all pieces."""
    pieces = sorted(value for value in values for _ in range(4))
    return sum(pieces[len(values) : -len(values)]) / (2 * len(values))


def mean_of_last(values):
    return np.mean(values, axis=-1)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0], 3.0),
        ([1.0, 2.0], 1.5),
        ([6.0, 0.0, 1.0], (0 + 4 * 1 + 6) / 6),
        ([100.0, 2.0, 1.0, -50.0], 1.5),
        ([0.0, 1.0, 2.0, 3.0, 100.0], (0.75 * 1 + 2 + 0.75 * 3) / 2.5),
        ([8, 7, 6, 5, 4, 3, 2, 1], 4.5),
    ],
)
def test_interquartile_mean_by_hand(values, expected):
    assert interquartile_mean(values) == pytest.approx(expected, rel=1e-12)


def test_interquartile_mean_equals_its_slow_twin():
    rng = np.random.default_rng(0)
    for n in range(1, 40):
        values = rng.standard_cauchy(n)
        assert interquartile_mean(values) == pytest.approx(slow_interquartile_mean(values.tolist()), rel=1e-9)


def test_interquartile_mean_works_along_the_last_axis():
    value_RN = np.random.default_rng(0).normal(size=(6, 7))
    expected = [slow_interquartile_mean(row.tolist()) for row in value_RN]
    np.testing.assert_allclose(interquartile_mean(value_RN), expected)


def test_interquartile_mean_trims_infinity_but_never_hides_nan():
    assert interquartile_mean([-np.inf, 1.0, 2.0, np.inf]) == 1.5
    assert np.isnan(interquartile_mean([1.0, 1.0, 2.0, np.nan]))


def test_no_values_are_an_error():
    with pytest.raises(ValueError, match="at least one"):
        interquartile_mean([])
    with pytest.raises(ValueError, match="non-empty"):
        bootstrap_interval([], interquartile_mean, np.random.default_rng(0))


def test_interval_of_one_value_is_that_value():
    assert bootstrap_interval([4.0], interquartile_mean, np.random.default_rng(0)) == (4.0, 4.0, 4.0)


def test_interval_equals_a_loop_over_the_same_draws():
    values = np.array([1.0, 5.0, 2.0, 8.0, 3.0])
    estimate = bootstrap_interval(values, interquartile_mean, np.random.default_rng(3), 0.9, resamples=500)
    index_RN = np.random.default_rng(3).integers(5, size=(500, 5))
    loop = [slow_interquartile_mean(values[index].tolist()) for index in index_RN]
    np.testing.assert_allclose(estimate, [interquartile_mean(values), *np.quantile(loop, [0.05, 0.95])])


def test_large_samples_are_resampled_in_blocks(monkeypatch):
    """Blocks that hold a few resamples each, the last of them smaller, still make the asked-for number."""
    monkeypatch.setattr("cdqn.report.statistics._BLOCK", 70)
    seen = []

    def counting(values):
        seen.append(np.shape(values))
        return mean_of_last(values)

    bootstrap_interval(np.arange(10.0), counting, np.random.default_rng(0), resamples=100)
    assert seen[0] == (10,)
    assert sum(rows for rows, _ in seen[1:]) == 100
    assert max(rows for rows, _ in seen[1:]) == 7


def test_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(300):
        _, low, high = bootstrap_interval(rng.normal(2.0, 1.0, size=25), mean_of_last, rng, resamples=500)
        hits += low <= 2.0 <= high
    assert 0.88 <= hits / 300 <= 0.98


def test_statistic_that_reduces_everything_is_refused():
    with pytest.raises(ValueError, match="last axis"):
        bootstrap_interval([1.0, 2.0], np.mean, np.random.default_rng(0))


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95])
def test_confidence_is_a_share(confidence):
    with pytest.raises(ValueError, match="between 0 and 1"):
        bootstrap_interval([1.0, 2.0], mean_of_last, np.random.default_rng(0), confidence)


def test_curves_are_interpolated_and_never_extrapolated():
    step_P, value_SP = align_curves([([0, 10], [0, 10]), ([5, 20], [1, 4]), ([], [])], points=5)
    assert step_P.tolist() == [0, 5, 10, 15, 20]
    np.testing.assert_allclose(value_SP[0], [0, 5, 10, np.nan, np.nan])
    np.testing.assert_allclose(value_SP[1], [np.nan, 1, 2, 3, 4])
    assert np.isnan(value_SP[2]).all()


def test_curves_that_share_their_steps_keep_them():
    step_P, value_SP = align_curves([([0, 1, 7], [1, 9, 2]), ([0, 1, 7], [3, 4, 5])])
    assert step_P.tolist() == [0, 1, 7]
    assert value_SP.tolist() == [[1, 9, 2], [3, 4, 5]]


def test_values_that_are_not_finite_leave_a_gap():
    step = [0, 1, 2, 3, 4]
    _, value_SP = align_curves([(step, [0, 1, np.inf, 3, 4])], points=5)
    np.testing.assert_array_equal(value_SP, [[0, 1, np.nan, 3, 4]])
    _, value_SP = align_curves([(step, [0, 1, np.nan, 3, 4]), ([0, 4], [0, 0])], points=9)
    np.testing.assert_array_equal(value_SP[0], [0, 0.5, 1, np.nan, np.nan, np.nan, 3, 3.5, 4])


def test_no_curves_and_a_single_point_align():
    assert align_curves([])[0].size == 0
    assert align_curves([([], [])])[1].shape == (1, 0)
    step_P, value_SP = align_curves([([5], [2.0])])
    assert (step_P.tolist(), value_SP.tolist()) == ([5], [[2.0]])


@pytest.mark.parametrize(
    ("degrees", "confidence", "printed"),
    [
        (1, 0.95, 12.706205),
        (2, 0.95, 4.302653),
        (4, 0.95, 2.776445),
        (4, 0.99, 4.604095),
        (9, 0.95, 2.262157),
        (30, 0.9, 1.697261),
        (999, 0.95, 1.962341),
    ],
)
def test_quantiles_are_those_of_the_printed_tables(degrees, confidence, printed):
    assert student_t(degrees, confidence) == pytest.approx(printed, abs=1e-6)


def test_interval_of_the_mean_by_hand():
    """Mean 3, variance 2.5, standard error √½."""
    assert mean_interval([1, 2, 3, 4, 5]) == pytest.approx((3, 3 - 2.776445 / 2**0.5, 3 + 2.776445 / 2**0.5), abs=1e-6)


def test_fewer_runs_than_five_have_a_mean_and_no_interval():
    mean, low, high = mean_interval([1.0, 2.0, 6.0, 3.0])
    assert mean == 3
    assert np.isnan([low, high]).all()
    with pytest.raises(ValueError, match="non-empty"):
        mean_interval([])


def test_band_equals_the_interval_of_each_point():
    value_SP = np.random.default_rng(1).normal(size=(6, 3))
    band = mean_band(value_SP, confidence=0.9)
    for point in range(3):
        assert [curve_P[point] for curve_P in band] == pytest.approx(mean_interval(value_SP[:, point], 0.9))


def test_mean_stops_where_a_seed_is_missing():
    """The seeds that survive must not stand for all: their mean would look like a recovery."""
    value_SP = np.array([[1.0, 2.0, 3.0], *[[3.0, 1e9, np.nan]] * 4])
    band = mean_band(value_SP)
    assert band.mean[:2] == pytest.approx([13 / 5, (2 + 4e9) / 5])
    assert np.isfinite([band.low[:2], band.high[:2]]).all()
    assert np.isnan([band.mean[2], band.low[2], band.high[2]]).all()


def test_numbers_too_large_to_square_leave_a_mean():
    band = mean_band(np.array([[1e200], [1.0], [1.0], [1.0], [1.0]]))
    assert band.mean == pytest.approx([2e199])
    assert not np.isfinite(band.high).any()


def test_mean_over_tasks_is_students_for_one_and_has_more_degrees_for_two():
    rng = np.random.default_rng(0)
    one = rng.normal(size=6)
    other = one + 2  # the same spread: twice the degrees of freedom, by Welch and Satterthwaite
    assert mean_over_tasks([one]) == pytest.approx(mean_interval(one))
    half = student_t(10) * one.std(ddof=1) / 6**0.5 / 2**0.5
    mean = one.mean() + 1
    assert mean_over_tasks([one, other]) == pytest.approx((mean, mean - half, mean + half))


def test_mean_over_tasks_claims_nothing_of_few_runs_and_survives_equal_ones():
    value, low, high = mean_over_tasks([np.arange(9.0), np.zeros(4)])
    assert value == 2
    assert np.isnan([low, high]).all()
    assert mean_over_tasks([np.ones(5), np.zeros(5)]) == (0.5, 0.5, 0.5)


def test_95_percent_intervals_hold_the_truth_95_times_in_100_at_5_and_10_seeds():
    """Each column is an experiment of its own; docs/comparing.md has the large version."""
    rng = np.random.default_rng(0)
    for seeds in (5, 10):
        band = mean_band(rng.normal(2.0, 3.0, size=(seeds, 20_000)))
        assert ((band.low < 2) & (band.high > 2)).mean() == pytest.approx(0.95, abs=0.005)


def test_simulation_of_the_page_finds_what_the_page_says():
    """`benchmarks/interval_coverage.py` in small: where Student's interval holds, where it cannot, and who is worse."""
    rng = np.random.default_rng(0)

    def covered(distribution, method, times, resamples):
        draw = interval_coverage.DISTRIBUTIONS[distribution]
        ((_, numbers),) = interval_coverage.coverage(draw, [method], 5, times, resamples, rng)
        return numbers[0]

    assert covered("normal", interval_coverage.OURS, 10_000, 1) == pytest.approx(0.95, abs=0.01)
    assert covered("normal", "percentile bootstrap, mean", 600, 200) < 0.88
    assert covered("one run in five fails", interval_coverage.OURS, 4_000, 1) < 0.75
    assert interval_coverage.coverage_over_tasks(5, 1_000, rng)[0] == pytest.approx(0.95, abs=0.02)


def test_weighted_interquartile_mean_is_that_of_repeated_values():
    rng = np.random.default_rng(3)
    value_N, weight_N = rng.normal(size=(7, 9)), rng.integers(1, 5, size=9)
    repeated = interquartile_mean(np.repeat(value_N, weight_N, axis=1))
    np.testing.assert_allclose(interquartile_mean(value_N, weight_N), repeated, rtol=1e-12)
    np.testing.assert_allclose(interquartile_mean(value_N, np.full(9, 0.3)), interquartile_mean(value_N), rtol=1e-12)


def test_weighted_interquartile_mean_trims_infinity_but_never_hides_nan():
    assert interquartile_mean([1.0, 2.0, np.inf], [1.0, 2.0, 0.5]) == pytest.approx(interquartile_mean_by_hand())
    assert np.isnan(interquartile_mean([1.0, np.nan], [1.0, 1.0]))


def interquartile_mean_by_hand():
    """Widths 1, 2 and ½ of 3½; the middle half reaches from 0.875 to 2.625: ⅛ of the 1, 1.625 of the 2."""
    return (0.125 * 1.0 + 1.625 * 2.0) / 1.75


def test_probability_of_improvement_by_hand():
    ours, theirs = [np.array([1.0, 3.0]), np.array([5.0])], [np.array([2.0, 3.0]), np.array([4.0, 6.0, 5.0])]
    # First task: 1 is below both; 3 above 2 and equal to 3: 1½ of 4. Second: above 4, equal to 5: 1½ of 3.
    assert probability_of_improvement(ours, theirs) == pytest.approx((1.5 / 4 + 1.5 / 3) / 2)
    assert probability_of_improvement(theirs, ours) == pytest.approx(1 - (1.5 / 4 + 1.5 / 3) / 2)


def test_performance_profile_by_hand():
    groups = [np.array([0.0, 1.0]), np.array([0.5, 0.5, 2.0])]
    profile = performance_profile(groups, [-1.0, 0.0, 0.5, 1.5])
    np.testing.assert_allclose(profile, [1.0, (0.5 + 1.0) / 2, (0.5 + 1 / 3) / 2, (0 + 1 / 3) / 2])
