"""Offline training: what the data set is, and that nothing but it and the seed decides the result."""

import dataclasses

import numpy as np
import pytest

from cdqn.config import Config
from cdqn.errors import ConfigError
from cdqn.experiments.demo.offline import OfflineData, collect_random, train_offline
from cdqn.replay import Transitions

SMALL = Config(
    seed=3, hidden=(8,), dueling=False, replay="uniform", double_q=False, target_period_updates=5, compile="off"
)


@pytest.fixture(scope="module")
def data() -> OfflineData:
    return collect_random("CartPole-v1", 400, seed=1)


def train(data, config=SMALL, updates=50, **settings):
    return train_offline(
        data, config, updates, **({"record_every": 20, "evaluate_every": 25, "evaluation_episodes": 2} | settings)
    )


def assert_equal(one, other):
    for field in dataclasses.fields(one):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name), err_msg=field.name)


def test_no_transition_is_kept_twice_and_about_half_is_discarded():
    data = collect_random("CartPole-v1", 2_000, seed=0)
    assert len(data) == 2_000
    assert all(len(column) == 2_000 for column in data.transitions)
    rows = np.hstack([data.transitions.observation, data.transitions.next_observation])
    assert len(np.unique(rows, axis=0)) == 2_000
    assert 3_700 < data.steps_played < 4_300  # 4000 ± 5 standard deviations


def test_nothing_is_discarded_at_fraction_zero():
    data = collect_random("CartPole-v1", 100, seed=0, discard_fraction=0.0)
    assert data.steps_played == 100


def test_row_whose_predecessor_was_discarded_counts_as_first(data):
    """Else the prioritized memory would lift a transition that does not lead to the sampled one."""
    rows = data.transitions
    for stream in np.unique(rows.stream):
        mine = rows.stream == stream
        before, now = rows.next_observation[mine][:-1], rows.observation[mine][1:]
        follows = (before == now).all(1)
        np.testing.assert_array_equal(rows.first[mine][1:], ~follows)


def test_data_depends_on_its_seed_alone(data):
    assert collect_random("CartPole-v1", 400, seed=1).digest() == data.digest()
    assert collect_random("CartPole-v1", 400, seed=2).digest() != data.digest()


def test_digest_sees_a_single_changed_value(data):
    reward = data.transitions.reward.copy()
    reward[7] += 1
    changed = dataclasses.replace(data, transitions=data.transitions._replace(reward=reward))
    assert changed.digest() != data.digest()


@pytest.mark.parametrize(("count", "fraction"), [(0, 0.5), (10, 1.0), (10, -0.1)])
def test_impossible_data_sets_are_refused(count, fraction):
    with pytest.raises(ConfigError, match="within"):
        collect_random("CartPole-v1", count, seed=0, discard_fraction=fraction)


def test_history_has_a_record_per_window_and_one_at_the_end(data):
    told = []
    history = train(data, on_progress=told.append)
    assert history.update_T.tolist() == told == [20, 40, 50]
    assert history.evaluation_update_E.tolist() == [0, 25, 50]
    for values in (history.loss_T, history.q_T, history.dqn_share_T, history.return_E):
        assert values.shape == (3,)
        assert np.isfinite(values).all()


@pytest.mark.parametrize("replay", ["uniform", "prioritized"])
def test_training_is_deterministic_and_depends_on_the_seed(data, replay):
    config = dataclasses.replace(SMALL, replay=replay)
    first, again = train(data, config), train(data, config)
    assert_equal(first, again)
    assert train(data, dataclasses.replace(config, seed=4)).loss_T[0] != first.loss_T[0]


def test_record_is_the_mean_over_its_window(data):
    each, windows = train(data, record_every=1), train(data, record_every=25)
    np.testing.assert_allclose(windows.loss_T, each.loss_T.reshape(2, 25).mean(1))
    np.testing.assert_allclose(windows.q_T, each.q_T.reshape(2, 25).mean(1))


def test_settings_of_the_memory_do_not_lose_data(data):
    """A memory of 32 rows, or a second discard, would train on another set than the one given."""
    narrow = dataclasses.replace(SMALL, memory_size=32, discard_fraction=0.5)
    assert_equal(train(data, narrow), train(data))


def test_training_that_is_not_finite_ends_in_nan_and_counts_as_infinite(data):
    told = []
    reward = np.full(400, np.inf, np.float32)
    poisoned = data.transitions._replace(reward=reward)
    history = train(dataclasses.replace(data, transitions=poisoned), on_progress=told.append)
    assert not np.isfinite(history.loss_T).any()
    assert np.isnan(history.return_E[1:]).all()
    assert history.largest_q == np.inf
    assert told[-1] == 50


@pytest.mark.parametrize("name", ["record_every", "evaluate_every", "evaluation_episodes"])
def test_counts_below_one_are_refused(data, name):
    with pytest.raises(ConfigError, match=f"{name} is 0"):
        train(data, **{name: 0})


def test_fewer_rows_than_a_batch_are_enough(data):
    few = dataclasses.replace(data, transitions=Transitions(*(column[:5] for column in data.transitions)))
    assert np.isfinite(train(few).loss_T).all()


def test_normalized_observations_are_those_of_the_whole_data_set(data):
    """In other units, powers of 2 for the sake of rounding, the same is learned; without normalisation it is not."""
    factor = np.float32(2.0**7)
    rows = data.transitions
    scaled = rows._replace(observation=factor * rows.observation, next_observation=factor * rows.next_observation)
    larger = dataclasses.replace(data, transitions=scaled)
    normalized = dataclasses.replace(SMALL, normalize_observations=True)
    losses = [train(which, config).loss_T for config in (normalized, SMALL) for which in (data, larger)]
    np.testing.assert_array_equal(losses[0], losses[1])
    assert (losses[2] != losses[3]).all()
