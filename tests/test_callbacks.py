"""Callbacks: the same objects in `learn`, in `train_run` and in the command."""

import gymnasium as gym
import numpy as np
import pytest

import cdqn
from cdqn.callbacks import Every, KeepBest, StopAtReturn, StopWhenDiverging, announce
from cdqn.errors import ConfigError
from cdqn.training.events import Episode, Evaluated, EvaluationResult, Progress, Warned
from helpers import progress

SMALL = {"hidden": (8,), "warmup_steps": 50, "batch_size": 8, "log_period_steps": 50, "compile": "off", "seed": 3}


def agent_with(**settings):
    return cdqn.CDQN("CartPole-v1", steps=400, **(SMALL | settings))


def scripted(monkeypatch, *means):
    """Evaluations with these mean returns, one after the other."""
    results = iter(means)
    monkeypatch.setattr(
        cdqn.Agent, "evaluate", lambda self, episodes, **_: EvaluationResult(np.full(2, next(results)), np.ones(2), 0.0)
    )


def test_callback_sees_the_events_and_the_agent():
    seen = []
    agent = agent_with(evaluation_period_steps=100, evaluation_episodes=1)
    agent.learn(200, callbacks=[lambda event, of: seen.append((type(event), event.step, of))])
    assert {kind for kind, _, _ in seen} == {Episode, Progress, Evaluated}
    assert all(of is agent for _, _, of in seen)
    steps = [step for _, step, _ in seen]
    assert steps == sorted(steps)


def test_evaluation_period_acts_in_python_as_in_the_command(tmp_path):
    settings = {"evaluation_period_steps": 100, "evaluation_episodes": 2}
    learned = agent_with(**settings).learn(400)
    trained = agent_with(**settings)
    cdqn.train_run(trained, tmp_path / "run")
    rows = [row for row in learned.history if row["kind"] == "evaluation"]
    saved = [row for row in cdqn.load(tmp_path / "run").history if row["kind"] == "evaluation"]
    assert [row["step"] for row in rows] == [100, 200, 300, 400]
    assert rows == saved


@pytest.mark.parametrize("name", ["checkpoint_period_steps", "candidate_period_steps"])
def test_settings_of_run_folders_are_refused_where_there_is_none(name, tmp_path):
    agent = agent_with(**{name: 100})
    with pytest.raises(ConfigError, match=rf"{name} acts on a run folder: learn\(100, run_folder="):
        agent.learn(100)
    assert agent.learn(100, run_folder=tmp_path / "run").steps == 100


def test_evaluations_of_a_vector_environment_are_refused_before_the_first_step():
    env = gym.make_vec("CartPole-v1", num_envs=2)
    agent = cdqn.CDQN(env, **SMALL, evaluation_period_steps=100)
    with pytest.raises(ConfigError, match=r"VectorEnv, of which cdqn cannot make another: .*evaluation_env"):
        agent.learn(200)
    assert agent.steps == 0
    agent.learn(200, evaluation_env="CartPole-v1")
    assert [row["step"] // 100 for row in agent.history if row["kind"] == "evaluation"] == [1, 2]


def test_what_a_callback_returns_is_an_event_that_all_see_before_the_next_is_called():
    calls = []

    def first(event, agent):
        calls.append(("first", type(event).__name__))
        return Warned(event.step, "hm", "slow") if isinstance(event, Progress) else None

    announce(progress(), None, [first, lambda event, agent: calls.append(("second", type(event).__name__))])
    assert calls == [("first", "Progress"), ("first", "Warned"), ("second", "Warned"), ("second", "Progress")]


@pytest.mark.parametrize("answer", [0, "stop", np.float64(0), []])
def test_callback_that_returns_something_else_is_refused(answer):
    with pytest.raises(ConfigError, match=r"returned .*: a callback returns None or True, False to end"):
        announce(progress(), None, [lambda event, agent: answer])


@pytest.mark.parametrize(("no", "yes"), [(False, True), (np.False_, np.True_)])
def test_callback_ends_the_training_by_returning_false(no, yes):
    calls = []
    agent = agent_with().learn(200, callbacks=lambda event, agent: calls.append(1) or (no if event.step > 99 else yes))
    assert 99 < agent.steps < 200
    assert len(calls) == len(agent.history) > 1, "a callback that has said yes must be called again"


def test_period_that_would_pass_between_two_lines_is_refused_in_python_too():
    with pytest.raises(ConfigError, match="evaluation_period_steps is 20, below log_period_steps 50"):
        agent_with(evaluation_period_steps=20).learn(100)


def test_callback_that_fails_is_not_silenced():
    def fail(event, agent):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        agent_with().learn(100, callbacks=fail)


def test_stop_at_a_return_of_an_evaluation(monkeypatch):
    scripted(monkeypatch, 10.0, 99.9, 100.0, 500.0)
    agent = agent_with(evaluation_period_steps=100).learn(400, callbacks=StopAtReturn(100))
    assert agent.steps == 300


def test_stop_at_a_training_return():
    agent = agent_with().learn(400, callbacks=StopAtReturn(5, training=True))
    assert agent.steps == 52, "the first row with finished episodes"
    assert agent_with().learn(400, callbacks=StopAtReturn(1e9, training=True)).steps == 400


@pytest.mark.parametrize("callback", [StopAtReturn(100), KeepBest("never written")])
def test_callbacks_that_need_evaluations_say_so(callback):
    with pytest.raises(ConfigError, match="set evaluation_period_steps"):
        agent_with().learn(100, callbacks=callback)


def test_stop_when_diverging_and_at_no_other_warning():
    agent = agent_with()
    stops = []
    agent.stop = lambda: stops.append(agent.steps)
    for topic in ("slow", "misjudged", "hasty", "idle"):
        StopWhenDiverging()(Warned(1, "…", topic), agent)
    assert stops == []
    StopWhenDiverging()(Warned(1, "…", "diverging"), agent)
    assert stops == [0]


def test_stop_when_diverging_ends_a_run_that_diverges():
    agent = agent_with()
    agent.trainer.learner.theta.mul_(50)
    agent.trainer.learner.target.mul_(50)
    with pytest.warns(UserWarning, match="diverging"):
        agent.learn(400, callbacks=StopWhenDiverging())
    assert agent.steps < 400


def test_best_agent_is_kept(monkeypatch, tmp_path):
    scripted(monkeypatch, 10.0, 30.0, 20.0, 30.0)
    keep = KeepBest(tmp_path / "best")
    agent_with(evaluation_period_steps=100).learn(400, callbacks=keep)
    assert keep.best == 30.0
    assert cdqn.load(tmp_path / "best").steps == 200, "of equals the first"


def test_same_callbacks_in_learn_and_in_a_run(monkeypatch, tmp_path):
    ways = (lambda agent, own: agent.learn(400, own), lambda agent, own: cdqn.train_run(agent, tmp_path / "run", own))
    for train in ways:
        scripted(monkeypatch, 10.0, 100.0, 100.0)
        agent = agent_with(evaluation_period_steps=100)
        train(agent, [StopAtReturn(100)])
        assert agent.steps == 200


def test_every_counts_periods_by_the_line_of_the_log():
    agent = agent_with(log_period_steps=100)
    due = Every(150, agent)
    assert [step for step in (100, 200, 300, 400, 500, 600) if due(step)] == [200, 300, 500, 600]
    assert not any(Every(None, agent)(step) for step in (100, 200))
    late = Every(150, agent)
    assert [step for step in (103, 203, 301, 452) if late(step)] == [203, 301]
