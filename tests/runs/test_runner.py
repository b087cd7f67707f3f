"""A run folder while it is trained: locked from its first byte, saved before it is evaluated, stopped when asked."""

import pytest

from cdqn.agent import Agent
from cdqn.config import Config
from cdqn.errors import CheckpointError, ConfigError, UnsupportedEnvironmentError
from cdqn.runs.folders import new_folder
from cdqn.runs.runner import is_complete, require_learning, resume_run, train_run
from cdqn.runs.stopping import Stop
from cdqn.storage.checkpoint import load_checkpoint_values, newest_step
from cdqn.training.events import EvaluationResult
from cdqn.training.exploration import EpsilonGreedy
from cdqn.training.run_config import write_run_config
from run_files import assert_same_end, without_clock

SETTINGS = {"hidden": (8,), "warmup_steps": 100, "update_period_steps": 4, "log_period_steps": 100, "compile": "off"}


def agent_of(**settings) -> Agent:
    values = {"steps": 400, "checkpoint_period_steps": 200, "evaluation_episodes": 2, **SETTINGS, **settings}
    return Agent.from_config("CartPole-v1", Config(**values))


def test_run_killed_before_its_first_checkpoint_begins_at_step_0(tmp_path):
    train_run(agent_of(), tmp_path / "whole")
    write_run_config(tmp_path / "run", agent_of())
    assert resume_run(tmp_path / "run").finished
    assert_same_end(tmp_path / "run", tmp_path / "whole")


def test_run_that_lost_its_checkpoint_is_not_begun_anew(tmp_path):
    write_run_config(tmp_path / "run", agent_of())
    (tmp_path / "run" / "metrics.jsonl").write_text("{}\n")
    with pytest.raises(CheckpointError, match="no checkpoint"):
        resume_run(tmp_path / "run")
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == "{}\n"


def test_training_is_saved_before_the_final_evaluation_and_resume_evaluates(tmp_path, monkeypatch):
    train_run(agent_of(), tmp_path / "whole")

    def fail(self, episodes, **_):
        raise UnsupportedEnvironmentError("the game has crashed")

    with monkeypatch.context() as patch:
        patch.setattr(Agent, "evaluate", fail)
        with pytest.raises(UnsupportedEnvironmentError):
            train_run(agent_of(), tmp_path / "run")
    assert newest_step(tmp_path / "run") == 400
    assert not is_complete(tmp_path / "run")
    outcome = resume_run(tmp_path / "run")
    assert outcome.finished
    assert isinstance(outcome.evaluation, EvaluationResult)
    assert is_complete(tmp_path / "run")
    assert_same_end(tmp_path / "run", tmp_path / "whole")
    with pytest.raises(CheckpointError, match="complete"):
        resume_run(tmp_path / "run")


@pytest.mark.parametrize("period", [None, 200], ids=["final", "periodic"])
def test_evaluation_is_stopped_between_two_steps_and_done_at_resume(period, tmp_path, monkeypatch):
    settings = {"evaluation_period_steps": period}
    train_run(agent_of(**settings), tmp_path / "whole")
    stop = Stop()
    agent = agent_of(**settings)
    evaluated = []
    greedy = EpsilonGreedy.act

    def stop_while_evaluating(self, policy, observation, epsilon, rng):
        if rng is not agent.trainer._rng:
            evaluated.append(agent.steps)
            stop.request()
        return greedy(self, policy, observation, epsilon, rng)

    monkeypatch.setattr(EpsilonGreedy, "act", stop_while_evaluating)
    outcome = train_run(agent, tmp_path / "run", stop=stop)
    assert evaluated == [period or 400], "the evaluation went on after the wish to stop"
    assert not outcome.finished
    assert load_checkpoint_values(tmp_path / "run")["evaluation_pending"]
    monkeypatch.undo()
    assert resume_run(tmp_path / "run").finished
    assert without_clock(tmp_path / "run") == without_clock(tmp_path / "whole")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"steps": 500}, ["steps is 500", "below warmup_steps 1000", "--warmup-steps"]),
        ({"steps": 1000}, ["steps is 1000", "as many as warmup_steps 1000"]),
        ({"warmup_steps": 60_000}, ["warmup_steps 60000"]),
        ({"update_period_steps": 49_001}, ["update_period_steps is 49001", "first update"]),
        ({"n_step": 50_000}, ["n_step is 50000"]),
        ({"checkpoint_period_steps": 999}, ["checkpoint_period_steps is 999", "log_period_steps 1000"]),
        ({"evaluation_period_steps": 10}, ["evaluation_period_steps is 10"]),
        ({"candidate_period_steps": 10}, ["candidate_period_steps is 10"]),
    ],
)
def test_run_that_would_learn_nothing_or_not_save_as_asked_is_refused(settings, words):
    with pytest.raises(ConfigError) as caught:
        require_learning(Config(**settings))
    for word in words:
        assert word in str(caught.value)


def test_smallest_run_that_learns_is_not_refused():
    require_learning(Config(steps=1001, n_step=1000, checkpoint_period_steps=1000))
    require_learning(Config(update_period_steps=49_000))


def test_folder_is_locked_before_the_first_byte(tmp_path):
    with new_folder(tmp_path / "run"):
        with pytest.raises(CheckpointError, match="another process"):
            train_run(agent_of(seed=1), tmp_path / "run")
        assert [path.name for path in (tmp_path / "run").iterdir()] == [".lock"]


def test_folder_in_which_nothing_was_begun_is_a_new_one(tmp_path):
    (tmp_path / "run").mkdir()
    for name in (".lock", ".config.json.writing"):
        (tmp_path / "run" / name).touch()
    assert train_run(agent_of(), tmp_path / "run").finished
