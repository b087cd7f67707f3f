"""The factory: what is supported is described, what is not is named with a remedy."""

import re

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Sequence, Text, Tuple
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cdqn
from cdqn.envs import describe, make_vec, require_kind
from cdqn.envs.observations import adapted
from cdqn.errors import ConfigError, MissingPackageError, UnsupportedEnvironmentError
from cdqn.storage.named_code import WithArguments, import_named
from helpers import CountingEnv


class Shell(gym.Env):
    """Spaces and nothing else."""

    def __init__(self, observations=None, actions=None, sample=None):
        self.observation_space = Box(-1, 1, (4,), np.float32) if observations is None else observations
        self.action_space = Discrete(2) if actions is None else actions
        self.sample = sample

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample() if self.sample is None else self.sample, {}


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


@pytest.mark.parametrize("actions", [Box(-1, 1, (2,)), MultiDiscrete([2, 3])], ids=["Box", "MultiDiscrete"])
def test_actions_that_are_no_finite_set_are_refused(actions):
    with pytest.raises(UnsupportedEnvironmentError, match=r"actions .*Discrete"):
        describe_single(actions=actions)


@pytest.mark.parametrize(
    ("observations", "sample", "vector", "dtype"),
    [
        (Discrete(4), 2, [0, 0, 1, 0], np.int8),
        (Discrete(3, start=5), 5, [1, 0, 0], np.int8),
        (MultiDiscrete([2, 3]), np.array([1, 2]), [0, 1, 0, 0, 1], np.int8),
        (MultiBinary(3), np.array([1, 0, 1], np.int8), [1, 0, 1], np.int8),
        (Tuple((Discrete(2), Discrete(3))), (1, 0), [0, 1, 1, 0, 0], np.int8),
        (
            Dict({"place": Box(-1, 1, (2,), np.float32), "door": Discrete(2)}),
            {"place": np.array([0.5, -0.25], np.float32), "door": 1},
            [0, 1, 0.5, -0.25],
            np.float32,
        ),
        (Dict({"count": Box(0, 9, (2,), np.int64)}), {"count": np.array([7, 0])}, [7, 0], np.int8),
    ],
    ids=["Discrete", "Discrete from 5", "MultiDiscrete", "MultiBinary", "Tuple", "Dict", "Dict of integers"],
)
def test_observations_that_are_no_box_become_vectors(observations, sample, vector, dtype):
    env = make_vec(Shell(observations, sample=sample), 1)
    spec = describe(env)
    kind = "discrete" if isinstance(observations, Discrete) else "vector"
    assert (spec.kind, spec.observation_shape, spec.observation_dtype) == (kind, (len(vector),), dtype)
    observation, _ = env.reset()
    assert observation.tolist() == [vector]
    assert observation.astype(spec.observation_dtype).tolist() == [vector]


def test_observation_of_a_named_environment_becomes_a_vector():
    env = make_vec("Blackjack-v1", 2)
    assert describe(env).observation_shape == (32 + 11 + 2,)
    assert describe(env).observation_dtype == np.int8
    observation, _ = env.reset(seed=0)
    assert observation.dtype == np.int8
    assert observation.sum(1).tolist() == [3, 3]  # one 1 for each of the three numbers


def test_box_is_left_as_it_is():
    single = Shell(Box(0, 1, (4,), np.int64))
    assert adapted(single) is single


@pytest.mark.parametrize(
    "observations",
    [
        Text(8),
        Dict({"word": Text(8)}),
        Dict({"place": Discrete(3), "more": Tuple((Discrete(2), Text(8)))}),
        Sequence(Discrete(3)),
    ],
    ids=["Text", "Dict", "Tuple in a Dict", "Sequence"],
)
def test_observations_that_are_no_numbers_are_refused_with_the_wrapper_that_helps(observations):
    with pytest.raises(UnsupportedEnvironmentError, match=r"FilterObservation|--wrapper my_module:MyWrapper"):
        describe_single(observations)


def test_vector_environment_of_other_observations_is_refused_with_what_helps():
    with pytest.raises(UnsupportedEnvironmentError, match=r"give an Env or an id in place of a VectorEnv"):
        describe(SyncVectorEnv([lambda: Shell(Discrete(4))]))


@pytest.mark.parametrize("as_object", [False, True], ids=["id", "object"])
def test_agent_learns_from_numbered_states_and_predicts_from_their_numbers(as_object):
    settings = {"hidden": (8,), "batch_size": 8, "warmup_steps": 40, "memory_size": 100, "compile": "off"}
    agent = cdqn.CDQN(gym.make("Taxi-v3") if as_object else "Taxi-v3", num_envs=1 if as_object else 2, **settings)
    before = agent.trainer.learner.theta.clone()
    agent.learn(60)
    assert agent.trainer.learner.updates == 20
    assert not agent.trainer.learner.theta.equal(before)
    observation, _ = gym.make("Taxi-v3").reset(seed=0)
    actions = agent.predict(np.arange(500))
    assert actions.shape == (500,)
    assert agent.predict(observation) == actions[observation]
    for wrong in (500, -1, 0.5, np.zeros((2, 2))):
        with pytest.raises(ConfigError, match=r"predict got .* it must be of Discrete\(500\), or several"):
            agent.predict(wrong)
    assert agent.evaluate(1).returns.shape == (1,)


@pytest.mark.parametrize("shape", [(96, 96, 3), (3, 96, 96), (80, 80), (2, 2, 40, 40)])
def test_arrays_of_floats_that_are_too_large_are_refused_with_wrappers_that_help(shape):
    space = Box(0, 1, shape, np.float32)
    with pytest.raises(UnsupportedEnvironmentError) as caught:
        describe_single(space)
    assert str(shape) in str(caught.value)
    to_vector, _ = wrappers_of(str(caught.value))
    assert describe(make_vec(to_vector(Shell(space)), 1)).kind == "vector"


def test_dict_with_parts_that_are_no_numbers_is_refused_with_the_wrapper_that_keeps_the_others():
    space = Dict({"place": Discrete(3), "many": Sequence(Discrete(3))})
    with pytest.raises(UnsupportedEnvironmentError) as caught:
        describe_single(space)
    (wrap,) = wrappers_of(str(caught.value))
    made = make_vec(wrap(Shell(space, sample={"place": 1, "many": (0, 2)})), 1)
    assert describe(made).observation_shape == (3,)
    assert made.reset()[0].tolist() == [[0, 1, 0]]


def wrappers_of(error):
    """Those that an error names for the shell."""
    texts = re.findall(r"--wrapper '?([\w.]+:\w+(?:\([^']*\))?)", error)
    for text in texts:
        if not text.startswith("my_module:"):
            import_named(text.partition("(")[0])
    return [WithArguments.read(text) for text in texts]


def test_minatar_boards_are_recognised():
    spec = describe_single(Box(0, 1, (10, 10, 6), np.bool_))
    assert spec.kind == "board"
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
    with pytest.raises(ConfigError, match=r"boards.*vector"):
        require_kind("board", spec, "minatar")


def test_minatar_episode_depends_on_its_seed_and_actions_alone():
    """Sticky actions repeat the last action: at the start of an episode it must not be that of the episode before."""

    def begin(env, seed):
        return np.array([env.reset(seed=[seed])[0], env.step(np.array([0]))[0]])

    for seed in range(40):  # one in ten first actions is sticky
        used, fresh = (make_vec("MinAtar/Breakout-v1", 1) for _ in range(2))
        used.reset(seed=[99])
        for _ in range(3):
            used.step(np.array([2]))  # to the right
        assert np.array_equal(begin(used, seed), begin(fresh, seed)), seed


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("Box2D is not installed, run `pip install swig`", r"LunarLander-v3 needs Box2D: pip install 'cdqn\[box2d\]'$"),
        ("pygame is not installed", "LunarLander-v3 needs a package: pygame is not installed$"),
    ],
)
def test_missing_package_of_an_environment_is_named_with_what_installs_it(told, words, monkeypatch):
    def absent(*_, **__):
        raise gym.error.DependencyNotInstalled(told)

    monkeypatch.setattr(gym, "make", absent)
    with pytest.raises(MissingPackageError, match=words):
        make_vec("LunarLander-v3", 1)
