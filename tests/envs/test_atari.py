"""Atari on ale-py's native vector environment, against Gymnasium's single one and the paper's pipeline in numpy.

The native environment begins a game by one frame of FIRE, in games that have it, and a number of no-op frames
that its seed decides; the reference is told how many. An emulator costs 0.1 s to load, so games are shared.
"""

import copy
import hashlib
import sys
from pathlib import Path
from typing import NamedTuple

import ale_py.registration  # noqa: F401  registers the games with Gymnasium
import gymnasium as gym
import numpy as np
import pytest
from ale_py.roms import get_rom_path
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from cdqn.envs import default_preprocessing, describe, make_vec
from cdqn.envs.atari import AtariVectorEnv, find_game, usual_name
from cdqn.errors import MissingPackageError, UnsupportedEnvironmentError
from cdqn.training.collector import Collector

NOOP, FIRE = 0, 1  # in every action set here that has FIRE


class WatchedEnv(AtariVectorEnv):
    """Keeps what the collector does not hand on: the frames played by a reset, and what every step said."""

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.start_frames = np.zeros(self.num_envs, np.int64)
        self.steps = []
        native_reset = self._native.reset

        def reset(**keywords):
            observation, infos = native_reset(**keywords)
            mask = keywords["options"]["reset_mask"]
            self.start_frames[mask] = infos["episode_frame_number"][mask]
            return observation, infos

        self._native.reset = reset

    def step(self, actions):
        self.steps.append(copy.deepcopy(super().step(actions)))
        return self.steps[-1]


class ReferenceGame:
    """App. E.1 in plain numpy, over `gymnasium.make` with a frame skip of 1."""

    def __init__(self, game, seed, start_frames, sticky_actions=0.0):
        self.env = gym.make(
            f"ALE/{usual_name(game)}-v5",
            frameskip=1,
            repeat_action_probability=sticky_actions,
            full_action_space=False,
            obs_type="grayscale",
        ).unwrapped
        self.env.ale.setInt("random_seed", seed)  # Gymnasium would hash the seed first
        self.env.load_game()
        screen, _ = self.env.reset()
        has_fire = "FIRE" in self.env.get_action_meanings()
        for action in ([FIRE] * has_fire + [NOOP] * 30)[:start_frames]:
            screen, *_ = self.env.step(action)
        self.rounded_up = 0
        self.observation = np.zeros((4, 105, 80), np.uint8)  # a game begins with three black frames
        self._see(screen)

    def step(self, action):
        """Observation, score, end of the game and lives after 4 frames of an action."""
        screens, score, over = [], 0.0, False
        for _ in range(4):
            screen, reward, over, _, info = self.env.step(action)
            screens.append(screen)
            score += reward
            if over:
                break
        self._see(np.maximum(*screens[-2:]) if not over else screens[-1])
        return self.observation, score, over, info["lives"]

    def _see(self, screen):
        mean = screen.reshape(105, 2, 80, 2).mean(axis=(1, 3))
        frame = np.floor(mean + 0.5).astype(np.uint8)  # a half is rounded up
        self.rounded_up += int((frame > np.rint(mean)).sum())
        self.observation = np.concatenate([self.observation[1:], frame[None]])


def reset_with(env, seeds):
    return env.reset(seed=list(seeds))[0]


def digest(arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


def collector_of(env, seed=0, **settings):
    return Collector(env, describe(env), seed, **settings)


# Frames


@pytest.mark.parametrize(
    ("game", "sticky_actions"), [("space_invaders", 0.0), ("breakout", 0.0), ("space_invaders", 0.25)]
)
def test_frames_rewards_lives_and_ends_are_bitwise_those_of_gymnasium(game, sticky_actions):
    env = WatchedEnv(game, 2, sticky_actions=sticky_actions)
    observation = reset_with(env, [3, 4])
    references = [ReferenceGame(game, 3 + i, env.start_frames[i], sticky_actions) for i in range(2)]
    for reference, ours in zip(references, observation, strict=True):
        np.testing.assert_array_equal(ours, reference.observation)
    rng = np.random.default_rng(1)
    largest = 0
    for step in range(150):
        if step % 3 == 0:
            asked = rng.integers(env.single_action_space.n, size=2)
        observation, reward, terminated, truncated, infos = env.step(asked)
        largest = max(largest, *abs(reward))
        for i, reference in enumerate(references):
            theirs, score, over, lives = reference.step(infos["action"][i])
            assert (reward[i], terminated[i], infos["lives"][i]) == (score, over, lives)
            seen = slice(0, 3 if over else 4)  # ale-py does not draw the frame in which a game ends
            np.testing.assert_array_equal(observation[i][seen], theirs[seen], err_msg=f"step {step}, environment {i}")
        assert not truncated.any()
        if terminated.any():
            break
    assert step > 80
    assert largest > 1 or game != "space_invaders", "no reward that clipping would change"
    assert sum(reference.rounded_up for reference in references) > 0, "no pixel whose rounding could differ"


def test_processed_frames_and_raw_screens_have_the_recorded_hashes():
    """If only the second hash changed, it is our pipeline; if the ROM's or that of the raw screens did, ale-py."""
    rom = hashlib.sha256(Path(get_rom_path("space_invaders")).read_bytes()).hexdigest()
    assert rom == "7224b17462b992d67f4e06a3c85f269c9822b06df6015bf038b55f384ced0301"
    env = WatchedEnv("space_invaders", 2)
    frames = [reset_with(env, [0, 1]).copy()]
    reference = ReferenceGame("space_invaders", 0, env.start_frames[0])
    screens = [reference.env.ale.getScreenGrayscale()]
    rng = np.random.default_rng(0)
    for _ in range(200):
        observation, _, terminated, _, infos = env.step(rng.integers(6, size=2))
        assert not terminated.any()
        frames.append(observation[:, -1].copy())
        reference.step(infos["action"][0])
        screens.append(reference.env.ale.getScreenGrayscale())
    assert digest(screens) == "8f3dbe3f498907c716976aa03f580e62982c89e4d6fd28d53e5509015862febf"
    assert digest(frames) == "5b60bb308c463167469ffc06b12fe346989c12271cfcb1799e3619069c4add62"


# Lives


class Game(NamedTuple):
    """A whole game, as the collector stored it, the environment told it and the reference played it."""

    rows: list  # one transition each
    asked: list
    watched: list  # reward, terminated, truncated, infos
    reference: list  # score, over, lives before, lives after
    episode: object
    env: WatchedEnv


@pytest.fixture(scope="module", params=["breakout", "space_invaders"])
def game(request):
    env = WatchedEnv(request.param, 1)
    collector = collector_of(env, seed=2, reward_clip=True)
    seed = int(collector._episode_seed(0)) & 0x7FFFFFFF
    reference = ReferenceGame(request.param, seed, env.start_frames[0])
    rng = np.random.default_rng(0)
    rows, asked, played, episodes = [], [], [], []
    lives = reference.env.ale.lives()
    while not episodes:
        asked.append(int(rng.choice([a for a in range(env.single_action_space.n) if a != FIRE])))
        collected = collector.step(np.array(asked[-1:]))
        rows.append(type(collected.transitions)(*(np.copy(column[0]) for column in collected.transitions)))
        episodes = collected.episodes
        _, score, over, lives_after = reference.step(int(env.steps[-1][-1]["action"][0]))
        played.append((score, over, lives, lives_after))
        lives = lives_after
        assert len(rows) < 3000
    return Game(rows, asked, [step[1:] for step in env.steps], played, episodes[0], env)


def test_life_lost_is_said_exactly_where_lives_fell_and_the_game_went_on(game):
    said = [bool(infos["life_lost"][0]) for *_, infos in game.watched]
    assert said == [after < before and not over for _, over, before, after in game.reference]
    assert sum(said) == game.reference[0][2] - 1, "every life but the last"


def test_lost_life_does_not_restart_the_game(game):
    """ale-py's episodic_life would: the reference, which is never reset, plays the same game to its end."""
    assert [int(infos["lives"][0]) for *_, infos in game.watched] == [after for *_, after in game.reference]
    assert [float(reward[0]) for reward, *_ in game.watched] == [score for score, *_ in game.reference]
    assert game.reference[-1][1], "the reference has not come to its end"


def test_terminated_is_the_end_of_the_game_and_no_lost_life(game):
    """ale-py's life_loss_info would flag the lives too."""
    assert [bool(terminated[0]) for _, terminated, _, _ in game.watched] == [over for _, over, *_ in game.reference]
    assert [over for _, over, *_ in game.reference].count(True) == 1
    assert not any(truncated[0] for _, _, truncated, _ in game.watched)


def test_learner_sees_an_end_at_each_lost_life_and_a_beginning_after_it(game):
    ends = [after < before for _, _, before, after in game.reference]
    assert [bool(row.terminated) for row in game.rows] == ends
    assert [bool(row.first) for row in game.rows] == [True, *ends[:-1]]
    for row, following in zip(game.rows, game.rows[1:], strict=False):
        np.testing.assert_array_equal(row.next_observation, following.observation)


def test_episode_is_the_whole_game_in_raw_scores_and_only_transitions_are_clipped(game):
    scores = [score for score, *_ in game.reference]
    assert game.episode.total_reward == sum(scores)
    assert game.episode.length == len(game.rows)
    assert game.episode.ended == "terminated"
    assert [float(row.reward) for row in game.rows] == [min(score, 1.0) for score in scores]
    assert max(scores) > 1 or game.env.game == "breakout"


# FIRE


def test_fire_is_played_after_a_lost_life_and_stored_in_place_of_what_was_asked(game):
    after_loss = [False, *(bool(infos["life_lost"][0]) for *_, infos in game.watched[:-1])]
    expected = [FIRE if lost else asked for lost, asked in zip(after_loss, game.asked, strict=True)]
    assert [int(infos["action"][0]) for *_, infos in game.watched] == expected
    assert [int(row.action) for row in game.rows] == expected
    assert expected.count(FIRE) >= 2


def test_breakout_gives_a_ball_at_the_start_and_after_each_lost_life_to_who_never_asks_for_it():
    def moves(observation):  # between the bricks and the paddle there is only the ball
        return bool((observation[-1, 50:92] != observation[-2, 50:92]).any())

    env = WatchedEnv("breakout", 1)
    reset_with(env, [0])
    lives_with_ball, terminated = set(), [False]
    while not terminated[0]:
        lives = int(env._lives[0])
        observation, _, terminated, _, infos = env.step(np.array([NOOP]))
        if infos["lives"][0] == lives and len(env.steps) > 4 and moves(observation[0]):
            lives_with_ball.add(lives)
    assert lives_with_ball == {5, 4, 3, 2, 1}
    reference = ReferenceGame("breakout", 0, env.start_frames[0])
    while reference.step(NOOP)[-1] == 5:
        pass
    assert not any(moves(reference.step(NOOP)[0]) for _ in range(40)), "the game does not wait for FIRE"


def test_game_without_fire_plays_what_was_asked_after_a_lost_life():
    env = WatchedEnv("ms_pacman", 1)
    assert "FIRE" not in [action.name for action in env._native.ale.get_action_set()]
    collector = collector_of(env)
    rng = np.random.default_rng(0)
    lost = 0
    while lost < 1:
        asked = rng.integers(9, size=1)
        transitions = collector.step(asked).transitions
        assert transitions.action == asked == env.steps[-1][-1]["action"]
        lost += int(transitions.terminated[0])
        assert len(env.steps) < 500
    asked = np.array([3])
    assert collector.step(asked).transitions.action == asked
    assert env.steps[-2][-1]["life_lost"][0]


# Time limit


def test_time_limit_counts_agent_steps_and_not_the_frames_of_the_reset():
    """The last frame is true: ale-py leaves it out at its own limit, and learning bootstraps from it."""
    env = WatchedEnv("pong", 2, time_limit_steps=40)
    collector = collector_of(env, seed=1)
    seeds = [int(collector._episode_seed(i)) & 0x7FFFFFFF for i in range(2)]
    assert env.start_frames[0] != env.start_frames[1]
    references = [ReferenceGame("pong", seed, frames) for seed, frames in zip(seeds, env.start_frames, strict=True)]
    for step in range(40):
        transitions, episodes, _ = collector.step(np.array([2, 3]))
        finals = [reference.step(action)[0] for reference, action in zip(references, [2, 3], strict=True)]
        _, _, terminated, truncated, _ = env.steps[-1]
        assert truncated.tolist() == [step == 39] * 2
        assert not terminated.any()
        assert not transitions.terminated.any()
        np.testing.assert_array_equal(transitions.next_observation, np.stack(finals))
    assert [(e.length, e.ended) for e in episodes] == [(40, "truncated")] * 2
    following = collector.step(np.array([2, 3])).transitions
    assert following.first.all()
    assert not following.observation[:, :3].any(), "not the first observation of a new game"
    assert not env.steps[-1][3].any()


def test_game_that_ends_at_the_time_limit_is_terminated_and_not_truncated(game):
    env = WatchedEnv(game.env.game, 1, time_limit_steps=len(game.rows))
    collector = collector_of(env, seed=2)
    for row in game.rows:
        _, episodes, _ = collector.step(row.action[None])
    assert [episode.ended for episode in episodes] == ["terminated"]
    assert (env.steps[-1][2][0], env.steps[-1][3][0]) == (True, False)


# Resets and seeds


def test_ended_environment_is_never_begun_behind_our_back():
    env = WatchedEnv("pong", 2, time_limit_steps=3)
    with pytest.raises(UnsupportedEnvironmentError, match="environment 0 of pong"):
        env.step(np.zeros(2, np.int64))
    reset_with(env, [0, 1])
    env.step(np.zeros(2, np.int64))
    env.reset(seed=[7, 7], options={"reset_mask": np.array([True, False])})
    for _ in range(2):
        env.step(np.zeros(2, np.int64))
    for _ in range(2):
        with pytest.raises(UnsupportedEnvironmentError, match="environment 1 of pong has ended: reset it"):
            env.step(np.zeros(2, np.int64))
    env.reset(seed=[8, 8], options={"reset_mask": np.array([False, True])})
    env.step(np.zeros(2, np.int64))


def test_partial_reset_leaves_the_others_alone_and_a_seed_gives_its_game_whatever_was_before():
    """Environment 0 goes on like its undisturbed twin; environment 1 plays the twin's game from its start again."""
    disturbed, twin = AtariVectorEnv("breakout", 2), WatchedEnv("breakout", 2)
    actions = np.random.default_rng(0).integers(4, size=(80, 2))
    first = reset_with(disturbed, [5, 6])
    np.testing.assert_array_equal(first, reset_with(twin, [5, 6]))
    twins = [twin.step(each) for each in actions]
    # In the moment that is worst: a life has just been lost, and FIRE would be played.
    border = 1 + next(step for step, (*_, infos) in enumerate(twins) if infos["life_lost"][1])
    for step in range(2 * border):
        if step == border:
            again, infos = disturbed.reset(seed=[99, 6], options={"reset_mask": np.array([False, True])})
            np.testing.assert_array_equal(again[0], twins[step - 1][0][0])
            np.testing.assert_array_equal(again[1], first[1])
            assert infos["lives"].tolist() == [twins[step - 1][-1]["lives"][0], 5]
        theirs = [twins[step], twins[step % border]]
        observation, _, _, _, infos = disturbed.step(np.array([actions[step, 0], actions[step % border, 1]]))
        for i, (frames, *_, their_infos) in enumerate(theirs):
            np.testing.assert_array_equal(observation[i], frames[i])
            assert [infos[key][i] for key in infos] == [their_infos[key][i] for key in infos]


@pytest.mark.parametrize(("name", "fewest"), [("breakout", 1), ("freeway", 0)])
def test_seeds_give_different_numbers_of_frames_before_the_first_step_at_most_30(name, fewest):
    """FIRE is one of these frames; ale-py draws fewer than `noop_max`, which we ask for as 31."""
    env = WatchedEnv(name, 4)
    reset_with(env, range(4))
    frames = env.start_frames
    assert fewest <= frames.min()
    assert frames.max() <= 30
    assert len(set(frames.tolist())) >= 3


def test_seeds_above_31_bits_are_accepted():
    env = WatchedEnv("freeway", 1)
    large = reset_with(env, [0xFFFFFFFF])
    np.testing.assert_array_equal(large, reset_with(env, [0x7FFFFFFF]))


# Sticky actions


@pytest.mark.parametrize(
    ("name", "chance"),
    [("SpaceInvaders", 0.0), ("space_invaders", 0.0), ("PongDeterministic-v4", 0.0), ("ALE/SpaceInvaders-v5", 0.25)],
)
def test_sticky_actions_are_on_only_where_the_name_is_gymnasiums_v5(name, chance):
    assert default_preprocessing(name)["sticky_actions"] == chance


def test_sticky_games_repeat_from_their_seed_and_differ_from_those_without():
    actions = np.random.default_rng(0).integers(6, size=(60, 1))

    def play(env):
        reset_with(env, [0])
        return digest([env.step(each)[0] for each in actions])

    sticky = AtariVectorEnv("space_invaders", 1, sticky_actions=0.25)
    first = play(sticky)
    assert play(sticky) == first
    assert play(AtariVectorEnv("space_invaders", 1, sticky_actions=0.25)) == first
    assert play(AtariVectorEnv("space_invaders", 1)) != first


# Names


@pytest.mark.parametrize(
    ("name", "rom"),
    [
        ("SpaceInvaders", "space_invaders"),
        ("space_invaders", "space_invaders"),
        ("ALE/SpaceInvaders-v5", "space_invaders"),
        ("SpaceInvadersNoFrameskip-v4", "space_invaders"),
        ("MsPacman", "ms_pacman"),
        ("PrivateEye", "private_eye"),
        ("FishingDerby", "fishing_derby"),
        ("VideoPinball", "video_pinball"),
        ("TimePilot", "time_pilot"),
        ("Hero", "hero"),
        ("Qbert", "qbert"),
        ("CartPole-v1", None),
        ("MinAtar/Breakout-v1", None),
    ],
)
def test_usual_names_find_their_rom(name, rom):
    assert find_game(name) == rom
    assert rom is None or Path(get_rom_path(rom)).is_file()


@pytest.mark.parametrize("name", ["ALE/Pong-v5", "Pong", "PongNoFrameskip-v4", "Pong-v4"])
def test_every_usual_name_gives_the_papers_frames_although_ale_py_registers_some_with_gymnasium(name):
    assert "PongNoFrameskip-v4" in gym.registry
    assert isinstance(make_vec(name, 1), AtariVectorEnv)
    assert default_preprocessing(name)["frame_size"] == (105, 80)


@pytest.mark.parametrize("wrong", ["ALE/SpaceInvader-v5", "SpaceInvader"])
def test_misspelt_game_is_answered_with_the_nearest_name(wrong):
    with pytest.raises(UnsupportedEnvironmentError, match="SpaceInvaders"):
        make_vec(wrong, 1)


@pytest.mark.parametrize("name", ["ALE/Pong-v5", "PongNoFrameskip-v4"])
def test_missing_ale_py_is_answered_with_the_command_that_installs_it(name, monkeypatch):
    for module in [name for name in sys.modules if name.split(".")[0] == "ale_py"]:
        monkeypatch.setitem(sys.modules, module, None)
    for env_id in [env_id for env_id, spec in gym.registry.items() if str(spec.entry_point).startswith("ale_py")]:
        monkeypatch.delitem(gym.registry, env_id)
    for make in (lambda: make_vec(name, 1), lambda: AtariVectorEnv("pong", 1)):
        with pytest.raises(MissingPackageError) as caught:
            make()
        assert "pip install 'cdqn[atari]'" in str(caught.value)
    with pytest.raises(UnsupportedEnvironmentError) as caught:
        make_vec("SpaceInvaders", 1)
    assert "pip install 'cdqn[atari]'" in str(caught.value)
    assert make_vec("CartPole-v1", 1).num_envs == 1


# Resume


def assert_goes_on_the_same(one, other, choose, vector_steps):
    for _ in range(vector_steps):
        actions = choose(one)
        collected, other_collected = one.step(actions), other.step(actions)
        for column, other_column in zip(collected.transitions, other_collected.transitions, strict=True):
            np.testing.assert_array_equal(column, other_column)
        assert collected.episodes == other_collected.episodes
    np.testing.assert_array_equal(one.observation, other.observation)


def test_games_are_resumed_in_the_middle_with_their_lives_and_their_future():
    def make():
        return AtariVectorEnv("breakout", 3, sticky_actions=0.25)

    rng = np.random.default_rng(3)
    straight = collector_of(make(), seed=4)
    while not (straight.env._lives < 5).all() or len(set(straight._length.tolist())) < 3:
        straight.step(rng.integers(4, size=3))
        assert straight.steps < 3 * 500
    state = copy.deepcopy(straight.state_dict())
    resumed = collector_of(make(), seed=4)
    assert resumed.load_state_dict(state) is None
    np.testing.assert_array_equal(resumed.observation, straight.observation)
    np.testing.assert_array_equal(resumed.env._lives, straight.env._lives)
    assert_goes_on_the_same(straight, resumed, lambda _: rng.integers(4, size=3), 100)
    np.testing.assert_array_equal(resumed.env._lives, straight.env._lives)


def test_episodes_of_10_and_of_hundreds_of_steps_are_resumed_together():
    """CartPole 0 is held upright, the others fall again and again and wait while it is played again."""

    def make():
        return SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 3, autoreset_mode=AutoresetMode.DISABLED)

    def choose(collector):
        upright = int(collector.observation[0, 2] + 0.5 * collector.observation[0, 3] > 0)
        return np.array([upright, 0, 1])

    straight = collector_of(make())
    for _ in range(333):
        straight.step(choose(straight))
    state = copy.deepcopy(straight.state_dict())
    assert state["action_counts"][0] == 333
    assert state["action_counts"][1:].max() <= 12
    resumed = collector_of(make())
    assert resumed.load_state_dict(state) is None
    assert_goes_on_the_same(straight, resumed, choose, 200)
