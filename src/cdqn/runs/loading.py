"""Agents from run folders; what a folder names is imported only by the user's word."""

import json
import warnings
from collections.abc import Iterable
from pathlib import Path

from cdqn.agent import Agent, read_run_config
from cdqn.envs import EnvLike, module_of
from cdqn.errors import CdqnError, CheckpointError
from cdqn.storage.checkpoint import State, load_checkpoint
from cdqn.storage.named_code import require_allowed


def load(path: str | Path, env: EnvLike | None = None, allow_import: str | Iterable[str] = ()) -> Agent:
    """An agent as it was saved, by `Agent.save` or by a run of `cdqn train`.

    `env` is needed where the agent was made from an environment object instead of an id. An id "module:Id" makes
    Python import the module: a folder from elsewhere could name any, so say `allow_import="module"` if you trust it.
    """
    agent, restored = load_run(Path(path), env, allow_import)
    if restored.damage:
        warnings.warn(restored.damage, stacklevel=2)
    metrics = Path(path) / "metrics.jsonl"
    if metrics.exists():
        try:
            rows = metrics.read_bytes()[: restored.metrics_bytes].decode()
            agent.history = [json.loads(row) for row in rows.splitlines()]
        except (OSError, ValueError, RecursionError) as error:
            raise CheckpointError(f"{metrics} is damaged ({error}): delete it to load the agent without it") from error
    return agent


def load_run(run: Path, env: EnvLike | None = None, allow_import: str | Iterable[str] = ()) -> tuple[Agent, "Restored"]:
    """An agent from a run folder, and what else its checkpoint tells."""
    agent = new_agent_of(run, env, allow_import)
    damage: list[str] = []
    state = load_checkpoint(run, damage.append)
    try:
        notice = agent.trainer.load_state_dict(state["trainer"])
        pending = bool(state.get("evaluation_pending", False))  # absent from older runs
        return agent, Restored(int(state["metrics_bytes"]), notice, state.get("candidates"), pending, *damage)
    except CdqnError:
        raise
    except _MISFITS as error:
        raise CheckpointError(f"the checkpoint in {run} does not fit this version of cdqn: {error!r}") from error


def new_agent_of(run: Path, env: EnvLike | None = None, allow_import: str | Iterable[str] = ()) -> Agent:
    """The agent of a run folder as it was before its first step."""
    env_id, config = read_run_config(run, allow_import)
    if env is None:
        if env_id is None:
            raise CheckpointError(f"{run} was trained on an environment object: pass it, cdqn.load(path, env=...)")
        require_import_allowed(run, env_id, allow_import)
        env = env_id
    return Agent.from_config(env, config)


def require_import_allowed(folder: Path, env_id: str, allow_import: str | Iterable[str]) -> None:
    """An environment's id may name a module, which making it imports: only if the user has named it too."""
    if (module := module_of(env_id)) is not None:
        or_else = "; or pass the environment, cdqn.load(path, env=...)"
        require_allowed(folder, module, f"names the environment {env_id!r}, and making it", allow_import, or_else)


_MISFITS = (LookupError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError, AssertionError)
"""What a state raises that was edited, or written by another version, when it is put into place."""


class Restored:
    """What a checkpoint holds beside the agent."""

    def __init__(
        self,
        metrics_bytes: int,
        notice: str | None = None,
        candidates: State | None = None,
        evaluation_pending: bool = False,
        damage: str | None = None,
    ) -> None:
        self.metrics_bytes = metrics_bytes
        """Length of metrics.jsonl at the checkpoint: later lines belong to steps that will be repeated."""
        self.notice = notice
        """Why open episodes were given up, if they were."""
        self.candidates = candidates
        """The state of `cdqn.runs.candidates`, where candidates are kept."""
        self.evaluation_pending = evaluation_pending
        """Whether an evaluation at this step was due, and has not been done."""
        self.damage = damage
        """Why it is not the newest checkpoint, if it is not."""
