"""The statistics beside those of rliable (Agarwal et al. 2021), where it is installed: pip install rliable."""

import numpy as np
import pytest

from cdqn.report.statistics import interquartile_mean, performance_profile, probability_of_improvement

rliable = pytest.importorskip("rliable", reason="rliable is not installed: the values by hand are tested all the same")


@pytest.fixture
def scores():
    """Eight runs on each of five tasks, twice: with a multiple of four both take the same middle half."""
    rng = np.random.default_rng(5)
    return rng.normal(0.6, 0.3, (8, 5)), np.round(rng.normal(0.5, 0.3, (8, 5)), 1)


def test_interquartile_mean(scores):
    from rliable import metrics

    for score_RT in scores:
        assert float(interquartile_mean(score_RT.ravel())) == pytest.approx(metrics.aggregate_iqm(score_RT))


def test_probability_of_improvement(scores):
    from rliable import metrics

    ours, theirs = scores
    expected = metrics.probability_of_improvement(ours, theirs)
    assert probability_of_improvement(list(ours.T), list(theirs.T)) == pytest.approx(expected)


def test_performance_profile(scores):
    from rliable import library

    thresholds = np.linspace(-0.2, 1.4, 9)
    profiles, _ = library.create_performance_profile({"ours": scores[0]}, thresholds, reps=10)
    np.testing.assert_allclose(performance_profile(list(scores[0].T), thresholds), profiles["ours"])
