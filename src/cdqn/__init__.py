"""C-DQN, the convergent deep Q network of Wang & Ueda (ICLR 2022), with DQN and RG beside it.

agent = cdqn.CDQN("CartPole-v1", seed=0)      # also cdqn.DQN, cdqn.ResidualGradient
agent.learn(50_000)
print(agent.evaluate(episodes=20))
"""

__version__ = "0.1.0"

from cdqn.agent import CDQN, DQN, Agent, ResidualGradient, load
from cdqn.config import Config
from cdqn.errors import CdqnError
from cdqn.training.evaluation import EvaluationResult

__all__ = ["CDQN", "DQN", "Agent", "CdqnError", "Config", "EvaluationResult", "ResidualGradient", "load"]
