"""Weights & Biases, where it is installed."""

from typing import TYPE_CHECKING, Any

from cdqn.errors import MissingPackageError
from cdqn.integrations.scalars import scalars

if TYPE_CHECKING:
    from cdqn.training.events import Event


class WandB:
    """A callback that logs every number of a run; its arguments are those of `wandb.init`.

    The settings of the run become the configuration. `wandb.finish()`, or the end of the program, closes it.
    """

    def __init__(self, **arguments: Any) -> None:
        try:
            import wandb
        except ImportError as error:
            raise MissingPackageError("WandB needs the package wandb: pip install 'cdqn[wandb]'") from error
        self._run: Any = wandb.init(**arguments)
        self._described = False

    def __call__(self, event: "Event", agent: Any) -> None:
        if not self._described:
            self._described = True
            self._run.config.update({"env_id": agent.env_id, **agent.config.to_json()})
        self._run.log(scalars(event), step=event.step)
