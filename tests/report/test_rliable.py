"""The statistics beside those of rliable (Agarwal et al. 2021), whose version 1.2.0 gave the values on the right.

It is not installed with the tests, because it brings statsmodels, arch and an older pandas with it:
metrics.aggregate_iqm, metrics.probability_of_improvement, library.create_performance_profile and
library.get_interval_estimates (20 000 resamples, numpy.random.seed(0)), each called with the scores below.
"""

import numpy as np
import pytest

from cdqn.report.statistics import (
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
    stratified_interval,
)


@pytest.fixture
def scores():
    """Eight runs on each of five tasks, twice; the second has ties. Both take the same middle half of 40."""
    rng = np.random.default_rng(5)
    return rng.normal(0.6, 0.3, (8, 5)), np.round(rng.normal(0.5, 0.3, (8, 5)), 1)


def test_interquartile_mean(scores):
    ours, theirs = scores
    assert float(interquartile_mean(ours.ravel())) == pytest.approx(0.4840713909556492)
    assert float(interquartile_mean(theirs.ravel())) == pytest.approx(0.515)


def test_probability_of_improvement(scores):
    ours, theirs = scores
    assert probability_of_improvement(list(ours.T), list(theirs.T)) == pytest.approx(0.5125)
    assert probability_of_improvement(list(np.round(ours, 1).T), list(theirs.T)) == pytest.approx(0.5)


def test_performance_profile(scores):
    found = performance_profile(list(scores[0].T), np.linspace(-0.2, 1.4, 9))
    np.testing.assert_allclose(found, [1, 1, 0.925, 0.625, 0.325, 0.125, 0.05, 0, 0])


def test_stratified_bootstrap(scores):
    """Resampling is random on both sides: the ends agree to a hundredth of the scores' range."""
    found = stratified_interval([list(scores[0].T)], lambda of: interquartile_mean(of[0]), np.random.default_rng(0))
    assert tuple(found) == pytest.approx((0.48407139, 0.40039328, 0.56843446), abs=0.01)
