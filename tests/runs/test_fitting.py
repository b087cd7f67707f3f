"""`Agent.fit`: fixed data in, an agent out, which predicts, evaluates, saves, loads, exports and learns on."""

import math

import gymnasium as gym
import numpy as np
import pytest

import cdqn
from cdqn.errors import CheckpointError, ConfigError, UnsupportedEnvironmentError
from cdqn.runs.fitting import IDLE, prepare
from cdqn.runs.runner import resume_run, train_run
from helpers import ChoiceEnv, WalkEnv
from offline_data import NAMES, SMALL, record, shuffled, walk
from run_files import assert_same_end


@pytest.mark.filterwarnings("ignore:no row of the data is a termination")
def test_agent_learns_from_data_what_to_choose():
    data = record(ChoiceEnv(), 400)
    for kind in (cdqn.CDQN, cdqn.DQN):
        settings = SMALL | {"batch_size": 32, "hidden": (16,), "n_step": 1, "gamma": 0.5, "learning_rate": 1e-2}
        agent = kind.fit(data, ChoiceEnv(), updates=200, **settings)
        assert agent.evaluate(3).mean == 20
        assert agent.predict(np.eye(3, dtype=np.float32)).tolist() == [0, 1, 2]


def test_agent_is_saved_loaded_exported_and_goes_on(tmp_path):
    agent = cdqn.CDQN.fit(walk(), updates=30, **SMALL)
    assert isinstance(agent, cdqn.CDQN)
    agent.save(tmp_path / "run")
    loaded = cdqn.load(tmp_path / "run")
    assert (loaded.data, loaded.steps, loaded.config) == (agent.data, 30, agent.config)
    for one in (agent, loaded):
        one.learn(20, schedules="restart")
    np.testing.assert_array_equal(agent.weights, loaded.weights)
    assert agent.export(tmp_path / "policy.pt").exists()
    assert agent.predict(walk()["observations"]).shape == (200,)


@pytest.mark.parametrize("settings", [{}, {"replay": "uniform", "normalize_observations": True}])
def test_run_that_was_stopped_and_resumed_is_the_uninterrupted_one(tmp_path, settings):
    np.savez(tmp_path / "walk.npz", **walk())
    given = SMALL | {"checkpoint_period_steps": 20} | settings
    for name, until in (("whole", None), ("stopped", 45)):
        train_run(prepare(tmp_path / "walk.npz", None, 90, given=given).agent, tmp_path / name, until=until)
    (tmp_path / "walk.npz").unlink()
    outcome = resume_run(tmp_path / "stopped")
    assert (outcome.steps, outcome.finished, outcome.evaluation) == (90, True, None)
    assert_same_end(tmp_path / "whole", tmp_path / "stopped")


def test_run_killed_before_its_data_was_saved_is_not_resumed_without(tmp_path):
    train_run(prepare(walk(), None, 10, given=SMALL).agent, tmp_path / "run")
    for path in sorted((tmp_path / "run" / "checkpoints").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (tmp_path / "run" / "metrics.jsonl").write_text("")
    with pytest.raises(CheckpointError, match="was killed before arrays was saved with it: remove it"):
        resume_run(tmp_path / "run")


def test_epochs_are_passes_over_the_rows():
    given = SMALL | {"n_step": 1}
    assert prepare(walk(), epochs=2.5, given=given).updates == math.ceil(2.5 * 200 / 8)
    assert prepare(walk(), given=given).updates == cdqn.Config().steps


def test_without_environment_nothing_is_evaluated_and_that_is_said(tmp_path):
    with pytest.warns(UserWarning, match="there is no environment, and the policy is not evaluated"):
        agent = cdqn.CDQN.fit(walk(), updates=30, run_folder=tmp_path / "run", **SMALL)
    assert "evaluation" not in {row["kind"] for row in agent.history}
    with pytest.raises(UnsupportedEnvironmentError, match="trained on data alone"):
        agent.evaluate()
    assert len(agent.evaluate(2, env=WalkEnv()).returns) == 2
    with pytest.raises(UnsupportedEnvironmentError, match="trained on data alone"):
        cdqn.CDQN.fit(walk(), updates=30, evaluation_period_steps=20, **SMALL)


def test_with_an_environment_evaluations_are_as_online(tmp_path):
    data = record(gym.make("CartPole-v1"))
    settings = SMALL | {"evaluation_period_steps": 20}
    agent = cdqn.CDQN.fit(data, "CartPole-v1", updates=60, run_folder=tmp_path / "run", **settings)
    assert [row["step"] for row in agent.history if row["kind"] == "evaluation"] == [20, 40, 60]
    assert cdqn.load(tmp_path / "run", best=True).only_plays


@pytest.mark.filterwarnings("ignore:20 of 20 episodes end in a termination")
def test_numbered_states_alone_are_learned_in_a_table():
    columns = dict(zip(NAMES, ([0, 1] * 20, [0, 1] * 20, [0, 1] * 20, [1, 2] * 20, [0, 1] * 20), strict=False))
    settings = {name: value for name, value in SMALL.items() if name != "hidden"}
    agent = cdqn.CDQN.fit(columns, updates=200, gamma=0.5, **settings)
    assert agent.spec.kind == "discrete"
    assert agent.predict(1) == 1


def test_memory_of_a_run_is_data_with_the_settings_of_its_rows(tmp_path):
    settings = SMALL | {"seed": 1}
    online = {"warmup_steps": 40, "update_period_steps": 8}
    run = cdqn.DQN("CartPole-v1", n_step=2, gamma=0.9, **settings, **online).learn(80).save(tmp_path / "run")
    agent = cdqn.CDQN.fit(run, updates=20, **SMALL)
    assert (agent.env_id, agent.config.n_step, agent.config.gamma) == ("CartPole-v1", 2, 0.9)
    assert len(agent.trainer.replay) == len(cdqn.load(run).trainer.replay)
    for name, value in (("n_step", 3), ("gamma", 0.99), ("reward_clip", True)):
        with pytest.raises(ConfigError, match=rf"{name} is {value}, and the rows in the memory of"):
            cdqn.CDQN.fit(run, updates=20, **{name: value}, **SMALL)
    own = cdqn.DQN(WalkEnv(), **settings, **online).learn(80).save(tmp_path / "own")
    with pytest.raises(ConfigError, match="was trained on an environment object: give it"):
        cdqn.CDQN.fit(own, updates=20, **SMALL)
    assert cdqn.CDQN.fit(own, WalkEnv(), updates=20, **SMALL).steps == 20


def test_environment_that_a_run_names_is_imported_only_by_the_users_word(tmp_path):
    settings = SMALL | {"warmup_steps": 40, "update_period_steps": 8}
    run = cdqn.DQN("helpers:WalkEnv", **settings).learn(80).save(tmp_path / "run")
    with pytest.raises(CheckpointError, match="helpers"):
        cdqn.CDQN.fit(run, updates=5, **SMALL)
    assert cdqn.CDQN.fit(run, updates=5, allow_import="helpers", **SMALL).env_id == "helpers:WalkEnv"


def test_rows_out_of_order_are_learned_one_by_one():
    with pytest.warns(UserWarning, match=r"n_step is 1 in place of the preset's: row \d+ ends no episode"):
        agent = cdqn.CDQN.fit(shuffled(walk()), updates=10, **SMALL)
    assert agent.config.n_step == 1
    assert cdqn.CDQN.fit(walk(), updates=10, **SMALL).config.n_step == 3
    with pytest.raises(ConfigError, match="n_step is 3, and the episodes of the data are not known"):
        cdqn.CDQN.fit(shuffled(walk()), updates=10, n_step=3, **SMALL)


def test_ends_that_look_wrong_are_warned_of_before_training():
    endless = walk() | dict.fromkeys(("terminations", "truncations"), np.zeros(200, bool))
    with pytest.warns(UserWarning, match="no row of the data is a termination"):
        cdqn.CDQN.fit(endless, updates=5, n_step=1, **SMALL)


@pytest.mark.parametrize("name", IDLE)
def test_setting_of_play_is_refused(name):
    value = getattr(cdqn.Config(), name)
    with pytest.raises(ConfigError, match=f"{name} does not act on fixed data"):
        cdqn.CDQN.fit(walk(), updates=5, **{name: value})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"updates": np.int64(0)}, "updates is .*at least 1"),
        ({"updates": 5, "epochs": 2}, "updates is 5 and epochs 2: give one"),
        ({"updates": 0}, "updates is 0: .* at least 1"),
        ({"updates": 2.5}, r"updates is 2\.5: .* whole number"),
        ({"epochs": -1}, "epochs is -1: .* above 0"),
        ({"epochs": math.nan}, "epochs is nan"),
        ({"steps": 100}, "give updates or epochs"),
        ({"updates": 5, "num_envs": 2}, "num_envs is of an environment, and there is none"),
        ({"updates": 5, "env_kwargs": {"a": 1}}, "env_kwargs is of an environment"),
        ({"updates": 5, "env": WalkEnv(), "num_envs": 2}, "num_envs is 2, and the environment is given"),
        ({"updates": 5, "env": "Acrobot-v1"}, r"observations has shape \(200, 3\)"),
        ({"updates": 5, "channels": (1, 1, 1)}, "channels is for images"),
        ({"updates": 5, "preset": "minatar"}, "preset 'minatar' is for boards"),
        ({"updates": 5, "algorithm": "dqn"}, "which algorithm"),
    ],
)
def test_wish_that_cannot_be_is_refused(arguments, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        cdqn.CDQN.fit(walk(), run_folder=tmp_path / "run", **arguments)
    assert not (tmp_path / "run").exists(), "nothing was trained"


def test_any_algorithm_is_fitted_by_its_name():
    agent = cdqn.Agent.fit(walk(), updates=10, algorithm="rg", **SMALL)
    assert isinstance(agent, cdqn.ResidualGradient)
    with pytest.raises(ConfigError, match="which algorithm"):
        cdqn.Agent.fit(walk(), updates=10, **SMALL)
