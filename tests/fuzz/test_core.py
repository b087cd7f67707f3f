"""The heart of it under long random histories: replay memory and collector against what really happened."""

import copy
import math

import gymnasium as gym
import numpy as np
from fuzzing import examples
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given
from hypothesis import strategies as st
from replay_twins import SlowPrioritizedReplay, make_replay, make_rows, sample_and_update_both

from cdqn.envs import describe
from cdqn.replay import MultiStep
from cdqn.replay.sum_tree import SumTree
from cdqn.training.collector import Collector
from helpers import WalkEnv, assert_same_state

HISTORY = 150
"""Operations of a history: enough to fill the largest memory several times over."""
REPLAYS = st.fixed_dictionaries(
    {
        "eviction": st.sampled_from(["fifo", "random"]),
        "discard_fraction": st.sampled_from([0.0, 0.3, 0.7]),
        "alpha": st.sampled_from([0.3, 0.6, 1.0]),
        "raise_predecessor": st.booleans(),
        "scheme": st.sampled_from(["floor", "original"]),
        "initial_priority": st.sampled_from([0.5, 3.0, 100.0]),
    }
)


@examples(15, in_round=25)
@given(st.integers(0, 2**32), st.integers(1, 60), REPLAYS, st.integers(1, 6))
def test_memory_is_its_slow_twin_through_any_history(seed, capacity, settings, n_step):
    """Rows over n steps, several streams that begin and end, eviction, discarding, and a checkpoint on the way."""
    chooser = np.random.default_rng(seed)
    fast, slow = make_replay(capacity, seed=5, **settings), SlowPrioritizedReplay(capacity, seed=5, **settings)
    multi_step, made = MultiStep(n_step, 0.9), 0
    for _ in range(HISTORY):
        kind = chooser.random()
        if kind < 0.6 or not len(fast):
            streams = np.flatnonzero(chooser.random(5) < 0.7)
            rows = make_rows(made + np.arange(len(streams)), streams, chooser.random(len(streams)) < 0.1)
            made += len(streams)
            rows = multi_step.extend(rows)
            fast.add(rows)
            slow.add(rows)
        elif kind < 0.95:
            sample_and_update_both(fast, slow, chooser, 4, beta=0.6)
        else:  # saved, and a new one goes on
            state = copy.deepcopy(fast.state_dict())
            fast = make_replay(capacity, seed=77, **settings)
            fast.load_state_dict(state)
        assert fast.state_dict()["store"]["action"].tolist() == [row.id for row in slow.rows]
        np.testing.assert_allclose(fast.state_dict()["priorities"], [row.priority for row in slow.rows], rtol=1e-12)


@examples(5, in_round=10)
@given(st.integers(0, 2**32), st.integers(1, 5_000), st.integers(0, 12))
def test_sums_do_not_drift(seed, capacity, spread):
    """100 000 updates, with values that differ by up to 24 orders of magnitude."""
    chooser, tree = np.random.default_rng(seed), SumTree(capacity)
    for _ in range(200):
        tree.set(chooser.integers(capacity, size=500), 10 ** chooser.uniform(-spread, spread, 500))
    exact = math.fsum(tree.leaves(capacity))
    assert abs(tree.total - exact) <= 1e-12 * exact


class Scripted(gym.Env):
    """Ends as it is told: (length, terminated, truncated) of its episodes in turn. It says where it is."""

    def __init__(self, name, script):
        self.observation_space = Box(-1.0, 1e6, (3,), np.float32)
        self.action_space = Discrete(3)
        self.name, self.script = name, script
        self.episode, self.time = -1, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.time = self.episode + 1, 0
        return self._observation(), {}

    def step(self, action):
        self.time += 1
        length, terminated, truncated = self.script[self.episode % len(self.script)]
        over = self.time == length
        return self._observation(), float(100 * self.episode + self.time), over and terminated, over and truncated, {}

    def _observation(self):
        return np.array([self.name, self.episode, self.time], np.float32)


ENDS = st.sampled_from([(True, False), (False, True), (True, True)])
EPISODE = st.tuples(st.integers(1, 6), ENDS).map(lambda parts: (parts[0], *parts[1]))
SCRIPTS = st.lists(st.lists(EPISODE, min_size=1, max_size=4), min_size=1, max_size=4)
MODES = st.sampled_from([AutoresetMode.DISABLED, AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])


@examples(40, in_round=150)
@given(MODES, SCRIPTS, st.booleans())
def test_collector_hands_over_every_step_that_was_made_and_no_other(mode, scripts, copies):
    makers = [lambda name=name, script=script: Scripted(name, script) for name, script in enumerate(scripts)]
    env = SyncVectorEnv(makers, autoreset_mode=mode, copy=copies)
    collector = Collector(env, describe(env), 0)
    given = [[] for _ in scripts]
    ended = [[] for _ in scripts]
    for _ in range(30):
        transitions, finished, _ = collector.step(np.zeros(len(scripts), np.int64))
        for observation, _, reward, after, terminated, stream, first in zip(*transitions, strict=True):
            row = (observation.tolist(), float(reward), after.tolist(), bool(terminated), bool(first))
            given[int(stream)].append(row)
        for episode in finished:
            ended[episode.env].append((episode.length, episode.ended))
    for name, script in enumerate(scripts):
        wanted, ends = told(name, script, len(given[name]))
        assert given[name] == wanted
        assert ended[name] == ends
        assert len(wanted) >= 15, "at most every second step is a reset"


def told(name, script, count):
    """The first rows, and the ends of the episodes in them, as the script has them."""
    rows, ends, episode = [], [], 0
    while len(rows) < count:
        length, terminated, _ = script[episode % len(script)]
        for time in range(length):
            last = time + 1 == length
            place, after = [name, episode, time], [name, episode, time + 1]
            rows.append((place, 100.0 * episode + time + 1, after, last and terminated, time == 0))
        if len(rows) <= count:
            ends.append((length, "terminated" if terminated else "truncated"))
        episode += 1
    return rows[:count], ends


@examples(15, in_round=30)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=4), st.integers(0, 40))
def test_collector_goes_on_from_any_moment_as_if_nothing_had_happened(lengths, moment):
    def make():
        env = SyncVectorEnv(
            [lambda each=each: WalkEnv((min(each), max(each))) for each in lengths],
            autoreset_mode=AutoresetMode.DISABLED,
        )
        return Collector(env, describe(env), 3)

    straight, resumed = make(), make()
    chooser = np.random.default_rng(moment)
    actions = chooser.integers(2, size=(60, len(lengths)))
    for step in actions[:moment]:
        straight.step(step)
    assert resumed.load_state_dict(copy.deepcopy(straight.state_dict())) is None
    for step in actions[moment:]:
        mine, theirs = straight.step(step), resumed.step(step)
        assert_same_state(mine.transitions._asdict(), theirs.transitions._asdict())
    assert_same_state(straight.state_dict(), resumed.state_dict())
