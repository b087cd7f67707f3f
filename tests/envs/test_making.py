"""Environments of the user's own: by id, class or function, with arguments and wrappers, in Python and in the shell."""

import json
import sys
from functools import partial

import gymnasium as gym
import numpy as np
import pytest

import cdqn
from cdqn.cli.main import main
from cdqn.envs import kind_of, make_vec
from cdqn.errors import CheckpointError, ConfigError, UnsupportedEnvironmentError
from cdqn.storage import named_code
from helpers import CountingEnv

SOURCE = '''
import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete


class Switched(gym.Env):
    """Shows what it was made with."""

    action_space = Discrete(2)

    def __init__(self, level=0, shape=(1,), render_mode=None):
        self.level, self.shape = level, tuple(shape)
        self.observation_space = Box(0, 255, self.shape, np.float32 if len(shape) == 1 else np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.full(self.shape, self.level, self.observation_space.dtype), {}

    def step(self, action):
        return self.reset()[0], 1.0, False, True, {}


def make_env(level=0):
    return Switched(level + 1)


def nothing(level=0):
    return None


class Plus(gym.ObservationWrapper):
    def observation(self, observation):
        return observation + 1


def twice(env):
    return gym.wrappers.TransformObservation(env, lambda x: 2 * x, env.observation_space)


gym.register("Switched-v0", Switched, max_episode_steps=5)
'''
SMALL = {"hidden": (4,), "batch_size": 4, "warmup_steps": 8, "num_envs": 1, "compile": "off"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A file in the working directory, which is not on Python's path."""
    (tmp_path / "my_task.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    yield tmp_path
    sys.modules.pop("my_task", None)


def first(env):
    return env.reset()[0].tolist()


def test_environment_is_named_by_its_id_its_class_or_a_function_of_the_working_directory(folder):
    assert first(make_vec("my_task:Switched-v0", 2, kwargs={"level": 4})) == [[4], [4]]
    assert first(make_vec("my_task:Switched", 1, kwargs={"level": 4})) == [[4]]
    assert first(make_vec("my_task:make_env", 1, kwargs={"level": 4})) == [[5]]
    with pytest.raises(UnsupportedEnvironmentError, match="there is no environment 'Swiched'"):
        make_vec("my_task:Swiched", 1)
    with pytest.raises(UnsupportedEnvironmentError, match="my_task:nothing made None: it must make a"):
        make_vec("my_task:nothing", 1)


def test_wrappers_go_around_each_other_the_innermost_first(folder):
    make_vec("my_task:Switched", 1)
    mine = sys.modules["my_task"]
    assert first(make_vec("my_task:Switched", 1, wrappers=[mine.Plus, mine.twice])) == [[2]]
    assert first(make_vec("my_task:Switched", 1, wrappers=[mine.twice, mine.Plus])) == [[1]]
    with pytest.raises(UnsupportedEnvironmentError, match="my_task:make_env cannot wrap my_task:Switched: TypeError"):
        make_vec("my_task:Switched", 1, wrappers=[mine.make_env])


def test_what_an_environment_is_made_with_decides_its_kind(folder):
    assert kind_of("my_task:Switched") == "vector"
    assert kind_of("my_task:Switched", {"shape": [40, 40, 3]}) == "image"
    assert kind_of("my_task:Switched", {"shape": [7, 7, 3]}) == "board"
    assert kind_of("my_task:NoSuchThing") == "vector"


def test_arguments_that_cannot_act_are_refused_by_name(folder):
    with pytest.raises(UnsupportedEnvironmentError, match=r"CartPole-v1 cannot be made: TypeError: .*colour"):
        make_vec("CartPole-v1", 1, kwargs={"colour": "red"})
    with pytest.raises(ConfigError, match="made already; drop them"):
        make_vec(CountingEnv(), 1, wrappers=[lambda env: env])
    with pytest.raises(ConfigError, match="Atari games have settings of their own"):
        make_vec("Pong", 1, kwargs={"mode": 1})


def test_agent_is_trained_saved_and_loaded_with_arguments_and_wrappers(folder):
    agent = cdqn.CDQN("my_task:Switched", env_kwargs={"level": 3}, wrapper=["my_task:Plus"], **SMALL)
    assert agent.config.env_kwargs == '{"level": 3}'
    assert agent.predict(np.array([4.0])) in (0, 1)
    agent.learn(40).save("run")
    assert json.loads((folder / "run" / "config.json").read_text())["config"]["wrapper"] == ["my_task:Plus"]
    assert cdqn.load("run", allow_import="my_task").evaluate(2).returns.tolist() == [1.0, 1.0]
    sys.modules.pop("my_task")
    named_code._objects.clear()
    with pytest.raises(CheckpointError, match="--allow-import my_task"):
        cdqn.load("run")
    assert "my_task" not in sys.modules


def test_shell_takes_arguments_and_wrappers_several_times_and_records_them(folder, capsys):
    flags = ["--steps", "60", "--warmup-steps", "20", "--batch-size", "4", "--hidden", "4", "--compile", "off"]
    wrappers = ["--wrapper", "my_task:Plus", "--env-kwargs", '{"level": 3}', "--wrapper=my_task:twice"]
    assert main(["train", *wrappers, "my_task:Switched-v0", "--out", "run", *flags]) == 0
    config = json.loads((folder / "run" / "config.json").read_text())["config"]
    assert config["wrapper"] == ["my_task:Plus", "my_task:twice"]
    assert config["env_kwargs"] == '{"level": 3}'
    capsys.readouterr()
    assert main(["evaluate", "run", "--episodes", "2", "--allow-import", "my_task"]) == 0
    assert "return" in capsys.readouterr().out


def test_own_images_are_trained_from_the_shell_with_neutral_settings_or_with_those_of_atari(folder, capsys):
    image = ["my_task:Switched-v0", "--env-kwargs", '{"shape": [40, 40, 3], "level": 9}']
    flags = ["--steps", "60", "--warmup-steps", "20", "--batch-size", "4", "--hidden", "4", "--channels", "2", "2", "2"]
    flags += ["--memory-size", "100", "--compile", "off", "--evaluation-episodes", "2"]
    assert main(["train", *image, "--out", "neutral", *flags]) == 0
    config = json.loads((folder / "neutral" / "config.json").read_text())["config"]
    assert (config["gamma"], config["reward_clip"], config["n_step"]) == (0.99, False, 3)
    assert "preset images" in capsys.readouterr().out
    assert main(["train", *image, "--preset", "laptop", "--out", "as-pong", *flags]) == 0
    assert json.loads((folder / "as-pong" / "config.json").read_text())["config"]["gamma"] == 0.97


@pytest.mark.parametrize("given", ["{", "[1]", "3", {"level": object()}])
def test_arguments_that_are_no_json_object_are_refused(given):
    with pytest.raises(ConfigError, match="env_kwargs"):
        cdqn.CDQN("CartPole-v1", env_kwargs=given)


@pytest.mark.parametrize("flag", ["--lr=0.1", "--total_timesteps", "--buffer-size"])
def test_flags_of_other_libraries_have_a_name_here(flag, capsys):
    with pytest.raises(SystemExit) as exit_code:
        main(["train", "CartPole-v1", flag, "5"])
    assert exit_code.value.code == 2
    assert "here it is --" in capsys.readouterr().err


def test_shell_wraps_with_arguments_which_are_recorded_and_loaded_without_permission(folder, capsys):
    flags = ["--steps", "60", "--warmup-steps", "20", "--batch-size", "4", "--hidden", "4", "--compile", "off"]
    limit = ["--wrapper", "gymnasium.wrappers:TimeLimit(  max_episode_steps = 7 )"]
    actions = ["--wrapper", "gymnasium.wrappers:DiscretizeAction(bins=3)"]
    assert main(["train", "Pendulum-v1", *limit, *actions, "--out", "run", *flags, "--evaluation-episodes", "1"]) == 0
    config = json.loads((folder / "run" / "config.json").read_text())["config"]
    assert config["wrapper"] == [
        "gymnasium.wrappers:TimeLimit(max_episode_steps=7)",
        "gymnasium.wrappers:DiscretizeAction(bins=3)",
    ]
    named_code._objects.clear()
    agent = cdqn.load("run")
    assert (agent.evaluate(1).lengths.tolist(), agent.spec.num_actions) == ([7], 3)


def test_wrapper_with_arguments_in_python_is_a_partial(folder):
    wrapper = [partial(gym.wrappers.DiscretizeAction, bins=4)]
    agent = cdqn.CDQN("Pendulum-v1", wrapper=wrapper, **SMALL)
    assert agent.spec.num_actions == 4
    agent.learn(20).save("run")
    named_code._objects.clear()
    assert cdqn.load("run").config.wrapper == agent.config.wrapper
    with pytest.raises(ConfigError, match="must be numbers, texts"):
        cdqn.CDQN("Pendulum-v1", wrapper=[partial(gym.wrappers.TransformReward, func=abs)], **SMALL)
    wrong = ["gymnasium.wrappers:DiscretizeAction(boxes=4)"]
    with pytest.raises(UnsupportedEnvironmentError, match=r"DiscretizeAction\(boxes=4\) cannot wrap Pendulum-v1"):
        cdqn.CDQN("Pendulum-v1", wrapper=wrong, **SMALL)
