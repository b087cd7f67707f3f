"""The factory: what is supported is described, what is not is named with a remedy."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from cdqn.envs import describe, make_vec, require_kind
from cdqn.errors import ConfigError, UnsupportedEnvironmentError
from helpers import CountingEnv


class Shell(gym.Env):
    """Spaces and nothing else."""

    def __init__(self, observations=None, actions=None):
        self.observation_space = Box(-1, 1, (4,), np.float32) if observations is None else observations
        self.action_space = Discrete(2) if actions is None else actions

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}


def describe_single(observations=None, actions=None):
    return describe(make_vec(Shell(observations, actions), 1))


def test_id_gives_that_many_environments_without_autoreset():
    env = make_vec("CartPole-v1", 3)
    assert env.num_envs == 3
    assert env.metadata["autoreset_mode"] == AutoresetMode.DISABLED
    spec = describe(env)
    assert (spec.kind, spec.observation_shape, spec.num_actions) == ("vector", (4,), 2)
    assert spec.observation_dtype == np.float32
    env.close()


def test_environments_of_one_id_are_separate():
    env = make_vec("CartPole-v1", 2)
    assert env.envs[0].unwrapped is not env.envs[1].unwrapped


def test_env_object_becomes_one_environment_whatever_the_count():
    single = CountingEnv()
    env = make_vec(single, 4)
    assert env.num_envs == 1
    assert env.envs[0] is single


def test_vector_env_comes_back_as_it_is():
    env = SyncVectorEnv([CountingEnv])
    assert make_vec(env, 4) is env


@pytest.mark.parametrize(
    ("wrong", "near"), [("CartPol-v1", "CartPole-v1"), ("cartpole-v1", "CartPole-v1"), ("Acrobot1", "Acrobot-v1")]
)
def test_unknown_id_is_answered_with_the_nearest_name(wrong, near):
    with pytest.raises(UnsupportedEnvironmentError) as caught:
        make_vec(wrong, 1)
    assert wrong in str(caught.value)
    assert near in str(caught.value)


def test_id_like_nothing_at_all_points_to_the_list():
    with pytest.raises(UnsupportedEnvironmentError, match="cdqn list"):
        make_vec("xqzwv", 1)


def test_unknown_version_is_an_error_not_another_environment():
    with pytest.raises(UnsupportedEnvironmentError, match="CartPole"):
        make_vec("CartPole-v99", 1)


def test_module_that_does_not_exist_is_named():
    with pytest.raises(UnsupportedEnvironmentError, match="no_such_module"):
        make_vec("no_such_module:Env-v0", 1)


@pytest.mark.parametrize("actions", [Box(-1, 1, (2,)), MultiDiscrete([2, 3])], ids=["Box", "MultiDiscrete"])
def test_actions_that_are_no_finite_set_are_refused(actions):
    with pytest.raises(UnsupportedEnvironmentError, match=r"actions .*Discrete"):
        describe_single(actions=actions)


@pytest.mark.parametrize("observations", [Dict({"a": Box(0, 1, (2,))}), Discrete(16)], ids=["Dict", "Discrete"])
def test_observations_that_are_no_box_are_refused_with_the_wrapper_that_helps(observations):
    with pytest.raises(UnsupportedEnvironmentError, match="FlattenObservation"):
        describe_single(observations)


@pytest.mark.parametrize("shape", [(), (3, 3), (84, 84, 3), (4, 30, 80), (2, 2, 2, 2)])
def test_shapes_without_a_network_are_refused_by_name(shape):
    with pytest.raises(UnsupportedEnvironmentError) as caught:
        describe_single(Box(0, 255, shape, np.uint8))
    assert str(shape) in str(caught.value)


def test_minatar_boards_are_recognised():
    spec = describe_single(Box(0, 1, (10, 10, 6), np.bool_))
    assert spec.kind == "minatar"
    assert spec.observation_dtype == np.bool_


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [(np.float64, np.float32), (np.float32, np.float32), (np.uint8, np.uint8), (np.int64, np.int64)],
)
def test_observation_types(dtype, kept):
    assert describe_single(Box(0, 1, (4,), dtype)).observation_dtype == kept


def test_half_precision_is_refused_by_name():
    with pytest.raises(UnsupportedEnvironmentError, match="float16"):
        describe_single(Box(0, 1, (4,), np.float16))


def test_first_action_is_the_spaces_start():
    spec = describe_single(actions=Discrete(5, start=-2))
    assert (spec.num_actions, spec.first_action) == (5, -2)


def test_preset_for_another_kind_is_refused_by_name():
    spec = describe_single()
    require_kind("vector", spec, "classic-control")
    with pytest.raises(ConfigError, match=r"minatar.*vector"):
        require_kind("minatar", spec, "minatar")
