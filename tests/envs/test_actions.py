"""Actions that are no finite set: the error has lines that make them one, and the lines work."""

import re

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, MultiBinary, MultiDiscrete, Tuple

import cdqn
from cdqn.envs import describe, make_vec
from cdqn.envs.actions import NumberedActions
from cdqn.errors import UnsupportedEnvironmentError
from cdqn.storage.named_code import WithArguments, import_named
from helpers import CountingEnv


def with_actions(space):
    env = CountingEnv()
    env.action_space = space
    return env


@pytest.mark.parametrize(
    ("actions", "count"),
    [
        (Box(-1, 1, (1,)), 25),
        (Box(-1, 1, (3,)), 27),
        (MultiDiscrete([2, 3]), 6),
        (MultiDiscrete([[2, 3], [1, 2]], start=[[5, 0], [0, -1]]), 12),
        (MultiBinary(3), 8),
        (MultiBinary((2, 2)), 16),
    ],
    ids=str,
)
def test_lines_that_the_error_gives_make_actions_finite_in_python_and_in_the_shell(actions, count):
    env = with_actions(actions)
    with pytest.raises(UnsupportedEnvironmentError) as caught:
        describe(make_vec(env, 1))
    text = str(caught.value)
    python = re.search(r"env = (.*)", text)[1]
    shell = re.search(r"--wrapper '?([^', ]*)", text)[1]
    import_named(shell.partition("(")[0])
    for finite in (eval(python, {"gymnasium": gym, "cdqn": cdqn, "env": env}), WithArguments.read(shell)(env)):
        assert describe(make_vec(finite, 1)).num_actions == count
        chosen = [np.asarray(finite.action(a), actions.dtype) for a in range(count)]
        assert all(map(actions.contains, chosen))
        assert len({one.tobytes() for one in chosen}) == count, "each is another"


@pytest.mark.parametrize(
    "actions", [Box(-np.inf, 1, (1,)), MultiBinary(20), Box(-1, 1, (12,)), Tuple([Box(0, 1)])], ids=str
)
def test_what_no_wrapper_of_ours_makes_finite_is_left_to_one_of_the_users(actions):
    with pytest.raises(UnsupportedEnvironmentError, match="--wrapper my_module:MyWrapper"):
        describe(make_vec(with_actions(actions), 1))


def test_actions_that_cannot_be_numbered_are_refused():
    with pytest.raises(UnsupportedEnvironmentError, match="1,048,576 combinations"):
        NumberedActions(with_actions(MultiBinary(20)))
    with pytest.raises(UnsupportedEnvironmentError, match="only those of MultiDiscrete and MultiBinary"):
        NumberedActions(CountingEnv())
