"""Training on fixed data: nothing is played, a step is an update, and a run goes on bit for bit."""

import numpy as np
import pytest

import cdqn
from cdqn.errors import CheckpointError, ConfigError
from cdqn.runs.fitting import prepare
from cdqn.training.offline.trainer import OfflineTrainer
from helpers import WalkEnv, assert_same_state
from offline_data import SMALL, walk


class Unplayable(WalkEnv):
    """Fails as soon as somebody plays it."""

    def reset(self, **arguments):
        raise AssertionError("played")


def trainer(updates=60, data=None, **settings):
    made = prepare(walk() if data is None else data, Unplayable(), updates, given=SMALL | settings)
    return made.agent.trainer


def test_nothing_is_played_and_every_step_is_an_update():
    run = trainer()
    rows = [event.row() for event in run.run(60)]
    assert isinstance(run, OfflineTrainer)
    assert (run.steps, run.learner.updates) == (60, 60)
    progress = [row for row in rows if row["kind"] == "progress"]
    assert [(row["step"], row["update"], row["epsilon"]) for row in progress] == [(n, n, 0.0) for n in (20, 40, 60)]


def test_memory_holds_the_data_and_nothing_else():
    data = walk()
    run = trainer(data=data, n_step=1)
    list(run.run(30))
    stored = run.replay.state_dict()["store"]
    assert len(run.replay) == run.replay.capacity == 200
    np.testing.assert_array_equal(stored["observation"], data["observations"])
    np.testing.assert_array_equal(stored["terminated"], data["terminations"])
    np.testing.assert_array_equal(stored["reward"], data["rewards"])


@pytest.mark.parametrize(
    "settings", [{}, {"normalize_observations": True, "n_step": 1}, {"replay": "uniform", "normalize_rewards": False}]
)
def test_saved_and_loaded_it_goes_on_bit_for_bit(settings):
    whole, first, second = (trainer(**settings) for _ in range(3))
    list(whole.run(60))
    list(first.run(25))
    second.load_state_dict(first.state_dict())
    list(second.run(60))
    assert_same_state(whole.state_dict(), second.state_dict())


def test_all_observations_are_in_the_statistics_from_the_beginning():
    data = walk()
    run = trainer(data=data, normalize_observations=True, n_step=1)
    np.testing.assert_allclose(run.normalizer.mean_F, data["observations"].mean(0), rtol=1e-4, atol=1e-5)


def test_scale_of_rewards_is_that_of_the_data_and_is_told_once():
    data = walk() | {"rewards": np.full(200, 7.0)}
    run = trainer(data=data)
    rows = [event.row() for event in run.run(60)]
    (told,) = [row for row in rows if row["kind"] == "calibration"]
    assert told["scale"] == 7.0
    assert rows[0] == told


def test_discount_is_found_from_whole_episodes():
    run = trainer(horizon_multiplier=5.0, n_step=1, normalize_rewards=False)
    rows = [event.row() for event in run.run(20)]
    assert rows[0]["kind"] == "calibration"
    assert rows[0]["episodes"] == len(np.flatnonzero(walk()["terminations"] | walk()["truncations"]))


def test_a_network_that_diverges_is_warned_of():
    settings = {"learning_rate": 1.0, "target_period_updates": 1, "n_step": 1, "loss": "mse"}
    with pytest.warns(UserWarning, match="training is diverging: .* algorithm cdqn"):
        cdqn.DQN.fit(walk(), updates=200, **(SMALL | settings))


def test_wrapper_that_learns_from_play_is_refused():
    import gymnasium as gym

    with pytest.raises(ConfigError, match=r"NormalizeObservation, which has not seen the data: .*normalize_obs"):
        prepare(walk(), gym.wrappers.NormalizeObservation(WalkEnv()), 10, given=SMALL)


def test_without_data_nothing_is_trained():
    agent = prepare(walk(), WalkEnv(), 10, given=SMALL).agent
    empty = OfflineTrainer(agent.trainer.collector.env, agent.spec, agent.config)
    with pytest.raises(CheckpointError, match="the data of this run was never saved"):
        list(empty.run(10))
