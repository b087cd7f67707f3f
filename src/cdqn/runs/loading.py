"""Agents from run folders; what a folder names is imported only by the user's word."""

import json
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cdqn.agent import Agent
from cdqn.envs import EnvLike, module_of
from cdqn.errors import CdqnError, CheckpointError
from cdqn.runs.best import read_best
from cdqn.storage.checkpoint import State, load_checkpoint
from cdqn.storage.named_code import require_allowed
from cdqn.training.run_config import read_data_name, read_run_config


def load(
    path: str | Path, env: EnvLike | None = None, allow_import: str | Iterable[str] = (), best: bool = False
) -> Agent:
    """An agent as it was saved, by `Agent.save`, or by `learn(..., run_folder=...)` or `cdqn train`.

    `env` is needed where the agent was made from an environment object instead of an id. An id "module:Id" makes
    Python import the module: a folder from elsewhere could name any, so say `allow_import="module"` if you trust it.
    `best` is the policy of the run's best evaluation, to play with and not to learn on.
    """
    if best:
        return load_best(Path(path), env, allow_import)
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


def load_best(run: Path, env: EnvLike | None = None, allow_import: str | Iterable[str] = (), **changes: Any) -> Agent:
    """An agent that plays as the run did at its best evaluation, and does not learn."""
    _, config = read_run_config(run, allow_import)
    agent = new_agent_of(run, env, allow_import, memory_size=config.batch_size, **changes)
    step, policy = read_best(run)
    agent.play_as(policy, step)
    return agent


def load_run(
    run: Path, env: EnvLike | None = None, allow_import: str | Iterable[str] = (), **changes: Any
) -> tuple[Agent, "Restored"]:
    """An agent from a run folder, with `changes` of its settings, and what else its checkpoint tells."""
    env_id, _ = read_run_config(run, allow_import)
    if env is None:
        require_environment(run, env_id, allow_import)
    damage: list[str] = []
    state = load_checkpoint(run, damage.append)
    try:
        if env_id is None and isinstance(env, str):  # older folders have the setting's default, whatever there was
            changes["num_envs"] = len(state["trainer"]["collector"]["episode_index"])
        agent = new_agent_of(run, env, allow_import, **changes)
        notice = agent.trainer.load_state_dict(state["trainer"])
        return agent, Restored.from_state(state, notice, *damage)
    except CdqnError:
        raise
    except _MISFITS as error:
        raise CheckpointError(f"the checkpoint in {run} does not fit this version of cdqn: {error!r}") from error


def new_agent_of(
    run: Path, env: EnvLike | None = None, allow_import: str | Iterable[str] = (), **changes: Any
) -> Agent:
    """The agent of a run folder as it was before its first step, with `changes` of its settings."""
    env_id, config = read_run_config(run, allow_import)
    if env is None:
        env = require_environment(run, env_id, allow_import)
    elif env != env_id:  # another one: what the recorded one was made with is none of its business
        changes = {"env_kwargs": None, "wrapper": ()} | changes
    return Agent.from_config(env, replace(config, **changes), data=read_data_name(run))


def require_environment(run: Path, env_id: str | None, allow_import: str | Iterable[str]) -> str:
    """The environment that a folder names, if it names one that may be made."""
    if env_id is None:
        raise CheckpointError(
            f"{run} was trained on an environment object: pass it, cdqn.load(path, env=...), or name what makes it, "
            "--env my_module:make_env"
        )
    require_import_allowed(run, env_id, allow_import)
    return env_id


def require_import_allowed(folder: Path, env_id: str, allow_import: str | Iterable[str]) -> None:
    """An environment's id may name a module, which making it imports: only if the user has named it too."""
    if (module := module_of(env_id)) is not None:
        or_else = "; or pass the environment, cdqn.load(path, env=...)"
        require_allowed(folder, module, f"names the environment {env_id!r}, and making it", allow_import, or_else)


_MISFITS = (LookupError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError, AssertionError)
"""What a state raises that was edited, or written by another version, when it is put into place."""


@dataclass(frozen=True)
class Restored:
    """What a checkpoint holds beside the agent."""

    metrics_bytes: int
    """Length of metrics.jsonl at the checkpoint: later lines belong to steps that will be repeated."""
    notice: str | None = None
    """Why open episodes were given up, if they were."""
    candidates: State | None = None
    """The state of `cdqn.runs.candidates`, where candidates are kept."""
    best: State | None = None
    """The state of `cdqn.runs.best`, where there is a best evaluation."""
    evaluation_pending: bool = False
    """Whether an evaluation at this step was due, and has not been done."""
    damage: str | None = None
    """Why it is not the newest checkpoint, if it is not."""

    @classmethod
    def from_state(cls, state: State, notice: str | None = None, damage: str | None = None) -> "Restored":
        """Of a checkpoint; what is absent from older runs has its default."""
        pending = bool(state.get("evaluation_pending", False))
        return cls(int(state["metrics_bytes"]), notice, state.get("candidates"), state.get("best"), pending, damage)
