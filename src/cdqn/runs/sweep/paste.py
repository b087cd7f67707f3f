"""The settings of a trial as a line that can be typed, in a shell and in Python."""

import shlex
from collections.abc import Iterable
from typing import Any

from cdqn.agent import AGENTS
from cdqn.runs.sweep.plan import SweepPlan
from cdqn.runs.sweep.trials import Trial

NOT_PASTED = ("log_period_steps", "checkpoint_period_steps", "evaluation_period_steps", "candidate_period_steps")
"""How a sweep was measured is not what it found."""


def shell_line(plan: SweepPlan, trial: Trial) -> str:
    """`cdqn train` with the settings of a trial; the seed is the reader's."""
    words = ["cdqn", "train", plan.env_id]
    if plan.base.algorithm != "cdqn":
        words += ["--algorithm", plan.base.algorithm]
    if plan.preset is not None:
        words += ["--preset", plan.preset]
    for name, value in _settings(plan, trial).items():
        words += _flag(name, value)
    return shlex.join(words)


def python_line(plan: SweepPlan, trial: Trial) -> str:
    """The same agent in Python."""
    settings = _settings(plan, trial)
    steps = settings.pop("steps", plan.base.steps)
    known = AGENTS.get(plan.base.algorithm)
    arguments = [repr(plan.env_id)]
    if known is None:
        arguments.append(f"algorithm={plan.base.algorithm!r}")
    if plan.preset is not None:
        arguments.append(f"preset={plan.preset!r}")
    arguments += [f"{name}={value!r}" for name, value in settings.items()]
    return f"cdqn.{'Agent' if known is None else known.__name__}({', '.join(arguments)}).learn({steps:_})"


def _settings(plan: SweepPlan, trial: Trial) -> dict[str, Any]:
    """What was given and what was found."""
    given = {name: value for name, value in plan.given.items() if name not in NOT_PASTED}
    return given | trial.settings


def _flag(name: str, value: Any) -> list[str]:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    if name == "wrapper":
        return [word for wrapper in value for word in (f"--{flag}", wrapper)]
    return [f"--{flag}", *_words(value)]


def _words(value: Any) -> Iterable[str]:
    if isinstance(value, tuple):
        return [word for part in value for word in _words(part)]
    return [repr(value) if isinstance(value, float) else str(value)]
