"""The line to paste is the trial that it stands for."""

import dataclasses
import shlex

import pytest

import cdqn
from cdqn.cli.main import _parse
from cdqn.runs.sweep.paste import python_line, shell_line
from cdqn.runs.sweep.plan import plan_sweep
from cdqn.runs.sweep.trials import Trial

SPACE = {"learning_rate": [1e-5, 2e-3], "hidden": [[8, 8], [4]], "dueling": [True, False]}
FOUND = {"learning_rate": 1e-5, "hidden": (8, 8), "dueling": False}
GIVEN = {"steps": 3000, "evaluation_episodes": 2, "env_kwargs": {"sutton_barto_reward": True}}


@pytest.mark.parametrize("algorithm", ["cdqn", "rg"])
@pytest.mark.parametrize("preset", [None, "paper-B.1"])
def test_pasted_lines_make_the_same_agent(algorithm, preset):
    given = GIVEN if preset is None else GIVEN | {"warmup_steps": 600, "memory_size": 2000, "update_period_steps": 4}
    plan = plan_sweep("CartPole-v1", SPACE, algorithm, preset, given)
    trial = Trial(3, FOUND)
    wanted = plan.config_of(trial, 0)
    command = _parse(shlex.split(shell_line(plan, trial))[1:])
    unmeasured = {name: getattr(command.config, name) for name in ("evaluation_period_steps", "log_period_steps")}
    assert command.env_id == "CartPole-v1"
    assert command.config.resolved() == dataclasses.replace(wanted, **unmeasured)
    code = python_line(plan, trial)
    assert code.endswith(".learn(3_000)")
    agent = eval(code.removesuffix(".learn(3_000)"), {"cdqn": cdqn})
    assert agent.config == dataclasses.replace(wanted, **unmeasured, steps=agent.config.steps)


def test_defaults_are_a_bare_command():
    plan = plan_sweep("CartPole-v1", SPACE)
    assert shell_line(plan, Trial(0, {})) == "cdqn train CartPole-v1"
    assert python_line(plan, Trial(0, {})) == "cdqn.CDQN('CartPole-v1').learn(50_000)"


def test_code_of_the_user_is_named():
    wrapped = {"wrapper": ("gymnasium.wrappers:RecordEpisodeStatistics", "gymnasium.wrappers:ClipReward")}
    plan = plan_sweep("CartPole-v1", SPACE, settings={"wrapper": wrapped["wrapper"][:1]})
    plan = dataclasses.replace(plan, given=wrapped, base=dataclasses.replace(plan.base, algorithm="dqn"))
    words = shell_line(plan, Trial(0, {}))
    assert words == (
        "cdqn train CartPole-v1 --algorithm dqn --wrapper gymnasium.wrappers:RecordEpisodeStatistics "
        "--wrapper gymnasium.wrappers:ClipReward"
    )
