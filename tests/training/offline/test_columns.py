"""What a data set must be: each mistake is named by its row, with what to do, before anything is trained."""

import numpy as np
import pytest

from cdqn.envs import describe, make_vec, observation_adapter
from cdqn.errors import ConfigError
from cdqn.replay import MultiStep
from cdqn.training.offline.columns import checked_columns, data_of
from helpers import CountingEnv, WalkEnv
from offline_data import NAMES, record, shuffled, walk


def changed(row, name, value, dtype=None):
    data = walk(60)
    data[name] = data[name].astype(dtype or data[name].dtype)
    data[name][row] = value
    return data


def data_for(columns, env=None, reward_clip=False):
    vector_env = make_vec(WalkEnv() if env is None else env, 1)
    return data_of(checked_columns(columns), describe(vector_env), observation_adapter(vector_env), reward_clip)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"observations": [[1.0]], "terminals": [1]},
            r"has observations, terminals, and no actions, rewards",
        ),
        ({}, "has nothing, and no observations"),
        (walk(9) | {"rewards": np.zeros(8)}, "rewards has 8 rows, observations has 9"),
        (walk(9) | {"next_observations": np.zeros((9, 2))}, r"shape \(9, 3\), next_observations \(9, 2\)"),
        (walk(9) | {"actions": np.zeros((9, 2))}, r"actions has shape \(9, 2\): .* \(9,\)"),
        (walk(9) | {"rewards": np.array(["a"] * 9)}, "rewards has type <U1: .* numbers"),
        (walk(9) | {"observations": [[1.0], [1.0, 2.0]]}, "observations is no array"),
        (walk(9) | {"terminations": True}, "terminations is True: .* one row for each"),
        ({name: column[:0] for name, column in walk(9).items()}, "is empty: it has 0 rows"),
        (changed(17, "observations", np.nan), "row 17 of observations is .*nan.*drop the 1 rows"),
        (changed(5, "next_observations", np.inf), "row 5 of next_observations is .*inf"),
        (changed(slice(3, 5), "rewards", np.nan), "row 3 of rewards is nan.*drop the 2 rows"),
        (changed(4, "rewards", 1e300), "row 4 of rewards is inf, in 32 bits"),
        (changed(8, "actions", 0.5, np.float64), "row 8: action 0.5 is not a whole number"),
        (changed(8, "actions", np.nan, np.float64), "row 8: action nan is not a whole number"),
        (changed(2, "terminations", 2, np.int64), "row 2 of terminations is 2: it must be True or False"),
        (changed(2, "truncations", -1, np.int64), "row 2 of truncations is -1"),
    ],
)
def test_mistake_is_refused_with_its_row(data, message):
    with pytest.raises(ConfigError, match=message):
        checked_columns(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (changed(11, "actions", 2), r"row 11: action 2 is outside of 0 … 1, .* \(1 such rows\)"),
        (changed(11, "actions", -1), "row 11: action -1 is outside"),
        (changed(11, "observations", 1e300, np.float64), "row 11 of observations is .*inf"),
        (walk(9) | dict.fromkeys(("observations", "next_observations"), np.zeros((9, 5))), r"shape \(9, 5\).*\(N, 3\)"),
        (walk(3) | dict.fromkeys(("observations", "next_observations"), np.zeros(3)), r"shape \(3,\)"),
    ],
)
def test_what_does_not_fit_the_environment_is_refused_with_its_row(data, message):
    with pytest.raises(ConfigError, match=message):
        data_for(data)


def test_one_row_is_data_and_rows_of_nothing_are_not():
    assert data_for(walk(1)).rows == 1
    with pytest.raises(ConfigError, match=r"observations has shape \(9, 0\): there is nothing in a row"):
        checked_columns(walk(9) | dict.fromkeys(("observations", "next_observations"), np.zeros((9, 0))))


def test_actions_are_counted_from_the_first_of_the_environment():
    env = CountingEnv(first_action=5)
    data = record(env, 40)
    (rows,) = data_for(data, CountingEnv(first_action=5)).chunks()
    np.testing.assert_array_equal(rows.action, data["actions"] - 5)
    with pytest.raises(ConfigError, match="row 0: action 0 is outside of 5 … 7"):
        data_for(data | {"actions": np.zeros(40)}, CountingEnv(first_action=5))


def test_numbered_states_become_what_an_agent_sees():
    columns = dict(zip(NAMES, ([0, 4], [1, 1], [0, 1], [4, 15], [False, True], [False, False]), strict=True))
    (rows,) = data_for(columns, "FrozenLake-v1").chunks()
    np.testing.assert_array_equal(rows.observation.argmax(1), [0, 4])
    assert rows.observation.shape == (2, 16)
    with pytest.raises(ConfigError, match="observations has shape"):
        data_for(columns | {"observations": [0, 16]}, "FrozenLake-v1")


def test_floats_are_not_cut_to_bytes():
    board = np.zeros((4, 5, 5, 2))
    board[2, 0, 0, 0] = 0.5
    columns = dict(zip(NAMES, (board, [0] * 4, [0] * 4, board, [True] * 4, [False] * 4), strict=True))
    env = make_vec("cdqn/Data-v0", 1, kwargs={"actions": 2, "shape": [5, 5, 2], "dtype": "uint8"})
    with pytest.raises(ConfigError, match=r"row 2 of observations has values that do not fit .* uint8"):
        data_of(checked_columns(columns), describe(env), observation_adapter(env), False)


def test_episodes_are_known_where_rows_lead_on():
    ordered = walk(100)
    assert data_for(ordered).ended is not None
    assert sum(map(len, data_for(ordered).episodes)) == np.flatnonzero(data_for(ordered).ended)[-1] + 1
    mixed = data_for(shuffled(ordered))
    assert mixed.ended is None
    assert mixed.episodes is None
    del ordered["truncations"]
    unmarked = data_for(ordered)
    assert unmarked.broken_row == int(np.flatnonzero(walk(100)["truncations"])[0]), "the first that was cut off"


def test_rows_are_joined_within_episodes_as_a_collector_would():
    columns = walk(100)
    data = data_for(columns)
    over = columns["terminations"] | columns["truncations"]
    assert columns["truncations"].any()
    np.testing.assert_array_equal(data.ended, over)
    (rows,) = data.chunks()
    np.testing.assert_array_equal(rows.first, np.append(True, over[:-1]))
    (joined,) = data.over(3, 0.9).chunks()
    for mine, theirs in zip(joined, MultiStep(3, 0.9).extend(rows), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    (mixed,) = data_for(shuffled(columns)).chunks()
    assert mixed.first.sum() > 90, "no row is taken for the predecessor of a stranger"


def test_several_steps_need_known_episodes():
    assert data_for(walk(100)).over(1, None).rows == 100
    joined = data_for(walk(100)).over(3, 0.9)
    assert 0 < joined.rows < 100
    with pytest.raises(ConfigError, match=r"n_step is 3, .* row \d+ ends none, .* mark cut-off .* or use n_step 1"):
        data_for(shuffled(walk(100))).over(3, 0.9)
    short = walk(2) | dict.fromkeys(("terminations", "truncations"), np.zeros(2, bool))
    with pytest.raises(ConfigError, match="n_step is 5, and no episode of the data is that long"):
        data_for(short).over(5, 0.9)


def test_rewards_are_clipped_where_that_is_set():
    data = walk(50) | {"rewards": np.linspace(-3, 3, 50)}
    assert data_for(data, reward_clip=True).reward_abs_max == 1
    assert data_for(data).reward_abs_max == 3


def ends(lengths, truncated=()):
    """A data set whose episodes have these lengths."""
    data, last = walk(sum(lengths)), np.cumsum(lengths) - 1
    data["terminations"], data["truncations"] = np.zeros((2, sum(lengths)), bool)
    for episode, row in enumerate(last):
        data["truncations" if episode in truncated else "terminations"][row] = True
    return data


def test_data_without_terminations_is_warned_of():
    (notice,) = data_for(ends([5, 5, 5], truncated=(0, 1, 2))).notices
    assert "no row of the data is a termination: returns do not end" in notice


@pytest.mark.parametrize(
    ("lengths", "truncated", "warned"),
    [
        ([9, 9, 9, 9], (), True),
        ([3, 9, 9, 9], (), True),
        ([3, 4, 5, 9, 9, 9, 8], (), False),
        ([9, 9], (), False),
        ([9, 9, 9, 4], (0,), False),
        ([1, 1, 1, 1], (), False),
    ],
)
def test_truncations_that_look_like_terminations_are_warned_of(lengths, truncated, warned):
    notices = data_for(ends(lengths, truncated)).notices
    assert bool(notices) == warned
    if warned:
        assert f"episodes end in a termination after exactly {max(lengths)} steps" in notices[0]
