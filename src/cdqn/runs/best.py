"""The policy of a run's best evaluation: RUN/best, weights alone. `cdqn.load(run, best=True)` plays with it."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from cdqn.agent import Agent
from cdqn.errors import CheckpointError
from cdqn.runs.policy_files import PolicyFiles
from cdqn.storage.checkpoint import State, load_checkpoint_values, read_policy
from cdqn.training.events import Evaluated, Event


class Best:
    """The callback that keeps the policy of the best evaluation, of equals the first.

    Without periodic evaluations there is one, of the policy that is in the checkpoint, and nothing is kept.
    """

    def __init__(self, run: Path, agent: Agent) -> None:
        self._files = PolicyFiles(run / "best")
        self._periodic = agent.config.evaluation_period_steps is not None
        self.step: int | None = None
        self.mean: float | None = None

    def __call__(self, event: Event, agent: Agent) -> None:
        if not self._periodic or not isinstance(event, Evaluated):
            return
        if self.mean is None or event.result.mean > self.mean:
            self.step, self.mean = event.step, event.result.mean
            self._files.add(event.step, agent.trainer.policy_state())

    def prune(self) -> None:
        """Delete what is no longer the best; only after a checkpoint."""
        self._files.prune([] if self.step is None else [self.step])

    def state_dict(self) -> State | None:
        """Which step it is; its policy is in the file."""
        return None if self.step is None else {"step": self.step, "mean": self.mean}

    def load_state_dict(self, state: State | None) -> None:
        """Take over what `state_dict` gave; None of older runs too."""
        if state is None:
            return
        try:
            self.step, self.mean = int(state["step"]), float(state["mean"])
        except (LookupError, TypeError, ValueError) as error:
            raise CheckpointError(f"the best step in the checkpoint of {self._files.folder} is damaged") from error
        self._files.count_on([self.step])


def read_best(run: Path) -> tuple[int, dict[str, NDArray[Any]]]:
    """The step of a run's best evaluation, and the policy of it."""
    state = load_checkpoint_values(run).get("best")
    if state is None:
        raise CheckpointError(
            f"{run} has kept no best policy: train with --evaluation-period-steps 5000, or drop --best, in Python best"
        )
    try:
        step = int(state["step"])
    except (LookupError, TypeError, ValueError) as error:
        raise CheckpointError(f"the checkpoint in {run} is damaged: its best step is {state!r}") from error
    return step, read_policy(PolicyFiles(run / "best").path(step))
