"""MLflow, where it is installed."""

from typing import TYPE_CHECKING, Any

from cdqn.errors import MissingPackageError
from cdqn.integrations.scalars import scalars

if TYPE_CHECKING:
    from cdqn.training.events import Event


class MLflow:
    """A callback that logs every number of a run to MLflow's active run; one is started if there is none.

    The settings of the run become its parameters.
    """

    def __init__(self) -> None:
        try:
            import mlflow
        except ImportError as error:
            raise MissingPackageError("MLflow needs the package mlflow: pip install 'cdqn[mlflow]'") from error
        self._mlflow: Any = mlflow
        self._described = False

    def __call__(self, event: "Event", agent: Any) -> None:
        if not self._described:
            self._described = True
            self._mlflow.log_params({"env_id": agent.env_id, **agent.config.to_json()})
        if numbers := scalars(event):
            self._mlflow.log_metrics(numbers, step=event.step)
