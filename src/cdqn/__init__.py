"""C-DQN, the convergent deep Q network of Wang & Ueda (ICLR 2022), with DQN and RG beside it.

agent = cdqn.CDQN("CartPole-v1", seed=0)      # also cdqn.DCDQN, cdqn.DQN, cdqn.ResidualGradient
agent.learn(50_000)
print(agent.evaluate(episodes=20))
"""

from typing import Any

from cdqn import callbacks
from cdqn.agent import CDQN, DCDQN, DQN, Agent, ResidualGradient
from cdqn.config import Config
from cdqn.errors import CdqnError
from cdqn.runs import fitting, learning  # noqa: F401  they give agents their `fit` and `learn`
from cdqn.runs.loading import load
from cdqn.runs.runner import resume_run, train_run
from cdqn.storage.files import VERSION
from cdqn.training.events import EvaluationResult

__version__ = VERSION


def _make_display(agent: Any, until: int) -> Any:
    from cdqn.cli.common import display_of  # not for those who want no bar: they need not wait for it

    return display_of(agent, until)


learning.make_display = _make_display

__all__ = [
    "CDQN",
    "DCDQN",
    "DQN",
    "Agent",
    "CdqnError",
    "Config",
    "EvaluationResult",
    "ResidualGradient",
    "__version__",
    "callbacks",
    "load",
    "resume_run",
    "train_run",
]
