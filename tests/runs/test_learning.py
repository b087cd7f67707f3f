"""`Agent.learn`, with a bar, in a run folder, with an environment for evaluations."""

import os
import signal
import warnings

import gymnasium as gym
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cdqn
from cdqn.errors import CheckpointError, ConfigError
from cdqn.runs.learning import warn_user
from cdqn.runs.runner import train_run
from cdqn.storage.checkpoint import newest_step
from cdqn.training.events import Progress, Warned
from cdqn.training.run_config import read_run_config
from helpers import ChoiceEnv, WalkEnv
from run_files import assert_same_end, without_clock

SMALL = {"hidden": (8,), "warmup_steps": 40, "batch_size": 8, "log_period_steps": 50, "compile": "off"}
SMALL |= {"memory_size": 200, "update_period_steps": 4, "evaluation_episodes": 2}


def agent_of(env="CartPole-v1", **settings):
    return cdqn.CDQN(env, **(SMALL | settings))


class Closable(WalkEnv):
    """Knows how often it was reset, and does so no more when it is closed."""

    resets = 0
    closed = False

    def reset(self, **arguments):
        assert not self.closed
        self.resets += 1
        return super().reset(**arguments)

    def close(self):
        self.closed = True


def test_learning_is_silent_unless_progress_is_wanted(capsys):
    agent_of().learn(100)
    assert capsys.readouterr() == ("", "")
    agent_of().learn(100, progress=True)
    assert "step 100 of 100" in capsys.readouterr().out


def test_warning_is_a_python_warning_once_with_a_bar_too(capsys):
    def warn(event, agent):
        return Warned(event.step, "mind the gap", "slow") if isinstance(event, Progress) else None

    with pytest.warns(UserWarning, match="step 52: mind the gap") as caught:
        agent_of().learn(60, warn, progress=True)
    assert len(caught) == 1
    assert caught[0].filename == __file__, "it names the line of the user"
    assert "mind the gap" not in capsys.readouterr().out


def test_warning_names_the_line_outside_of_the_package():
    with pytest.warns(UserWarning, match="look") as caught:
        warn_user("look")
    assert caught[0].filename == __file__


def test_learning_in_a_folder_is_what_the_command_does(tmp_path):
    settings = {"steps": 200, "checkpoint_period_steps": 100, "evaluation_period_steps": 100}
    train_run(agent_of(**settings), tmp_path / "run")
    agent = agent_of(**settings).learn(200, run_folder=tmp_path / "learned")
    assert_same_end(tmp_path / "learned", tmp_path / "run")
    named = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("run", "learned")]
    assert named[0] == named[1]
    rows = [{k: v for k, v in row.items() if k != "steps_per_second"} for row in agent.history]
    assert rows == without_clock(tmp_path / "learned")


def test_length_of_the_first_learn_is_the_budget_that_is_recorded(tmp_path):
    agent = agent_of().learn(100, run_folder=tmp_path / "run")
    assert agent.config.steps == read_run_config(tmp_path / "run")[1].steps == 100
    with pytest.raises(CheckpointError, match="is complete: it has 100 of 100 steps"):
        cdqn.resume_run(tmp_path / "run")


def test_folder_is_gone_on_with_by_its_agent_loaded_or_not(tmp_path):
    settings = {"steps": 300, "evaluation_period_steps": 100}
    agent_of(**settings).learn(300, run_folder=tmp_path / "whole")
    agent = agent_of(**settings).learn(100, run_folder=tmp_path / "run").learn(100, run_folder=tmp_path / "run")
    assert agent.steps == newest_step(tmp_path / "run") == 200
    cdqn.load(tmp_path / "run").learn(100, run_folder=tmp_path / "run")
    assert_same_end(tmp_path / "run", tmp_path / "whole")


def test_what_was_learned_before_the_folder_is_in_it(tmp_path):
    agent = agent_of(steps=200).learn(100).learn(100, run_folder=tmp_path / "run")
    assert cdqn.load(tmp_path / "run").history == agent.history
    assert [row["step"] for row in agent.history if row["kind"] == "progress"] == [52, 100, 152, 200]


def test_agent_saved_before_its_first_step_learns_in_that_folder(tmp_path):
    agent = agent_of()
    agent.save(tmp_path / "run")
    agent.learn(100, run_folder=tmp_path / "run")
    assert read_run_config(tmp_path / "run")[1] == agent.config
    agent.save(tmp_path / "run")


def test_folders_of_others_are_refused(tmp_path):
    agent = agent_of(steps=200).learn(100, run_folder=tmp_path / "run")
    with pytest.raises(CheckpointError, match="holds another run"):
        agent_of(steps=200, gamma=0.5).learn(100, run_folder=tmp_path / "run")
    with pytest.raises(CheckpointError, match=r"is at step 100, the agent at 0: .*cdqn\.load"):
        agent_of(steps=200).learn(100, run_folder=tmp_path / "run")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(CheckpointError, match="exists already"):
        agent.learn(100, run_folder=tmp_path / "mine")
    assert agent.steps == 100


def test_interrupted_learning_leaves_a_checkpoint_and_says_so(tmp_path):
    def interrupt(event, agent):
        if event.step > 60:
            os.kill(os.getpid(), signal.SIGINT)

    agent_of(steps=200).learn(200, run_folder=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt, match="with a checkpoint in"):
        agent_of(steps=200).learn(200, interrupt, run_folder=tmp_path / "run")
    assert 60 < newest_step(tmp_path / "run") < 200
    cdqn.resume_run(tmp_path / "run")
    assert_same_end(tmp_path / "run", tmp_path / "whole")


def test_callback_that_stops_leaves_a_run_to_resume(tmp_path):
    agent = agent_of(steps=200).learn(200, lambda event, agent: event.step < 100, run_folder=tmp_path / "run")
    assert newest_step(tmp_path / "run") == agent.steps < 200
    assert cdqn.resume_run(tmp_path / "run").finished


def test_evaluations_are_played_in_the_environment_that_was_given_and_it_stays_open(tmp_path):
    env = Closable()
    training = SyncVectorEnv([WalkEnv] * 2, autoreset_mode=AutoresetMode.DISABLED)
    agent = agent_of(training, evaluation_period_steps=50)
    agent.learn(100, evaluation_env=env)
    assert env.resets >= 2
    assert not env.closed
    before = env.resets
    agent.learn(100, evaluation_env=env, run_folder=tmp_path / "run", schedules="continue")
    assert env.resets >= before + 2, "at 150, and at the end"
    assert [row["step"] for row in agent.history if row["kind"] == "evaluation"] == [50, 100, 150, 200]


def test_copy_for_evaluations_is_closed():
    copies = []

    class Copied(Closable):
        def __deepcopy__(self, memo):
            copies.append(Copied())
            return copies[-1]

    agent_of(Copied()).evaluate(1)
    assert [copy.closed for copy in copies] == [True]


def test_environment_of_the_training_is_not_closed_either():
    env = Closable()
    agent_of(env).learn(60)
    agent_of(WalkEnv()).evaluate(1, env=env)
    assert not env.closed


def test_evaluation_environment_that_cannot_do_is_refused_before_the_first_step():
    env = WalkEnv()
    agent = agent_of(env, evaluation_period_steps=50)
    with pytest.raises(ConfigError, match="is the one that is trained on"):
        agent.learn(100, evaluation_env=env)
    with pytest.raises(ConfigError, match="the evaluation environment has"):
        agent.learn(100, evaluation_env=ChoiceEnv(5))
    with pytest.raises(ConfigError, match="nothing is evaluated: set evaluation_period_steps"):
        agent_of(env).learn(100, evaluation_env=WalkEnv())
    assert agent.steps == 0


def test_environment_that_cannot_be_copied_is_told_before_the_first_step():
    class Uncopied(WalkEnv):
        def __deepcopy__(self, memo):
            raise TypeError("not me")

    agent = agent_of(Uncopied(), evaluation_period_steps=50)
    with pytest.raises(ConfigError, match=r"cannot be copied \(not me\): .*learn\(evaluation_env=\.\.\.\)"):
        agent.learn(100)
    assert agent.steps == 0
    agent.learn(100, evaluation_env=WalkEnv())


def test_number_of_environments_is_what_there_is():
    vector = gym.make_vec("CartPole-v1", num_envs=3)
    for env, count in (("CartPole-v1", 4), (WalkEnv(), 1), (vector, 3)):
        agent = agent_of(env)
        assert agent.config.num_envs == agent.trainer.collector.env.num_envs == count
    assert agent_of(vector, num_envs=3).config.num_envs == 3
    for env, count in ((WalkEnv(), 1), (vector, 3)):
        with pytest.raises(
            ConfigError, match=f"num_envs is 8, and the environment that was given is {count} in number"
        ):
            agent_of(env, num_envs=8)


def test_older_folder_with_another_number_of_environments_is_loaded_and_saved_again(tmp_path):
    """Once an Env was recorded as the setting's default of four."""
    run = agent_of(WalkEnv()).learn(60).save(tmp_path / "run")
    text = (run / "config.json").read_text()
    (run / "config.json").write_text(text.replace('"num_envs": 1', '"num_envs": 4'))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent = cdqn.load(run, env=WalkEnv())
        assert agent.config.num_envs == 1
        by_name = cdqn.load(run, env="helpers:WalkEnv")
        agent.learn(60, schedules="continue").save(run)
    assert by_name.trainer.collector.env.num_envs == 1
