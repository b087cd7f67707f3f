"""The greedy policy."""

import numpy as np
import torch

from helpers import make_trainer
from helpers import run_trainer as run


def test_acting_uses_the_weights_of_the_moment():
    trainer = make_trainer()
    run(trainer, 200)
    observation = trainer.collector.observation
    expected = trainer.learner.networks["q"](torch.from_numpy(observation)).argmax(1).numpy()
    assert np.array_equal(trainer.actor.greedy(observation), expected)
