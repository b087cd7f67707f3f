"""What may be other when training goes on: the schedules, and the step size."""

from pathlib import Path
from typing import Any

from cdqn.agent import Agent, Schedules
from cdqn.errors import ConfigError
from cdqn.storage.files import read_json, write_json, writing


def settle_schedules(agent: Agent, until: int, schedules: Schedules | None) -> str | None:
    """Settle up to which step ε, β and the step size run; what the user should know, where nothing was asked for."""
    if schedules not in (None, "continue", "restart"):
        raise ConfigError(f"schedules is {schedules!r}: it must be 'continue' or 'restart'")
    trainer = agent.trainer
    if trainer.budget_steps is None:
        agent.settle_budget(until)
    elif until <= agent.steps:
        return None
    elif schedules == "restart":
        trainer.restart_schedules(until)
    elif schedules is None and agent.steps >= trainer.budget_steps:
        return (
            f"the schedules ended at step {trainer.budget_steps:,}: ε stays at {trainer.epsilon():g}, the step size at "
            f"{trainer.learning_rate():g}; schedules='restart', in the shell --schedules restart, runs them anew"
        )
    return None


def news_of_schedules(agent: Agent, schedules: Schedules | None) -> list[str]:
    """For the metrics, after a restart."""
    trainer = agent.trainer
    restarted = schedules == "restart" and trainer.schedule_start == agent.steps > 0
    return [f"ε, β and the step size run anew, up to step {trainer.budget_steps:,}"] if restarted else []


def change_setting(run: Path, name: str, value: Any) -> list[str]:
    """Write another value into RUN/config.json; returns what there is to say, nothing if it is the same."""
    path = run / "config.json"
    content = read_json(path, "a run folder")
    before = content["config"].get(name)
    if before == value:
        return []
    content["config"][name] = value
    with writing(run):
        write_json(path, content)
    return [f"{name} is {value:g} from here on, and was {before:g}"]
