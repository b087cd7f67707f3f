"""Learning tests: whole runs, minutes long. The figures of docs/results.md come from longer ones."""

import pytest
import torch

import cdqn


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("agent_class", [cdqn.CDQN, cdqn.DQN])
def test_cartpole_reaches_475_within_50_000_steps(agent_class, seed):
    """Greedy evaluation over 20 episodes every 2000 steps, where 4 of them are promising, until it is reached."""
    agent = agent_class("CartPole-v1", seed=seed, steps=50_000)
    best = -float("inf")
    while agent.steps < 50_000 and best < 475:
        agent.learn(2_000)
        if agent.evaluate(episodes=4).mean >= 475:
            best = max(best, agent.evaluate(episodes=20).mean)
    assert best >= 475
    assert torch.isfinite(agent.trainer.learner.theta).all()
