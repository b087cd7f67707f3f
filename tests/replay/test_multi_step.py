"""Returns over n steps against a slow twin that has whole episodes before it."""

import copy

import numpy as np
import pytest

from cdqn.replay import MultiStep, Transitions
from cdqn.replay.multi_step import joined_rows

DISCOUNT = 0.9


class Episodes:
    """Streams of episodes of random lengths; the observation is (stream, episode, time)."""

    def __init__(self, seed):
        self._rng = np.random.default_rng(seed)
        self.told = [[], [], []]
        """For each stream its episodes: rows so far, the length it will have, and whether it then terminates."""
        for stream in range(3):
            self._begin(stream)

    def step(self):
        """One transition in each of some streams, as a collector hands them over."""
        chosen = np.flatnonzero(self._rng.random(len(self.told)) < 0.8)
        rows = [self._advance(int(stream)) for stream in chosen]
        if not rows:
            return None
        columns = zip(*rows, strict=True)
        types = (np.float32, np.int64, np.float32, np.float32, bool, np.int64, bool)
        return Transitions(*(np.array(column, dtype) for column, dtype in zip(columns, types, strict=True)))

    def _advance(self, stream):
        episode = self.told[stream][-1]
        number, time = len(self.told[stream]), len(episode["rows"])
        last = time + 1 == episode["length"]
        row = (
            [stream, number, time],
            int(self._rng.integers(4)),
            float(self._rng.normal()),
            [stream, number, time + 1],
            last and episode["terminates"],
            stream,
            time == 0,
        )
        episode["rows"].append(row)
        if last:
            self._begin(stream)
        return row

    def _begin(self, stream):
        length = int(self._rng.integers(1, 9, endpoint=True))
        self.told[stream].append({"rows": [], "length": length, "terminates": bool(self._rng.integers(2))})


def expected_rows(episodes, stream, n):
    """Each transition of a stream over n steps, from whole episodes."""
    for episode in episodes.told[stream]:
        rows = episode["rows"]
        terminated = len(rows) == episode["length"] and episode["terminates"]
        for t in range(len(rows)):
            if not terminated and t + n > len(rows):
                continue
            window = rows[t : t + n]
            total = sum(DISCOUNT**k * np.float32(row[2]) for k, row in enumerate(window))
            yield rows[t][0], rows[t][1], total, window[-1][3], window[-1][4], stream, rows[t][6]


@pytest.mark.parametrize("n", [2, 3, 5, 12])
def test_rows_over_n_steps_are_those_made_from_whole_episodes(n):
    episodes, multi_step = Episodes(seed=n), MultiStep(n, DISCOUNT)
    given = [[], [], []]
    terminal_rows = 0
    for _ in range(300):
        step = episodes.step()
        if step is None:
            continue
        for row in zip(*multi_step.extend(step), strict=True):
            given[int(row[5])].append(row)
            terminal_rows += bool(row[4])
    assert terminal_rows > 50
    for stream in range(3):
        wanted = list(expected_rows(episodes, stream, n))
        assert len(given[stream]) == len(wanted) > 30
        for row, other in zip(given[stream], wanted, strict=True):
            np.testing.assert_array_equal(row[0], other[0])
            assert row[2] == pytest.approx(other[2], abs=1e-6)
            np.testing.assert_array_equal(row[3], other[3])
            assert [row[i] for i in (1, 4, 5, 6)] == [other[i] for i in (1, 4, 5, 6)]


def test_columns_keep_their_kind_even_when_no_row_is_complete():
    step = Episodes(seed=0).step()
    nothing = MultiStep(3, DISCOUNT).extend(step)
    assert [len(column) for column in nothing] == [0] * 7
    ended = MultiStep(3, DISCOUNT).extend(step._replace(terminated=np.ones_like(step.terminated)))
    assert len(ended.action) == len(step.action)
    for before, empty, after in zip(step, nothing, ended, strict=True):
        assert before.dtype == empty.dtype == after.dtype
        assert before.shape[1:] == empty.shape[1:] == after.shape[1:]


def test_one_step_changes_nothing():
    step = Episodes(seed=0).step()
    assert MultiStep(1, DISCOUNT).extend(step) is step


def test_truncated_episode_leaves_nothing_for_the_next_one():
    def row(time, first, reward):
        return Transitions(
            *map(np.array, ([[time]], [0], [reward], [[time + 1]], [False], [0], [first])),
        )

    multi_step = MultiStep(2, DISCOUNT)
    assert len(multi_step.extend(row(0, True, 1.0)).action) == 0
    assert len(multi_step.extend(row(10, True, 5.0)).action) == 0  # the first episode was cut off after one step
    joined = multi_step.extend(row(11, False, 10.0))
    assert joined.observation.tolist() == [[10]]
    assert joined.reward.tolist() == [14.0]


def test_nothing_is_held_back_beyond_a_terminal_state():
    multi_step, step = MultiStep(3, DISCOUNT), Episodes(seed=0).step()
    multi_step.extend(step)
    assert len(multi_step.state_dict()["action"]) == len(step.action)
    multi_step.extend(step._replace(first=~step.first, terminated=np.ones_like(step.terminated)))
    assert multi_step.state_dict() == {}


def test_what_is_held_back_survives_a_checkpoint():
    episodes, straight = Episodes(seed=7), MultiStep(4, DISCOUNT)
    steps = [step for _ in range(60) if (step := episodes.step()) is not None]
    for step in steps[:31]:
        straight.extend(step)
    state = copy.deepcopy(straight.state_dict())
    assert len(state["action"]) > 3
    resumed = MultiStep(4, DISCOUNT)
    resumed.extend(steps[0])  # and forgets what it had
    resumed.load_state_dict(state)
    for step in steps[31:]:
        for ours, theirs in zip(resumed.extend(step), straight.extend(step), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    fresh = MultiStep(4, DISCOUNT)
    fresh.load_state_dict(MultiStep(4, DISCOUNT).state_dict())
    assert fresh.state_dict() == {}


@pytest.mark.parametrize("steps", [2, 3, 7])
@pytest.mark.parametrize("seed", range(5))
def test_rows_joined_at_once_are_those_joined_one_by_one(steps, seed):
    rng = np.random.default_rng(seed)
    count = 60
    ended = rng.random(count) < 0.15
    terminated = ended & (rng.random(count) < 0.6)
    rows = Transitions(
        observation=rng.normal(size=(count, 2)).astype(np.float32),
        action=rng.integers(3, size=count),
        reward=rng.normal(size=count).astype(np.float32),
        next_observation=rng.normal(size=(count, 2)).astype(np.float32),
        terminated=terminated,
        stream=np.zeros(count, np.int64),
        first=np.append(True, ended[:-1]),
    )
    slow = MultiStep(steps, 0.9).extend(rows)
    fast = joined_rows(rows, ended, steps, 0.9)
    for name, mine, theirs in zip(Transitions._fields, fast, slow, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6, err_msg=name)
        assert mine.dtype == theirs.dtype
