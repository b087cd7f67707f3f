"""Rewards that are normalised: learned the same in any unit, told in the environment's own."""

import numpy as np
import pytest
import torch

from cdqn.training.events import Calibrated, Progress
from helpers import make_trainer, scaled
from helpers import run_trainer as run


def test_normalized_run_learns_the_same_whatever_the_unit_of_its_rewards():
    one, other = (make_trainer(env=scaled(factor), normalize_rewards=True) for factor in (1.0, 1024.0))
    rows = [[event for event in run(trainer, 400) if isinstance(event, Progress)] for trainer in (one, other)]
    assert torch.equal(one.learner.theta, other.learner.theta)
    assert one.calibrator.found.scale > 1  # the rewards are 1, 2, 3 …
    for small, large in zip(*rows, strict=True):
        assert large.loss == small.loss
        assert (large.q_mean, large.q_bound) == (1024 * small.q_mean, 1024 * small.q_bound)
        assert (large.earned_low, large.earned_high) == (1024 * small.earned_low, 1024 * small.earned_high)


def test_run_that_is_not_normalized_learns_from_rewards_as_they_are():
    thetas = []
    for factor in (1.0, 1024.0):
        trainer = make_trainer(env=scaled(factor))
        run(trainer, 100)
        thetas.append(trainer.learner.theta)
    assert not torch.equal(*thetas)


def test_q_of_a_normalized_run_is_told_in_units_of_the_rewards():
    trainer = make_trainer(env=scaled(1024.0), normalize_rewards=True, gamma=0.5)
    learned = []
    real = trainer.learner.update
    trainer.learner.update = lambda batch: (learned.append(real(batch)), learned[-1])[1]
    events = run(trainer, 100)
    (calibrated,) = (event for event in events if isinstance(event, Calibrated))
    assert (calibrated.step, calibrated.found.gamma, calibrated.found.mean) == (40, 0.5, 0.0)
    last = events[-1]
    since = learned[-(100 - 52) // 4 :]
    assert last.q_mean == pytest.approx(calibrated.found.scale * np.mean([r.statistics["q_mean"] for r in since]))
    assert last.q_bound == 2 * 8 * 1024
