"""Agents and runs: resuming is bit for bit, evaluation is a guest, and mistakes are answered in plain words."""

import copy
import json

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cdqn
from cdqn.agent import AGENTS, Agent
from cdqn.config import Config
from cdqn.errors import CheckpointError, ConfigError
from cdqn.runs.runner import resume_run, train_run
from cdqn.training.events import Episode, EvaluationResult
from helpers import ChoiceEnv, CountingEnv, ForgetfulEnv, SavedVectorEnv, WalkEnv, assert_same_state, largest_file

TINY = {
    "steps": 600,
    "hidden": (8,),
    "batch_size": 8,
    "warmup_steps": 60,
    "memory_size": 100,
    "log_period_steps": 50,
    "update_period_steps": 4,
    "evaluation_episodes": 2,
    "compile": "off",
}
TARGET = {"target_period_updates": 7}


def walking(count=4, env=WalkEnv, mode=AutoresetMode.DISABLED):
    return SyncVectorEnv([env] * count, autoreset_mode=mode)


def agent_of(algorithm="cdqn", env=None, **settings):
    if algorithm != "rg":
        settings = TARGET | settings
    return AGENTS[algorithm](walking() if env is None else env, **(TINY | settings))


def without_clock(rows):
    return [{name: value for name, value in row.items() if name != "steps_per_second"} for row in rows]


def arrays_only(state):
    """The state with tensors as arrays, as a checkpoint gives them back."""
    if isinstance(state, dict):
        return {name: arrays_only(value) for name, value in state.items()}
    return state.numpy() if isinstance(state, torch.Tensor) else state


def assert_same_agent(one, other):
    assert_same_state(arrays_only(one.trainer.state_dict()), arrays_only(other.trainer.state_dict()))
    assert without_clock(one.history) == without_clock(other.history)


MEMORIES = {
    "prioritized fifo": {},
    "prioritized random": {"eviction": "random"},
    "prioritized half discarded": {"discard_fraction": 0.5, "warmup_steps": 80},
    "original scheme": {"priority_scheme": "original", "priority_epsilon": 1e-4},
    "uniform fifo": {"replay": "uniform"},
    "uniform random half discarded": {"replay": "uniform", "eviction": "random", "discard_fraction": 0.5},
}


@pytest.mark.parametrize("algorithm", ["cdqn", "dqn", "rg", "dcdqn"])
@pytest.mark.parametrize("memory", MEMORIES.values(), ids=MEMORIES)
def test_resumed_run_is_the_uninterrupted_one_bit_for_bit(tmp_path, algorithm, memory):
    straight = agent_of(algorithm, **memory).learn(320)
    first = agent_of(algorithm, **memory).learn(172)
    first.save(tmp_path / "run")
    resumed = cdqn.load(tmp_path / "run", env=walking()).learn(148)
    assert resumed.steps == straight.steps == 320
    assert resumed.trainer.learner.updates >= 60
    assert_same_agent(resumed, straight)
    assert {row["kind"] for row in straight.history} >= {"episode", "progress"}


@pytest.mark.parametrize("steps", [4, 56, 60, 64])
def test_run_resumed_around_the_end_of_the_warmup_is_the_uninterrupted_one(tmp_path, steps):
    agent_of().learn(steps).save(tmp_path / "run")
    resumed = cdqn.load(tmp_path / "run", env=walking()).learn(200 - steps)
    assert_same_agent(resumed, agent_of().learn(200))


@pytest.mark.parametrize("value_transform", [True, False])
def test_run_resumed_three_times_is_the_uninterrupted_one(tmp_path, value_transform):
    agent = agent_of(value_transform=value_transform, loss="mse")
    for _ in range(3):
        agent.learn(60).save(tmp_path / "run")
        agent = cdqn.load(tmp_path / "run", env=walking())
    assert_same_agent(agent.learn(60), agent_of(value_transform=value_transform, loss="mse").learn(240))


def test_run_on_a_named_environment_is_resumed_without_passing_it(tmp_path):
    settings = TINY | {"num_envs": 2, "steps": 300}
    cdqn.CDQN("CartPole-v1", **settings).learn(152).save(tmp_path / "run")
    resumed = cdqn.load(tmp_path / "run")
    assert isinstance(resumed, cdqn.CDQN)
    assert_same_agent(resumed.learn(148), cdqn.CDQN("CartPole-v1", **settings).learn(300))


def test_run_on_a_native_vector_environment_with_state_is_resumed_bit_for_bit(tmp_path):
    agent_of(env=SavedVectorEnv()).learn(201).save(tmp_path / "run")
    resumed = cdqn.load(tmp_path / "run", env=SavedVectorEnv())
    straight = agent_of(env=SavedVectorEnv()).learn(201)
    assert resumed.steps == straight.steps
    assert_same_agent(resumed.learn(150), straight.learn(150))


@pytest.mark.slow
def test_compiled_run_is_resumed_bit_for_bit(tmp_path):
    agent_of(compile="on").learn(200).save(tmp_path / "run")
    resumed = cdqn.load(tmp_path / "run", env=walking()).learn(100)
    assert resumed.trainer.learner.backend == "compiled"
    assert_same_agent(resumed, agent_of(compile="on").learn(300))


def test_saving_does_not_disturb_training(tmp_path):
    agent = agent_of().learn(200)
    agent.save(tmp_path / "run")
    assert_same_agent(agent.learn(200), agent_of().learn(400))


def test_evaluation_does_not_disturb_training():
    agent = agent_of(env=WalkEnv()).learn(200)
    agent.evaluate(5, epsilon=0.3)
    agent.evaluate(3)
    assert_same_agent(agent.learn(200), agent_of(env=WalkEnv()).learn(400))


def test_agent_is_loaded_with_its_configuration_and_kind(tmp_path):
    agent = agent_of("rg", gamma=0.9)
    agent.save(tmp_path / "run")
    loaded = cdqn.load(tmp_path / "run", env=walking())
    assert type(loaded) is cdqn.ResidualGradient
    assert loaded.config == agent.config


def test_agent_saved_before_it_has_learned_learns_as_a_new_one(tmp_path):
    agent_of().save(tmp_path / "run")
    assert_same_agent(cdqn.load(tmp_path / "run", env=walking()).learn(200), agent_of().learn(200))


@pytest.mark.parametrize("settings", [{}, {"hidden": [8]}], ids=["tuple", "list"])
def test_agent_saves_again_in_its_own_folder(tmp_path, settings):
    agent = agent_of(**settings).learn(100)
    agent.save(tmp_path / "run")
    agent.learn(100).save(tmp_path / "run")
    assert cdqn.load(tmp_path / "run", env=walking()).steps == 200


def test_agent_does_not_save_over_another_run(tmp_path):
    agent_of().save(tmp_path / "run")
    with pytest.raises(CheckpointError, match="holds another run"):
        agent_of(gamma=0.5).save(tmp_path / "run")


def test_agent_does_not_save_over_a_run_on_another_environment(tmp_path):
    cdqn.CDQN("CartPole-v1", **TINY).save(tmp_path / "run")
    with pytest.raises(CheckpointError, match="holds another run"):
        cdqn.CDQN("Acrobot-v1", **TINY).save(tmp_path / "run")


def test_agent_does_not_save_among_somebody_elses_files(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(CheckpointError):
        agent_of().save(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_saving_to_a_file_is_an_error_in_plain_words(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="file"):
        agent_of().save(tmp_path / "file")


def test_history_of_a_loaded_agent_ends_at_its_checkpoint(tmp_path):
    """Rows written after the checkpoint belong to steps that will be made again."""
    agent_of().learn(100).save(tmp_path / "run")
    expected = cdqn.load(tmp_path / "run", env=walking()).history
    with open(tmp_path / "run" / "metrics.jsonl", "a") as file:
        file.write('{"kind": "progress", "step": 150}\n{"kind": "pro')
    assert cdqn.load(tmp_path / "run", env=walking()).history == expected


def test_save_that_fails_leaves_the_one_before_intact(tmp_path):
    """A disk that fills up while the metrics are written must not take the old metrics with it."""
    agent = agent_of(log_period_steps=4).learn(300)
    agent.save(tmp_path / "run")
    size = (tmp_path / "run" / "metrics.jsonl").stat().st_size
    later = cdqn.load(tmp_path / "run", env=walking()).learn(200)
    with largest_file(size // 2), pytest.raises(CheckpointError, match="cannot write"):
        later.save(tmp_path / "run")
    assert_same_agent(cdqn.load(tmp_path / "run", env=walking()), agent)


def test_foreign_folder_is_refused_by_name(tmp_path):
    with pytest.raises(CheckpointError, match="nothing"):
        cdqn.load(tmp_path / "nothing")
    (tmp_path / "config.json").write_text('{"compilerOptions": {}}')
    with pytest.raises(CheckpointError, match=r"config\.json"):
        cdqn.load(tmp_path)


@pytest.mark.parametrize("content", ["[]", "{", '{"config": 3}', '{"config": {"env_id": "CartPole-v1", "x": 1}}', ""])
def test_damaged_configuration_is_refused_by_name(tmp_path, content):
    agent_of().save(tmp_path / "run")
    (tmp_path / "run" / "config.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        cdqn.load(tmp_path / "run", env=walking())


def test_run_on_an_environment_object_asks_for_it(tmp_path):
    agent_of(env=WalkEnv()).save(tmp_path / "run")
    with pytest.raises(CheckpointError, match=r"env=\.\.\."):
        cdqn.load(tmp_path / "run")


@pytest.mark.parametrize(
    "other", [ChoiceEnv, lambda: CountingEnv(actions=4), lambda: gym.make("CartPole-v1")], ids=["3", "3×4", "4"]
)
def test_checkpoint_of_another_environment_is_refused(tmp_path, other):
    agent_of(env=WalkEnv()).learn(100).save(tmp_path / "run")
    with pytest.raises(CheckpointError):
        cdqn.load(tmp_path / "run", env=other())


@pytest.mark.parametrize(("saved", "given"), [(4, 3), (3, 4), (1, 2), (2, 1)])
def test_checkpoint_with_another_number_of_environments_is_refused_in_plain_words(tmp_path, saved, given):
    agent_of(env=walking(saved)).learn(100).save(tmp_path / "run")
    with pytest.raises(CheckpointError, match=f"of {saved} environments, and there are {given}"):
        cdqn.load(tmp_path / "run", env=walking(given))


def test_evaluation_plays_that_many_whole_episodes():
    agent = agent_of(env=CountingEnv(0, (3, 4, 5)))
    result = agent.evaluate(7)
    assert isinstance(result, EvaluationResult)
    assert result.lengths.tolist() == [4, 5, 3, 4, 5, 3, 4]  # a copy of one that has begun its first
    assert result.returns.tolist() == [10.0, 15.0, 6.0, 10.0, 15.0, 6.0, 10.0]
    assert result.mean == pytest.approx(np.mean(result.returns))
    assert result.stderr == pytest.approx(np.std(result.returns, ddof=1) / np.sqrt(7))


def test_evaluation_does_not_favour_short_episodes():
    """Each environment plays its share; the first to finish would be the short ones."""
    makers = [lambda length=length: CountingEnv(0, (length,)) for length in (2, 50)]
    env = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.DISABLED)
    result = agent_of(env=CountingEnv(0, (2,))).evaluate(6, env=env)
    assert sorted(result.lengths.tolist()) == [2, 2, 2, 50, 50, 50]


def test_two_evaluations_see_the_same_episodes_and_another_seed_others():
    agent = agent_of(env=WalkEnv())
    one, same, other = agent.evaluate(5), agent.evaluate(5), agent.evaluate(5, seed=99)
    assert one.lengths.tolist() == same.lengths.tolist()
    assert one.lengths.tolist() != other.lengths.tolist()


def test_epsilon_1_evaluates_the_random_policy():
    agent = agent_of(env=ChoiceEnv(length=600))
    assert agent.evaluate(1, epsilon=1.0).mean == pytest.approx(200, abs=50)


def test_standard_error_of_one_episode_is_nan_and_not_printed():
    result = EvaluationResult(np.array([3.0]), np.array([4]), 0.0)
    assert np.isnan(result.stderr)
    assert "±" not in str(result).split("(")[0]


@pytest.mark.parametrize("wrong", [{"episodes": 0}, {"epsilon": 1.5}, {"epsilon": float("nan")}])
def test_evaluation_refuses_what_cannot_be(wrong):
    with pytest.raises(ConfigError, match="evaluate"):
        agent_of(env=WalkEnv()).evaluate(**wrong)


def test_evaluation_on_another_kind_of_environment_is_refused():
    with pytest.raises(ConfigError, match="evaluation environment"):
        agent_of(env=WalkEnv()).evaluate(env=ChoiceEnv(5))


def test_evaluation_of_an_agent_on_a_vector_environment_asks_for_one():
    with pytest.raises(ConfigError, match=r"evaluate\(env=\.\.\.\)"):
        agent_of(env=walking()).evaluate()


def test_predict_is_the_greedy_action_of_one_or_many_counted_from_the_spaces_start():
    agent = agent_of(env=CountingEnv(first_action=5))
    observations = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    best = agent.trainer.learner.networks["q"](torch.from_numpy(observations)).argmax(1).numpy() + 5
    assert agent.predict(observations).tolist() == best.tolist()
    single = agent.predict(observations[2])
    assert (type(single), single) == (int, best[2])
    assert agent.predict(observations[2].tolist()) == best[2]


@pytest.mark.parametrize("shape", [(4,), (2, 4), (), (0, 3), (2, 2, 3)])
def test_predict_refuses_other_shapes_by_name(shape):
    with pytest.raises(ConfigError) as caught:
        agent_of(env=CountingEnv()).predict(np.zeros(shape))
    assert str(shape) in str(caught.value)


@pytest.mark.parametrize("steps", [0, -5])
def test_learning_for_no_steps_is_refused(steps):
    with pytest.raises(ConfigError, match="learn"):
        agent_of().learn(steps)


def test_callback_sees_every_event_of_the_history():
    events = []
    agent = agent_of().learn(200, callbacks=lambda event, agent: events.append(event))
    assert len(events) == len(agent.history) > 5


def test_budget_is_steps_where_given_and_else_the_first_learn():
    given = agent_of().learn(100)
    assert given.trainer.budget_steps == 600
    settings = {name: value for name, value in TINY.items() if name != "steps"}
    free = cdqn.CDQN(walking(), **settings).learn(100)
    assert free.trainer.budget_steps == 100
    assert free.learn(100).trainer.budget_steps == 100


def run_agent(**settings):
    config = Config(**(TINY | TARGET | {"checkpoint_period_steps": 100} | settings))
    return Agent.from_config(walking(env=WalkEnv), config)


def rows_of(run):
    return without_clock([json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()])


class CutError(Exception):
    """Stands for a crash."""


@pytest.mark.parametrize("crash_at", [30, 340, 599])
def test_crashed_run_resumes_to_the_same_metrics_and_weights(tmp_path, crash_at, monkeypatch):
    """Nothing is evaluated here: an agent on a VectorEnv object cannot make another of it."""
    monkeypatch.setattr(Agent, "evaluate", lambda self, episodes, **_: EvaluationResult(np.zeros(2), np.ones(2), 0.0))
    straight = run_agent()
    train_run(straight, tmp_path / "straight")

    def crash(event, agent):
        if event.step >= crash_at:
            raise CutError

    with pytest.raises(CutError):
        train_run(run_agent(), tmp_path / "crashed", [crash])
    agents = []
    outcome = resume_run(tmp_path / "crashed", env=walking(), callbacks=lambda a, until: agents.append(a) or ())
    assert outcome.finished
    assert rows_of(tmp_path / "crashed") == rows_of(tmp_path / "straight")
    assert_same_state(arrays_only(agents[0].trainer.state_dict()), arrays_only(straight.trainer.state_dict()))


def test_stopped_run_evaluates_at_the_same_steps_after_resuming(tmp_path, monkeypatch):
    """A stop between two rows of progress: the evaluation that was due at the next row must still come."""
    monkeypatch.setattr(Agent, "evaluate", lambda self, episodes, **_: EvaluationResult(np.zeros(2), np.ones(2), 0.0))
    settings = {"log_period_steps": 100, "evaluation_period_steps": 150, "checkpoint_period_steps": 1000}
    train_run(run_agent(**settings), tmp_path / "straight")

    def stop(event, agent):
        if isinstance(event, Episode) and event.step > 150:
            agent.stop()

    outcome = train_run(run_agent(**settings), tmp_path / "stopped", [stop])
    assert not outcome.finished
    assert 150 < outcome.steps < 200
    resume_run(tmp_path / "stopped", env=walking())
    steps_of = [
        [row["step"] for row in rows_of(tmp_path / name) if row["kind"] == "evaluation"]
        for name in ("straight", "stopped")
    ]
    assert steps_of[0] == steps_of[1]


def test_resumption_that_gives_up_open_episodes_is_told_to_the_callbacks(tmp_path, monkeypatch):
    monkeypatch.setattr(Agent, "evaluate", lambda self, episodes, **_: EvaluationResult(np.zeros(2), np.ones(2), 0.0))

    def crash(event, agent):
        if event.step >= 300:
            raise CutError

    with pytest.raises(CutError):
        train_run(run_agent(), tmp_path / "run", [crash])
    rows = []
    env = walking(env=ForgetfulEnv)
    resume_run(tmp_path / "run", env=env, callbacks=[lambda event, agent: rows.append(event.row())])
    assert rows[0]["kind"] == "warning"
    assert "does not repeat" in rows[0]["message"]


def test_run_folder_is_not_overwritten(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(CheckpointError, match="exists already"):
        train_run(run_agent(), tmp_path / "run")


def test_complete_run_is_not_resumed_without_more_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(Agent, "evaluate", lambda self, episodes, **_: EvaluationResult(np.zeros(2), np.ones(2), 0.0))
    train_run(run_agent(steps=200), tmp_path / "run")
    with pytest.raises(CheckpointError, match="is complete"):
        resume_run(tmp_path / "run", env=walking())
    assert resume_run(tmp_path / "run", steps=300, env=walking()).steps == 300


def test_state_of_a_trainer_does_not_change_while_it_goes_on():
    """A state kept in memory is of the moment it was taken, as that of the replay memory is."""
    agent = agent_of().learn(100)
    state = agent.trainer.state_dict()
    frozen = copy.deepcopy(state)
    agent.learn(100)
    assert_same_state(state, frozen)


def test_divergence_is_a_python_warning_that_names_step_and_remedy():
    settings = {"hidden": (8,), "warmup_steps": 60, "batch_size": 8, "log_period_steps": 20, "compile": "off"}
    agent = cdqn.DQN(WalkEnv(), seed=0, **settings).learn(100)
    agent.trainer.learner.theta.mul_(20)  # Q far beyond r_max/(1−γ)
    agent.trainer.learner.target.mul_(20)
    with pytest.warns(UserWarning, match=r"step 1\d\d: training is diverging: .* algorithm cdqn"):
        agent.learn(60)


@pytest.mark.parametrize(("agent_class", "settings"), [(Agent, {}), (cdqn.CDQN, {"algorithm": "dqn"})])
def test_algorithm_is_chosen_by_the_class_and_by_nothing_else(agent_class, settings):
    with pytest.raises(ConfigError, match=r"cdqn\.CDQN, cdqn\.DCDQN, cdqn\.DQN, cdqn\.ResidualGradient"):
        agent_class("CartPole-v1", **settings)


def test_returns_longer_than_every_episode_are_warned_of_because_nothing_is_stored():
    settings = {"hidden": (8,), "warmup_steps": 40, "batch_size": 8, "log_period_steps": 20, "compile": "off"}
    agent = cdqn.CDQN(CountingEnv(lengths=(3,)), n_step=4, **settings)
    with pytest.warns(UserWarning, match=r"nothing has been learned by step 80: .* n_step 4"):
        agent.learn(100)
    assert len(agent.trainer.replay) == 0
