"""The collector: true transitions, whatever the autoreset mode, and open episodes that survive a checkpoint."""

import copy

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from cdqn.envs import describe
from cdqn.errors import NonFiniteError
from cdqn.training.collector import Collector
from helpers import CountingEnv, ForgetfulEnv, SavedVectorEnv, WalkEnv

MODES = [AutoresetMode.DISABLED, AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP]
LENGTHS = [(3, 4), (5, 2), (1, 6)]


def counting(mode=AutoresetMode.DISABLED, lengths=LENGTHS, copy_buffer=True, **settings):
    makers = [lambda name=n, each=each: CountingEnv(name, each, **settings) for n, each in enumerate(lengths)]
    return SyncVectorEnv(makers, autoreset_mode=mode, copy=copy_buffer)


def walking(count=3, env=WalkEnv, **settings):
    return SyncVectorEnv([lambda: env(**settings)] * count, autoreset_mode=AutoresetMode.DISABLED)


def collector_of(env, seed=0):
    return Collector(env, describe(env), seed)


def collect(collector, vector_steps, seed=0):
    """All transitions as rows, each copied at once, and the finished episodes."""
    rng = np.random.default_rng(seed)
    rows, episodes = [], []
    for _ in range(vector_steps):
        actions = rng.integers(collector.spec.num_actions, size=collector.env.num_envs)
        transitions, finished, _ = collector.step(actions)
        rows += [tuple(np.copy(value) for value in row) for row in zip(*transitions, strict=True)]
        episodes += finished
    return rows, episodes


def check_truth(rows, lengths):
    """Every row is a step that CountingEnv really made, and none is missing."""
    seen = {}
    for observation, action, reward, after, terminated, stream, first in rows:
        name, episode, time = observation.astype(int).tolist()
        assert after.tolist() == [name, episode, time + 1], "not the successor of the same episode"
        length = lengths[name][episode % len(lengths[name])]
        assert bool(terminated) == (time + 1 == length and length % 2 == 0), "truncation is not termination"
        assert reward == time + 1
        assert reward.dtype == np.float32
        assert stream == name
        assert bool(first) == (time == 0)
        assert 0 <= action < 3
        seen.setdefault(name, []).append((episode, time))
    assert sorted(seen) == list(range(len(lengths)))
    for name, steps in seen.items():
        cycle = lengths[name]
        truth = [(e, t) for e in range(len(steps)) for t in range(cycle[e % len(cycle)])]
        assert steps == truth[: len(steps)], f"environment {name}: a step is missing or invented"


@pytest.mark.parametrize("copy_buffer", [True, False], ids=["copied", "reused buffer"])
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_every_transition_is_true_and_none_is_missing(mode, copy_buffer):
    env = counting(mode, copy_buffer=copy_buffer)
    collector = collector_of(env)
    rows, _ = collect(collector, 60)
    check_truth(rows, LENGTHS)
    # In NEXT_STEP a reset takes a step of its own, which is no step of the agent.
    resets = sum(single.episode for single in env.envs) if mode == AutoresetMode.NEXT_STEP else 0
    assert len(rows) == 3 * 60 - resets
    assert collector.steps == len(rows)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_finished_episodes_are_reported_with_return_length_and_end(mode):
    rows, episodes = collect(collector_of(counting(mode)), 60)
    count_of = {}
    for episode in episodes:
        number = count_of.get(episode.env, 0)
        length = LENGTHS[episode.env][number % 2]
        assert episode.length == length
        assert episode.total_reward == length * (length + 1) / 2
        assert episode.ended == ("terminated" if length % 2 == 0 else "truncated")
        assert 0 < episode.step <= len(rows)
        count_of[episode.env] = number + 1
    assert min(count_of.values()) >= 12
    assert [e.step for e in episodes] == sorted(e.step for e in episodes)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_actions_are_stored_from_0_and_played_from_the_spaces_start(mode):
    env = counting(mode, lengths=[(4,)], first_action=5)
    collector = collector_of(env)
    rows, _ = collect(collector, 12)
    stored = [int(row[1]) for row in rows]
    assert set(stored) == {0, 1, 2}
    assert env.envs[0].actions == [action + 5 for action in stored]


def test_every_reset_is_seeded_and_no_two_episodes_share_a_seed():
    env = counting()
    collect(collector_of(env), 60)
    seeds = [seed for single in env.envs for seed in single.seeds]
    assert len(seeds) > 30
    assert None not in seeds
    assert len(set(seeds)) == len(seeds)


def test_seeds_of_episodes_follow_the_runs_seed():
    seeds_of = []
    for seed in (0, 0, 1):
        env = counting()
        collect(collector_of(env, seed), 20)
        seeds_of.append([seed for single in env.envs for seed in single.seeds])
    assert seeds_of[0] == seeds_of[1]
    assert not set(seeds_of[0]) & set(seeds_of[2])


class PoisonedEnv(CountingEnv):
    """Gives `value` as reward or in the observation at the third step of environment 1."""

    def __init__(self, name, where, value):
        super().__init__(name, (10,))
        self.where, self.value = where, value

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        if self.name == 1 and self.time == 3:
            if self.where == "reward":
                reward = self.value
            else:
                observation[2] = self.value
        return observation, reward, terminated, truncated, info


@pytest.mark.parametrize("where", ["reward", "observation"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_value_that_is_not_finite_is_blamed_on_its_environment_and_step(where, value):
    makers = [lambda name=name: PoisonedEnv(name, where, value) for name in range(2)]
    collector = collector_of(SyncVectorEnv(makers, autoreset_mode=AutoresetMode.DISABLED))
    with pytest.raises(NonFiniteError) as caught:
        collect(collector, 5)
    message = str(caught.value)
    assert f"environment 1 (PoisonedEnv) returned the {where}" in message
    assert str(value) in message
    assert "step 5" in message  # two vector steps of two environments came before


def test_non_finite_final_observation_of_a_same_step_reset_is_noticed():
    class BadEnd(CountingEnv):
        def step(self, action):
            observation, reward, terminated, truncated, info = super().step(action)
            if terminated:
                observation[0] = np.nan
            return observation, reward, terminated, truncated, info

    env = SyncVectorEnv([lambda: BadEnd(0, (2,))], autoreset_mode=AutoresetMode.SAME_STEP)
    with pytest.raises(NonFiniteError, match=r"environment 0 \(BadEnd\) returned the observation"):
        collect(collector_of(env), 3)


def test_float64_observations_become_float32():
    class Doubles(CountingEnv):
        def __init__(self):
            super().__init__()
            self.observation_space = gym.spaces.Box(-1.0, 1e6, (3,), np.float64)

    collector = collector_of(SyncVectorEnv([Doubles], autoreset_mode=AutoresetMode.DISABLED))
    transitions = collector.step(np.zeros(1, np.int64)).transitions
    assert transitions.observation.dtype == transitions.next_observation.dtype == np.float32


def assert_goes_on_the_same(one, other, vector_steps=50):
    rows, episodes = collect(one, vector_steps, seed=1)
    other_rows, other_episodes = collect(other, vector_steps, seed=1)
    assert episodes == other_episodes
    assert len(rows) == len(other_rows)
    for row, other_row in zip(rows, other_rows, strict=True):
        for value, other_value in zip(row, other_row, strict=True):
            assert value.tobytes() == other_value.tobytes()
    assert one.steps == other.steps


@pytest.mark.parametrize("vector_steps", [0, 1, 37, 90])
def test_open_episodes_survive_a_state_round_trip(vector_steps):
    straight = collector_of(walking())
    collect(straight, vector_steps)
    resumed = collector_of(walking(), seed=0)
    assert resumed.load_state_dict(copy.deepcopy(straight.state_dict())) is None
    assert resumed.longest_open_episode == straight.longest_open_episode
    assert_goes_on_the_same(straight, resumed)


def test_open_episodes_of_very_unequal_lengths_survive():
    """The short ones must not be disturbed while the long one is played again."""
    lengths = [(1, 2), (400, 400), (2, 9)]

    def make():
        makers = [lambda each=each: WalkEnv(each) for each in lengths]
        return SyncVectorEnv(makers, autoreset_mode=AutoresetMode.DISABLED)

    straight = collector_of(make())
    collect(straight, 321)
    assert straight.longest_open_episode == 321
    resumed = collector_of(make())
    assert resumed.load_state_dict(copy.deepcopy(straight.state_dict())) is None
    assert_goes_on_the_same(straight, resumed, 150)


def test_a_second_round_trip_knows_the_actions_of_before_the_first():
    straight = collector_of(walking(lengths=(60, 80)))
    collect(straight, 20)
    resumed = collector_of(walking(lengths=(60, 80)))
    resumed.load_state_dict(copy.deepcopy(straight.state_dict()))
    for collector in (straight, resumed):
        collect(collector, 20, seed=3)
    again = collector_of(walking(lengths=(60, 80)))
    assert again.load_state_dict(copy.deepcopy(resumed.state_dict())) is None
    assert_goes_on_the_same(straight, again)


def test_environment_that_does_not_repeat_is_noticed_and_said():
    straight = collector_of(walking(env=ForgetfulEnv))
    collect(straight, 33)
    resumed = collector_of(walking(env=ForgetfulEnv))
    notice = resumed.load_state_dict(copy.deepcopy(straight.state_dict()))
    assert "does not repeat" in notice
    assert "not bit for bit" in notice
    assert resumed.steps == straight.steps
    assert resumed.longest_open_episode == 0
    assert resumed.step(np.zeros(3, np.int64)).transitions.first.all()


class ShorterEveryTimeEnv(WalkEnv):
    """The second time it plays an episode, the episode ends earlier."""

    made = 0

    def __init__(self):
        super().__init__(lengths=(30, 30))
        type(self).made += 1
        self.lengths = (30, 30) if self.made <= 3 else (4, 4)


def test_environment_whose_episodes_end_when_they_are_repeated_is_noticed_and_said():
    """An open episode that is over when it is played again: a step after its end would be an error of Gymnasium's."""
    straight = collector_of(walking(env=ShorterEveryTimeEnv))
    collect(straight, 10)
    resumed = collector_of(walking(env=ShorterEveryTimeEnv))
    assert "does not repeat" in resumed.load_state_dict(copy.deepcopy(straight.state_dict()))
    assert resumed.step(np.zeros(3, np.int64)).transitions.first.all()


@pytest.mark.parametrize("mode", MODES[1:], ids=lambda mode: mode.name)
def test_environment_that_resets_itself_goes_on_at_an_episodes_start_and_says_so(mode):
    straight = collector_of(counting(mode))
    collect(straight, 31)
    env = counting(mode)
    resumed = collector_of(env)
    notice = resumed.load_state_dict(copy.deepcopy(straight.state_dict()))
    assert "resets itself" in notice
    assert resumed.steps == straight.steps
    rows, _ = collect(resumed, 30)
    first_of = {int(row[5]): row for row in reversed(rows)}
    for row in first_of.values():
        assert bool(row[6])
        assert row[0][2] == 0
    assert resumed.steps == straight.steps + len(rows)


def test_environment_of_another_kind_than_the_saved_one_is_said():
    saved = collector_of(counting()).state_dict()
    notice = collector_of(counting(AutoresetMode.SAME_STEP)).load_state_dict(saved)
    assert "another kind" in notice


@pytest.mark.parametrize("vector_steps", [0, 5, 7, 8, 9, 40])
def test_vector_environment_with_its_own_state_is_restored_exactly(vector_steps):
    """Steps 7 and 8 are those at which rows have ended and wait for their reset."""
    straight = collector_of(SavedVectorEnv())
    assert straight.resumption == "state"
    collect(straight, vector_steps)
    resumed = collector_of(SavedVectorEnv(), seed=5)
    assert resumed.load_state_dict(copy.deepcopy(straight.state_dict())) is None
    np.testing.assert_array_equal(resumed.observation, straight.observation)
    assert_goes_on_the_same(straight, resumed)


def test_state_does_not_change_while_the_collector_goes_on():
    """A state that is kept in memory, to go back to, must be of the moment it was taken."""
    collector = collector_of(walking())
    collect(collector, 13)
    state = collector.state_dict()
    frozen = copy.deepcopy(state)
    collect(collector, 25)
    for name, value in frozen.items():
        assert np.array_equal(state[name], value), name


class TalkativeEnv(CountingEnv):
    """Says in its infos what in ours is said by Atari alone."""

    def step(self, action):
        *result, _ = super().step(action)
        return *result, {"action": "rock", "life_lost": True}


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_infos_of_other_environments_than_atari_are_not_heeded(mode):
    makers = [lambda name=n, each=each: TalkativeEnv(name, each) for n, each in enumerate(LENGTHS)]
    collector = collector_of(SyncVectorEnv(makers, autoreset_mode=mode))
    rows, _ = collect(collector, 60)
    check_truth(rows, LENGTHS)
    first_actions = np.random.default_rng(0).integers(collector.spec.num_actions, size=3)
    assert [int(row[1]) for row in rows[:3]] == first_actions.tolist(), "not the actions that were played"
