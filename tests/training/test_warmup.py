"""What the rewards of the warm-up tell: the record, the scale of rewards alone, and the note."""

import math

import numpy as np
import pytest

from cdqn.calibration import (
    estimate_discount,
    estimate_normalization,
    normalized_reward,
    reward_frequency,
)
from cdqn.storage.checkpoint import load_checkpoint, save_checkpoint
from cdqn.training.warmup import RewardRecord, RewardScale, calibrate

RNG = np.random.default_rng


def floats(*values):
    return np.array(values, dtype=np.float64)


def recorded(steps, num_envs=1):
    record = RewardRecord(num_envs)
    for step in steps:
        record.add(*(np.array(column) for column in step))
    return record


def lists(episodes):
    return [rewards.tolist() for rewards in episodes]


def test_a_lost_life_ends_a_life_and_only_a_game_over_a_game():
    record = recorded([([1.0], [False], [False]), ([2.0], [True], [False]), ([3.0], [True], [True]), ([4.0], [0], [0])])
    assert lists(record.lives) == [[1, 2], [3]]
    assert lists(record.games) == [[1, 2, 3]]


def test_a_game_over_ends_the_life_even_if_the_caller_forgets():
    record = recorded([([1.0], [False], [True]), ([2.0], [False], [True])])
    assert lists(record.lives) == lists(record.games) == [[1], [2]]


def test_environments_are_recorded_apart():
    no, yes = False, True
    record = recorded(
        [([1.0, 10.0], [no, no], [no, no]), ([2.0, 20.0], [no, yes], [no, yes]), ([3.0, 30.0], [yes, no], [yes, no])], 2
    )
    assert lists(record.games) == [[10, 20], [1, 2, 3]]


def test_a_step_that_only_resets_is_not_recorded():
    """NEXT_STEP environments return reward 0 from it: it would lengthen the next episode by one step."""
    off, on = np.array([False]), np.array([True])
    record = RewardRecord(1)
    record.add(floats(1), on, on, real_N=on)
    record.add(floats(0), off, off, real_N=off)
    record.add(floats(5), on, on, real_N=on)
    assert lists(record.lives) == lists(record.games) == [[1], [5]]


def test_a_restart_of_the_environments_does_not_join_two_episodes():
    record = recorded([([1.0], [True], [False]), ([2.0], [False], [False])])
    record.drop_open()
    record.add(floats(3), np.array([True]), np.array([True]))
    assert lists(record.lives) == [[1], [3]]
    assert lists(record.games) == [[3]]


def random_steps(seed, count, num_envs):
    rng = RNG(seed)
    for _ in range(count):
        game_over = rng.random(num_envs) < 0.03
        yield (rng.random(num_envs) < 0.2).astype(np.float32) / 3, game_over | (rng.random(num_envs) < 0.1), game_over


@pytest.mark.parametrize("killed_at", [0, 1, 57, 200])
def test_a_killed_run_goes_on_with_the_same_record(tmp_path, killed_at):
    steps = list(random_steps(8, 200, 3))
    whole = recorded(steps, 3)
    record = recorded(steps[:killed_at], 3)
    save_checkpoint(tmp_path, killed_at, {"record": record.state_dict()})
    resumed = RewardRecord(3)
    resumed.load_state_dict(load_checkpoint(tmp_path)["record"])
    for step in steps[killed_at:]:
        resumed.add(*step)
    assert lists(resumed.lives) == lists(whole.lives)
    assert lists(resumed.games) == lists(whole.games)
    assert calibrate(resumed) == calibrate(whole)


def test_a_saved_record_does_not_change_with_the_living_one():
    record = recorded([([1.0], [False], [False])])
    state = record.state_dict()
    record.add(floats(2), np.array([True]), np.array([True]))
    again = RewardRecord(1)
    again.load_state_dict(state)
    again.add(floats(7), np.array([True]), np.array([True]))
    assert lists(again.games) == [[1, 7]]
    assert lists(record.games) == [[1, 2]]


def scale_of(*steps):
    scale = RewardScale()
    for rewards in steps:
        scale.add(np.array(rewards, np.float32))
    return scale


def test_scale_is_the_root_mean_square_of_rewards_that_are_not_zero():
    """1, −7 and 5: √((1 + 49 + 25)/3) = 5, however many zeros there are."""
    found = scale_of([1, 0, 0], [-7, 0, 5], [0, 0, 0]).calibration(0.9)
    assert (found.gamma, found.mean, found.scale) == (0.9, 0.0, 5.0)
    assert "divided by 5," in found.note
    assert scale_of([1, -7, 5]).calibration(0.9) == found


def test_normalized_reward_is_divided_by_the_scale_at_the_end_of_an_episode_too():
    found = scale_of([4, 0]).calibration(0.9)
    reward = normalized_reward(floats(4, -8), np.array([False, True]), found.gamma, found.normalization)
    assert reward.tolist() == [1.0, -2.0]


@pytest.mark.parametrize("steps", [[], [[0, 0], [0, 0]]], ids=["no steps", "zeros"])
def test_without_reward_the_scale_is_1_and_the_note_says_so(steps):
    found = scale_of(*steps).calibration(0.9)
    assert found.scale == 1.0
    assert found.note == "no reward has been seen so far: rewards are learned as they are"


def test_scale_goes_on_where_it_was_saved():
    one, other = scale_of([3, 0]), RewardScale()
    other.load_state_dict(one.state_dict())
    for scale in (one, other):
        scale.add(floats(0, 5))
    assert one.calibration(0.9) == other.calibration(0.9)
    assert other.calibration(0.9).scale == math.sqrt(17)


def test_calibration_takes_gamma_from_lives_and_the_scale_from_games():
    record = recorded(random_steps(9, 3000, 4), 4)
    frequency = reward_frequency(record.lives)
    found = calibrate(record, horizon_multiplier=10, bounds=(0.9, 0.999))
    assert found.reward_frequency == frequency != reward_frequency(record.games)
    assert found.gamma == 1 - frequency / 10 == estimate_discount(record.lives, 10, (0.9, 0.999))
    assert found.normalization == estimate_normalization(record.games, found.gamma, frequency)
    assert found.normalization == (found.mean, found.scale)
    assert found.episodes == len(record.games) > 100
    assert f"rewards per step in {len(record.lives)} episodes: γ = 0.9" in found.note
    assert f"from {sum(game.any() for game in record.games)} games of nonzero return" in found.note
    assert "bound" not in found.note
    assert "root mean square" not in found.note


SPREADLESS = ", and from the root mean square reward, as there is no spread between games"


def test_note_says_how_frequent_equidistant_rewards_are():
    steps = [([float(r)], [last := i == 19], [last]) for _ in range(2) for i, r in enumerate([0, 0, 0, 0, 1] * 4)]
    note = calibrate(recorded(steps)).note
    assert note.startswith("about 0.2 rewards per step in 2 episodes: γ = 0.99, the lower bound; μ = ")
    assert note.endswith(" from 2 games of nonzero return" + SPREADLESS)


@pytest.mark.parametrize(
    ("steps", "gamma", "note"),
    [
        (
            [([1.0], [False], [False])],
            0.9998,
            "no episode was completed (raise warmup_steps): γ = 0.9998, the upper bound; "
            "without a completed game (raise warmup_steps) Q is not normalised",
        ),
        (
            [([0.0], [True], [True])],
            0.9998,
            "no reward in 1 episode: γ = 0.9998, the upper bound; without a reward Q is not normalised",
        ),
        (
            [([1.0], [True], [False])],
            0.99,
            "about 1 rewards per step in 1 episode: γ = 0.99, the lower bound; "
            "without a completed game (raise warmup_steps) Q is not normalised",
        ),
        (
            [([1.0], [False], [False]), ([-1.0], [True], [True])],
            0.99,
            "about 1 rewards per step in 1 episode: γ = 0.99, the lower bound; μ = -0.495, σ = 1.118 from 1 game "
            "of zero return, as there is no other" + SPREADLESS,
        ),
    ],
)
def test_note_names_the_fallback(steps, gamma, note):
    found = calibrate(recorded(steps))
    assert found.gamma == gamma
    assert found.note == note
