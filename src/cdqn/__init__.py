"""C-DQN, the convergent deep Q network of Wang & Ueda (ICLR 2022), with DQN and RG beside it.

agent = cdqn.CDQN("CartPole-v1", seed=0)      # also cdqn.DQN, cdqn.ResidualGradient
agent.learn(50_000)
print(agent.evaluate(episodes=20))
"""

from typing import TYPE_CHECKING, Any

from cdqn.errors import CdqnError
from cdqn.storage.files import VERSION

if TYPE_CHECKING:
    from cdqn import callbacks
    from cdqn.agent import CDQN, DQN, Agent, ResidualGradient
    from cdqn.config import Config
    from cdqn.runs.loading import load
    from cdqn.runs.runner import resume_run, train_run
    from cdqn.training.events import EvaluationResult

__version__ = VERSION
__all__ = [
    "CDQN",
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


def __getattr__(name: str) -> Any:
    """Imports the rest when it is first asked for: `cdqn list` and `--help` need not wait for PyTorch."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import cdqn.agent
    import cdqn.callbacks
    import cdqn.runs.runner

    homes = (cdqn, cdqn.agent, cdqn.config, cdqn.runs.loading, cdqn.runs.runner, cdqn.training.events)
    return next(vars(home)[name] for home in homes if name in vars(home))
