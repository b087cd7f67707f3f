"""Evaluation: whole episodes in fixed shares, and nothing of the training is touched."""

import numpy as np

import cdqn
from helpers import WalkEnv, assert_same_state


def test_evaluation_leaves_the_held_actions_of_training_alone():
    settings = {"hidden": (8,), "batch_size": 8, "warmup_steps": 60, "memory_size": 100, "compile": "off"}
    agent = cdqn.CDQN(WalkEnv(), exploration="epsilon-z", **settings)
    agent.learn(20)
    held = {"left": np.array([30]), "held": np.array([1])}
    agent.trainer.exploration.load_state_dict(held)
    rng = agent.trainer.state_dict()["rng"]
    agent.evaluate(2, epsilon=0.5)
    assert_same_state(agent.trainer.exploration.state_dict(), held)
    assert agent.trainer.state_dict()["rng"] == rng
