"""The environment of data alone: it has the spaces of the rows, and refuses to be played."""

import gymnasium as gym
import numpy as np
import pytest

from cdqn.envs import DATA_ENV, describe, make_vec
from cdqn.envs.data import DataEnv
from cdqn.errors import UnsupportedEnvironmentError


@pytest.mark.parametrize(
    ("kwargs", "kind", "shape", "dtype"),
    [
        ({"shape": [4]}, "vector", (4,), np.float32),
        ({"shape": [4], "dtype": "float64"}, "vector", (4,), np.float32),
        ({"states": 16}, "discrete", (16,), np.int8),
        ({"shape": [10, 10, 4], "dtype": "bool"}, "board", (10, 10, 4), np.bool_),
        ({"shape": [84, 84, 3], "dtype": "uint8"}, "image", (3, 84, 84), np.uint8),
        ({"shape": [5], "dtype": "int64"}, "vector", (5,), np.int64),
    ],
)
def test_spaces_are_those_of_the_data(kwargs, kind, shape, dtype):
    spec = describe(make_vec(DATA_ENV, 1, kwargs={"actions": 3, "first_action": 1, **kwargs}))
    assert (spec.kind, spec.observation_shape, spec.observation_dtype) == (kind, shape, dtype)
    assert (spec.num_actions, spec.first_action) == (3, 1)


def test_it_cannot_be_played():
    for play in (gym.make(DATA_ENV, actions=2, shape=[3]).reset, lambda: DataEnv(2, [3]).step(0)):
        with pytest.raises(UnsupportedEnvironmentError, match=r"trained on data alone.*evaluate\(env=\.\.\.\)"):
            play()
