"""γ, μ, σ and r̂ of App. E.3, by hand and against slow twins."""

import math
import time

import numpy as np
import pytest
import torch

from cdqn.calibration import (
    Normalization,
    decompose_sequence,
    denormalize,
    discounted_returns,
    estimate_discount,
    estimate_normalization,
    layer_steps_to_reward,
    normalized_reward,
    return_scale,
    reward_deviation,
    reward_frequency,
    reward_mean,
    steps_to_reward,
)
from cdqn.errors import ConfigError

RNG = np.random.default_rng


def floats(*values):
    return np.array(values, dtype=np.float64)


def spaced(steps, count):
    """`count` rewards, one every `steps` steps."""
    return np.tile(np.eye(1, steps, steps - 1)[0], count)


# l̂ and DecomposeSequence


def slow_layer_steps(layer):
    """Eq. 39 and 40 as printed."""
    top = bottom = 0.0
    for i in range(len(layer)):
        return_i = sum(layer[i:])
        if return_i > 0:
            l_i = min(t for t in range(i, len(layer)) if layer[t] != 0) - i + 1
            top += return_i * l_i
            bottom += return_i
    return top / bottom


def slow_steps(rewards):
    """Alg. 1, lines 2 and 4–9, layer by layer."""
    rest = np.abs(rewards)
    top = bottom = 0.0
    while rest.any():
        layer, rest = decompose_sequence(rest)
        top += layer.sum() * slow_layer_steps(layer)
        bottom += layer.sum()
    return top / bottom


def slow_frequency(episodes):
    """Alg. 1, lines 1–13."""
    top = bottom = 0.0
    for rewards in episodes:
        weight = math.sqrt(np.abs(rewards).sum())
        if weight > 0:
            top += weight * (1 / slow_steps(rewards)) ** 2
            bottom += weight
    return math.sqrt(top / bottom) if bottom else 0.0


def test_every_nonzero_entry_gives_up_the_smallest_nonzero_one():
    layer, rest = decompose_sequence(floats(0, 3, 1, 0, 5))
    assert layer.tolist() == [0, 1, 1, 0, 1]
    assert rest.tolist() == [0, 2, 0, 0, 4]
    layer, rest = decompose_sequence(rest)
    assert layer.tolist() == [0, 2, 0, 0, 2]
    assert rest.tolist() == [0, 0, 0, 0, 2]


def test_the_layers_of_a_sequence_end_and_sum_to_it():
    magnitude = np.abs(RNG(0).normal(size=50)) * (RNG(1).random(50) < 0.6)
    layers, rest = [], magnitude
    while rest.any():
        layer, rest = decompose_sequence(rest)
        assert len(np.unique(layer[layer != 0])) == 1
        layers.append(layer)
    assert len(layers) == np.count_nonzero(magnitude)
    np.testing.assert_allclose(np.sum(layers, axis=0), magnitude, rtol=1e-14)


def test_nothing_is_decomposed_into_nothing():
    layer, rest = decompose_sequence(np.zeros(3))
    assert not layer.any()
    assert not rest.any()


def test_decomposition_asks_for_absolute_values():
    with pytest.raises(ConfigError, match=r"-2\.0.*np\.abs"):
        decompose_sequence(floats(1, -2))


@pytest.mark.parametrize("steps", [1, 2, 7, 30])
def test_equidistant_rewards_are_half_a_gap_away_on_average(steps):
    for rewards in (spaced(steps, 1), spaced(steps, 12)):
        assert layer_steps_to_reward(rewards) == pytest.approx((steps + 1) / 2, rel=1e-14)
        assert steps_to_reward(rewards) == pytest.approx((steps + 1) / 2, rel=1e-14)


def test_distance_of_a_cluster_by_hand():
    """0 0 1 1: R = 2 2 2 1 and l = 3 2 1 1, so l̂ = (6+4+2+1)/7."""
    assert layer_steps_to_reward(floats(0, 0, 1, 1)) == pytest.approx(13 / 7, rel=1e-15)
    assert steps_to_reward(floats(0, 0, 1, 1)) == pytest.approx(13 / 7, rel=1e-15)


def test_clustered_rewards_are_farther_than_equidistant_ones():
    """Four rewards in twelve steps: l̂ is 2 if equidistant; in two clusters of 2 it is longer, in one longer still."""
    two, one = floats(0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1), floats(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1)
    distances = [steps_to_reward(rewards) for rewards in (spaced(3, 4), two, one)]
    assert distances == pytest.approx([2, (4 * 15 + 3 + 2 * 15 + 1) / (20 + 3 + 10 + 1), (4 * 45 + 6) / 42], rel=1e-14)
    assert distances == sorted(distances)


def test_rewards_at_the_end_make_a_longer_horizon_than_rewards_at_the_start():
    late = np.concatenate([np.zeros(90), np.ones(10)])
    assert reward_frequency([late[::-1]]) == 1
    assert reward_frequency([late]) < 0.03
    assert estimate_discount([late]) > estimate_discount([late[::-1]]) == 0.99


def test_steps_after_the_last_reward_do_not_count():
    assert steps_to_reward(floats(0, 0, 1)) == steps_to_reward(floats(0, 0, 1, 0, 0, 0, 0)) == 2


def test_two_sizes_of_reward_by_hand():
    """0 1 0 3: the layer 0 1 0 1 has l̂ = 3/2 and return 2, the layer 0 0 0 2 has l̂ = 5/2 and return 2."""
    assert steps_to_reward(floats(0, 1, 0, 3)) == pytest.approx(2, rel=1e-15)
    assert steps_to_reward(floats(0, -1, 0, 3)) == pytest.approx(2, rel=1e-15)


def test_distance_depends_on_neither_sign_nor_unit():
    rewards = RNG(2).integers(-3, 4, size=60).astype(float)
    wanted = steps_to_reward(rewards)
    assert steps_to_reward(-rewards) == wanted
    assert steps_to_reward(np.abs(rewards)) == wanted
    assert steps_to_reward(1000 * rewards) == pytest.approx(wanted, rel=1e-13)


@pytest.mark.parametrize("seed", range(60))
def test_fast_distance_is_that_of_the_layers(seed):
    rng = RNG(seed)
    length = int(rng.integers(1, 50))
    rewards = rng.normal(size=length) if seed % 2 else rng.integers(-4, 5, size=length).astype(float)
    rewards[rng.random(length) < rng.choice([0, 0.3, 0.9])] = 0
    rewards[rng.integers(length)] = 2.5
    assert steps_to_reward(rewards) == pytest.approx(slow_steps(rewards), rel=1e-12)
    layer = (rewards != 0) * 2.5
    assert layer_steps_to_reward(layer) == pytest.approx(slow_layer_steps(layer), rel=1e-12)


# f and γ


def test_frequency_is_the_mean_square_weighted_by_the_root_of_the_return():
    """f_k = 1 with return 1, and f_k = 1/2 with return 4 (l̂ = 2): f² = (1·1 + 2·¼)/(1 + 2)."""
    episodes = [floats(1), spaced(3, 4)]
    assert reward_frequency(episodes) == pytest.approx(math.sqrt(0.5), rel=1e-14)
    assert reward_frequency([floats(1), -spaced(3, 4)]) == reward_frequency(episodes)


def test_an_episode_of_rewards_that_cancel_still_has_a_frequency():
    assert reward_frequency([floats(0, 1, 0, -1)]) == pytest.approx(2 / 3, rel=1e-14)


def test_episodes_without_reward_do_not_change_the_frequency():
    assert reward_frequency([spaced(5, 3), np.zeros(1000)]) == reward_frequency([spaced(5, 3)])


@pytest.mark.parametrize("seed", range(10))
def test_frequency_is_that_of_the_slow_twin(seed):
    rng = RNG(seed)
    episodes = [
        rng.normal(size=n).round(1) * rng.integers(0, 40) * (rng.random(n) < 0.3) for n in rng.integers(1, 40, 8)
    ]
    assert reward_frequency(episodes) == pytest.approx(slow_frequency(episodes), rel=1e-12)


def test_a_single_reward_in_the_game():
    """l = (200+1)/2 steps on average; with c̃ = 15 the horizon is 15 times that."""
    rewards = spaced(200, 1)
    assert estimate_discount([rewards]) == pytest.approx(1 - 2 / 201 / 15, rel=1e-14)
    assert estimate_discount([rewards], horizon_multiplier=10) == pytest.approx(1 - 2 / 201 / 10, rel=1e-14)


@pytest.mark.parametrize("episodes", [[], [[0.0]], [np.zeros(7), [0, 0]]])
def test_no_reward_gives_the_upper_bound(episodes):
    assert reward_frequency(episodes) == 0
    assert estimate_discount(episodes) == 0.9998
    assert estimate_discount(episodes, bounds=(0.5, 0.9)) == 0.9


def test_discount_stays_within_its_bounds():
    assert estimate_discount([np.ones(10)]) == 0.99
    assert estimate_discount([np.ones(10)], bounds=(0.2, 0.9998)) == pytest.approx(1 - 1 / 15)
    assert estimate_discount([spaced(100_000, 1)]) == 0.9998
    assert estimate_discount([-np.ones(10)], horizon_multiplier=0.5, bounds=(0.2, 0.3)) == 0.2


def test_discount_is_a_plain_float_of_plain_lists():
    gamma = estimate_discount([[0, 0, 1], (0, -1), [True, False]])
    assert type(gamma) is float
    assert type(reward_frequency([[0, 1]])) is float


@pytest.mark.parametrize(
    ("episodes", "message"),
    [
        ([[0, 1], [0, math.nan]], r"episode 1 has the reward nan at step 1: .*finite"),
        ([[0, 1, -math.inf]], r"episode 0 has the reward -inf at step 2"),
        ([[1e300]], r"episode 0 has the reward 1e\+300 at step 0"),
        ([[1], []], r"episode 1 is empty: leave it out"),
        ([0, 1, 0], r"episode 0 has 0 dimensions: .*list of such sequences"),
        ([[[0, 1]]], r"episode 0 has 2 dimensions"),
        ([["a"]], r"episode 0 is \['a'\]: it must be a sequence of rewards"),
    ],
)
def test_bad_episodes_are_named(episodes, message):
    for estimate in (estimate_discount, reward_frequency, lambda e: estimate_normalization(e, 0.99, 0.1)):
        with pytest.raises(ConfigError, match=message):
            estimate(episodes)


@pytest.mark.parametrize("bounds", [(0.9998, 0.99), (0, 0.9), (0.9, 1), (-1, 0.5), (math.nan, 0.9), (0.9,)])
def test_bad_bounds_are_refused(bounds):
    with pytest.raises(ConfigError, match=r"bounds is \(.*: it must be the lowest and the highest γ"):
        estimate_discount([[1]], bounds=bounds)


@pytest.mark.parametrize("multiplier", [0, -1, math.nan, math.inf])
def test_bad_horizon_multipliers_are_refused(multiplier):
    with pytest.raises(ConfigError, match=r"horizon_multiplier is .*: it must be above 0"):
        estimate_discount([], horizon_multiplier=multiplier)


# μ and σ


def slow_returns(rewards, discount):
    """Eq. 41 as printed."""
    return [sum(discount ** (t - i) * rewards[t] for t in range(i, len(rewards))) for i in range(len(rewards))]


def slow_normalization(episodes, gamma, frequency):
    """μ, μ_r, σ_r and σ as printed."""
    episodes = [rewards for rewards in episodes if sum(rewards) != 0]
    returns = [slow_returns(rewards, gamma) for rewards in episodes]
    mean = sum(map(sum, returns)) / sum(map(len, returns))
    mu_r = sum(q[0] * (1 - gamma) / (1 - gamma ** len(q)) for q in returns) / len(returns)
    spread = [
        (q[0] - (1 - gamma ** len(q)) / (1 - gamma) * mu_r) * math.sqrt((1 - gamma**2) / (1 - gamma ** (2 * len(q))))
        for q in returns
    ]
    middle = sum(spread) / len(spread)
    sigma_r = math.sqrt(sum((x - middle) ** 2 for x in spread) / (len(spread) - 1))
    gamma_0 = 1 - frequency / 2
    widths = [math.sqrt((1 - gamma_0 ** (2 * len(q))) / (1 - gamma_0**2)) for q in returns]
    return mean, sigma_r * sum(widths) / len(widths)


def test_discounted_returns_by_hand():
    assert discounted_returns(floats(1, 0, 4), 0.5).tolist() == [2, 2, 4]


@pytest.mark.parametrize("discount", [0, 0.3, 0.99, 1])
def test_discounted_returns_are_those_of_the_slow_twin(discount):
    rewards = RNG(3).normal(size=30)
    np.testing.assert_allclose(discounted_returns(rewards, discount), slow_returns(rewards, discount), atol=1e-13)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("gamma", [0.5, 0.99, 0.9998])
def test_normalization_is_that_of_the_slow_twin(seed, gamma):
    rng = RNG(seed)
    episodes = [rng.normal(0.3, 5, size=n) * (rng.random(n) < 0.5) for n in rng.integers(1, 30, size=6)]
    episodes.insert(2, np.zeros(9))
    frequency = reward_frequency(episodes)
    found = estimate_normalization(episodes, gamma, frequency)
    assert found == pytest.approx(slow_normalization(episodes, gamma, frequency), rel=1e-8)


def test_mean_is_over_states_not_over_episodes():
    """Returns 1, and 3 2 1 under γ = 1: the mean over four states is 7/4, over the two episodes 3/2."""
    assert estimate_normalization([[1], [1, 1, 1]], 1, 0.5).mean == 7 / 4


def test_scale_by_hand():
    """γ = 1: Q₀ = 4 and 8 of 4 steps, μ_r = 3/2; deviations ∓2/√4 = ∓1, so σ_r = √2. γ₀² = ¼: Σ = 85/64."""
    episodes = [floats(0, 0, 0, 4), floats(0, 8, 0, 0)]
    start, length = floats(4, 8), np.array([4, 4])
    assert reward_mean(start, length, 1) == 3 / 2
    assert reward_deviation(start, length, 1) == pytest.approx(math.sqrt(2), rel=1e-15)
    assert return_scale(2, length, 1) == pytest.approx(2 * math.sqrt(85 / 64), rel=1e-15)
    scale = estimate_normalization(episodes, 1, 1).scale
    assert scale == pytest.approx(math.sqrt(2) * math.sqrt(85 / 64), rel=1e-15)


def test_a_discount_next_to_one_keeps_its_digits():
    """1 − γ^T as printed is a small difference of numbers near 1: wrong by 1e-9 here, which `ROUNDING` would miss."""
    gamma, length = 1 - 1e-9, np.arange(5, 60)
    start = np.array([math.fsum(gamma**t for t in range(n)) for n in length])
    for k in range(len(length)):
        assert reward_mean(start[k : k + 1], length[k : k + 1], gamma) == pytest.approx(1, rel=1e-13)


def test_deviation_of_rewards_is_found_again():
    """The paper's own model: i.i.d. rewards, episodes of different lengths."""
    rng = RNG(4)
    episodes = [rng.normal(2, 3, size=n) for n in rng.integers(100, 500, size=4000)]
    start = np.array([discounted_returns(rewards, 0.99)[0] for rewards in episodes])
    length = np.array([len(rewards) for rewards in episodes])
    assert reward_mean(start, length, 0.99) == pytest.approx(2, abs=0.02)
    assert reward_deviation(start, length, 0.99) == pytest.approx(3, rel=0.05)
    expected = 3 / math.sqrt(1 - 0.9**2)
    assert estimate_normalization(episodes, 0.99, 0.2).scale == pytest.approx(expected, rel=0.05)


def test_scale_depends_on_the_discount_only_through_the_estimate():
    """Eq. 44 is there so that c̃_γ does not change the size of a reward: γ near 1, the same σ nearly."""
    rng = RNG(5)
    episodes = [(rng.random(400) < 0.05) * 10.0 for _ in range(500)]
    frequency = reward_frequency(episodes)
    scales = [estimate_normalization(episodes, gamma, frequency).scale for gamma in (0.99, 0.9998)]
    assert scales[0] == pytest.approx(scales[1], rel=0.15)


def test_zero_return_episodes_are_left_out():
    episodes = [floats(0, 2), floats(3, 0, 0), floats(1, 1, 5)]
    wanted = estimate_normalization(episodes, 0.99, 0.3)
    assert estimate_normalization([*episodes, np.zeros(50), floats(7, 0, -7)], 0.99, 0.3) == wanted


@pytest.mark.parametrize("episodes", [[], [np.zeros(5)], [np.zeros(5), [0]]])
def test_without_reward_nothing_is_normalized(episodes):
    assert estimate_normalization(episodes, 0.9998, 0) == (0, 1)


@pytest.mark.filterwarnings("error")
def test_one_episode_takes_the_root_mean_square_reward():
    mean, scale = estimate_normalization([[0, 3, 0, 4], np.zeros(3)], 1, 1)
    assert mean == (7 + 7 + 4 + 4) / 4
    assert scale == pytest.approx(math.sqrt(25 / 4) * math.sqrt(85 / 64), rel=1e-15)


def test_rewards_that_always_cancel_still_have_a_scale():
    mean, scale = estimate_normalization([[5, -5], [5, -5], [0, 0]], 0.99, 1)
    assert mean == pytest.approx((5 - 0.99 * 5 - 5) / 2)
    assert scale == pytest.approx(5 * math.sqrt(1.25), rel=1e-14)


@pytest.mark.parametrize("gamma", [0.9, 0.99, 0.9998, 1 - 1e-9, 1])
@pytest.mark.parametrize("reward", [1.0, -0.1, 1e-30, 1e30])
def test_the_rounding_of_constant_rewards_is_not_taken_for_their_deviation(gamma, reward):
    """CartPole: 1 for each step, episodes of all lengths. Q₀ differs, but μ_r explains all of it: σ_r = 0."""
    episodes = [np.full(n, reward) for n in RNG(6).integers(8, 3000, size=100)]
    mean, scale = estimate_normalization(episodes, gamma, reward_frequency(episodes))
    assert scale == pytest.approx(abs(reward) * math.sqrt(4 / 3), rel=1e-4)
    assert mean * reward > 0


def test_negative_rewards_give_a_negative_mean_and_a_positive_scale():
    episodes = [-spaced(3, n) for n in (1, 5, 2)]
    mean, scale = estimate_normalization(episodes, 0.99, 0.5)
    mirrored = estimate_normalization([-rewards for rewards in episodes], 0.99, 0.5)
    assert mean == -mirrored.mean < 0
    assert scale == mirrored.scale > 0


def test_rewards_too_small_for_float32_are_no_rewards():
    rewards = floats(1e-300, 2e-300)
    assert estimate_normalization([rewards, rewards], 0.99, 0) == (0, 1)
    assert estimate_discount([rewards]) == 0.9998
    assert rewards.tolist() == [1e-300, 2e-300]


@pytest.mark.parametrize("seed", range(40))
def test_estimates_are_always_usable_numbers(seed):
    rng = RNG(seed)
    unit = 10.0 ** rng.integers(-30, 31)
    episodes = [
        unit * rng.integers(-2, 3, size=n) * (rng.random(n) < rng.choice([0.0, 0.1, 1.0]))
        for n in rng.integers(1, 6, size=rng.integers(0, 5))
    ]
    frequency = reward_frequency(episodes)
    gamma = estimate_discount(episodes)
    mean, scale = estimate_normalization(episodes, gamma, frequency)
    assert 0 <= frequency <= 1
    assert 0.99 <= gamma <= 0.9998
    assert math.isfinite(mean)
    assert 0 < scale < math.inf
    assert {type(x) for x in (frequency, gamma, mean, scale)} == {float}


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_bad_discount_and_frequency_are_refused(value):
    with pytest.raises(ConfigError, match=r"discount is .*between 0 and 1"):
        estimate_normalization([[1]], value, 0.5)
    with pytest.raises(ConfigError, match=r"reward_frequency is .*between 0 and 1"):
        estimate_normalization([[1]], 0.99, value)


# r̂

SOME = Normalization(mean=12.0, scale=4.0)


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_normalized_reward_by_hand(kind):
    reward, terminated = kind([2.0, 2.0]), kind([False, True])
    found = normalized_reward(reward, terminated, 0.75, SOME)
    assert type(found) is type(reward)
    assert found.tolist() == [(2 - 3) / 4, (2 - 12) / 4]
    assert denormalize(kind([0.0, 1.0, -3.0]), SOME).tolist() == [12, 16, 0]


def test_normalized_reward_keeps_the_type_of_number():
    for dtype in (torch.float32, torch.float64):
        reward = torch.ones(3, dtype=dtype)
        assert normalized_reward(reward, torch.ones(3, dtype=torch.bool), 0.9, SOME).dtype == dtype
        assert denormalize(reward, SOME).dtype == dtype
    reward_32 = np.ones(3, dtype=np.float32)
    assert normalized_reward(reward_32, np.ones(3, dtype=bool), 0.9, SOME).dtype == np.float32
    assert denormalize(reward_32, SOME).dtype == np.float32


@pytest.mark.parametrize("gamma", [0.5, 0.99, 0.9998])
def test_normalized_q_obeys_the_bellman_equation(gamma):
    """A chain of 6 states: 'on' moves right and pays r(s), 'out' ends with r_out(s). Q* exactly, by backward induction
    from the last state, whose 'on' ends too. Then Q̂* is the fixed point of r̂ + γ max Q̂*(s′), and of no other r̂."""
    rng = RNG(7)
    reward_SA = rng.normal(3, 10, size=(6, 2))
    terminated_SA = np.zeros((6, 2), dtype=bool)
    terminated_SA[:, 1] = terminated_SA[-1, 0] = True
    q_SA = np.empty((6, 2))
    for s in reversed(range(6)):
        following = 0 if s == 5 else gamma * q_SA[s + 1].max()
        q_SA[s] = reward_SA[s] + np.where(terminated_SA[s], 0, following)
    normalization = Normalization(mean=float(q_SA.mean()), scale=float(q_SA.std()))
    normalized_SA = (q_SA - normalization.mean) / normalization.scale
    next_S = np.append(normalized_SA.max(axis=1)[1:], np.nan)
    target_SA = normalized_reward(reward_SA, terminated_SA, gamma, normalization) + np.where(
        terminated_SA, 0, gamma * next_S[:, None]
    )
    np.testing.assert_allclose(target_SA, normalized_SA, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(denormalize(normalized_SA, normalization), q_SA, rtol=1e-12)


@pytest.mark.parametrize("kind", ["continuous", "sparse"])
def test_a_hundred_episodes_of_twenty_thousand_steps_take_below_a_second(kind):
    rng = RNG(10)
    episodes = [rng.normal(size=20_000) for _ in range(100)]
    if kind == "sparse":
        episodes = [np.round(rewards) * (rng.random(20_000) < 0.02) for rewards in episodes]
    estimate_normalization(episodes[:1], 0.99, reward_frequency(episodes[:1]))  # compiles, once per installation
    seconds = math.inf
    for _ in range(3):
        start = time.process_time()
        estimate_normalization(episodes, estimate_discount(episodes), 0.1)
        seconds = min(seconds, time.process_time() - start)
    assert seconds < 1
