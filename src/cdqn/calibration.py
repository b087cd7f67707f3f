"""γ from the frequency of rewards, and μ, σ that bring Q to unit scale (App. E.3, Alg. 1).

Data flow, from the first random play to the reward that is learned from:

    record = RewardRecord(num_envs); record.add(...)        raw rewards, cut into lives and into games
    f      = reward_frequency(record.lives)                 Alg. 1: a lost life ends an episode
    γ      = estimate_discount(record.lives)                1 − f/c̃_γ, within bounds
    μ, σ   = estimate_normalization(record.games, γ, f)     Eq. 41–44: only a game over ends an episode
    r̂      = normalized_reward(r, terminated, γ, (μ, σ))    Eq. 45, 46: the network learns Q̂ = (Q−μ)/σ

`cdqn.training.warmup.calibrate` does all of it. An episode is the sequence of its rewards.
Suffixes: T the steps of an episode, K the episodes, N the environments.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import torch
from numba import njit
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from cdqn.errors import ConfigError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Values = TypeVar("Values", Tensor, NDArray[Any])
Numbers = TypeVar("Numbers", Tensor, NDArray[Any], float)
Function = TypeVar("Function", bound=Callable[..., Any])

ROUNDING = 1e-9
"""A spread below this share of what spreads is rounding: CartPole pays 1 for each step, and has none."""


class Normalization(NamedTuple):
    """Q̂ = (Q − mean)/scale."""

    mean: float
    """μ"""
    scale: float
    """σ, above 0"""


def estimate_discount(
    episodes: Iterable[ArrayLike], horizon_multiplier: float = 15, bounds: tuple[float, float] = (0.99, 0.9998)
) -> float:
    """γ = 1 − f/c̃_γ within `bounds` (App. E.3): a horizon of c̃_γ/f steps. No reward seen: the upper bound.

    `episodes` are reward sequences, complete and unclipped; `horizon_multiplier` is c̃_γ, 5 to 15 in the paper.
    """
    return discount_for(reward_frequency(episodes), horizon_multiplier, bounds)


def reward_frequency(episodes: Iterable[ArrayLike]) -> float:
    """f of Alg. 1, between 0 (no reward) and 1 (the same reward at each step); f/2 is roughly rewards per step.

    The root mean square of 1/l_k over the episodes, weighted by w_k = √R₀ of the absolute rewards. Episodes without
    reward have weight 0. The order in time matters: late rewards give a smaller f than the same rewards early.
    """
    rewarded = [rewards for rewards in checked_episodes(episodes) if rewards.any()]
    if not rewarded:
        return 0.0
    weight_K = np.sqrt([np.abs(rewards).sum() for rewards in rewarded])
    frequency_K = 1 / np.array([steps_to_reward(rewards) for rewards in rewarded])
    return math.sqrt((weight_K * frequency_K**2).sum() / weight_K.sum())


def decompose_sequence(magnitude_T: Floats) -> tuple[Floats, Floats]:
    """DecomposeSequence of Alg. 1: the lowest layer of absolute rewards, and the rest above it.

    r′ is the smallest *nonzero* entry, and every nonzero entry gives up r′. (As printed r′ may be the 0 of a step
    without reward, and the loop around it would never end.)
    """
    if (magnitude_T < 0).any():
        raise ConfigError(
            f"decompose_sequence got the reward {magnitude_T.min()}: Alg. 1 takes absolute values first; use np.abs"
        )
    if not magnitude_T.any():
        return magnitude_T.copy(), magnitude_T.copy()
    layer_T = np.where(magnitude_T == 0, 0.0, magnitude_T[magnitude_T != 0].min())
    return layer_T, magnitude_T - layer_T


def layer_steps_to_reward(layer_T: Floats) -> float:
    """l̂ of Eq. 40, for rewards that are 0 or one constant: the mean of l_i, weighted by the return R_i (Eq. 39).

    l_i counts the steps from i to the next reward, its own included: 1 where step i has one. After the last reward
    R_i = 0, so those steps do not count.
    """
    return_T = np.cumsum(layer_T[::-1])[::-1]
    step_T = np.arange(len(layer_T))
    next_T = np.minimum.accumulate(np.where(layer_T == 0, len(layer_T), step_T)[::-1])[::-1]
    return float((return_T * (next_T - step_T + 1)).sum() / return_T.sum())


def steps_to_reward(rewards_T: Floats) -> float:
    """l_k of Alg. 1, lines 2 and 4–9: the mean of l̂ over the layers of |r|, weighted by their rewards.

    Equal to `decompose_sequence` and `layer_steps_to_reward` in turn, but O(T log T): rewards from a continuum have
    as many layers as steps. There must be a reward.
    """
    step = np.flatnonzero(rewards_T)
    magnitude = np.abs(rewards_T[step])
    return _layered_steps(step, magnitude, np.argsort(magnitude, kind="stable"))


def estimate_normalization(episodes: Iterable[ArrayLike], discount: float, reward_frequency: float) -> Normalization:
    """μ, the mean discounted return over all states of the episodes, and σ of Eq. 44.

    Episodes of zero return are left out (App. E.3). Where that leaves too little, never NaN and never σ = 0:
    - rewards, but each episode's cancel: these episodes are used after all;
    - one episode, or no spread between them: σ_r is the root mean square reward. The paper takes rewards as i.i.d.,
      and a single episode knows no more than their size; where rewards are rare it is their standard deviation;
    - no reward, or no episode: μ = 0, σ = 1, which is no normalisation, because nothing is known.
    """
    if not 0 <= discount <= 1:
        raise ConfigError(f"discount is {discount!r}: it must be between 0 and 1")
    if not 0 <= reward_frequency <= 1:
        raise ConfigError(
            f"reward_frequency is {reward_frequency!r}: it must be between 0 and 1, as reward_frequency() gives it"
        )
    return normalization_from(checked_episodes(episodes), discount, reward_frequency)[0]


def discounted_returns(rewards_T: Floats, discount: float) -> Floats:
    """Q_{i;k} of Eq. 41, for each step i of an episode."""
    return _discounted_returns(rewards_T, discount)


def reward_mean(start_return_K: Floats, length_K: Ints, discount: float) -> float:
    """μ_r, below Eq. 42: the reward per step that would give the returns Q_{0;k}, averaged over the episodes."""
    return float((start_return_K / _geometric_sum(discount, length_K)).mean())


def reward_deviation(start_return_K: Floats, length_K: Ints, discount: float) -> float:
    """σ_r, below Eq. 43: the spread of Q_{0;k} between episodes, brought back to one reward (ddof 1).

    0 where there is one episode, or nothing but rounding between them.
    """
    if len(start_return_K) < 2:
        return 0.0
    mean_r = reward_mean(start_return_K, length_K, discount)
    root_K = np.sqrt(_geometric_sum(discount**2, length_K))
    deviation_K = (start_return_K - _geometric_sum(discount, length_K) * mean_r) / root_K
    sigma_r = float(deviation_K.std(ddof=1))
    return sigma_r if sigma_r > ROUNDING * np.abs(start_return_K / root_K).max() else 0.0


def return_scale(sigma_r: float, length_K: Ints, reward_frequency: float) -> float:
    """σ of Eq. 44: the deviation of Q_{0;k} under γ₀ = 1 − f/2, which does not depend on c̃_γ."""
    gamma_0 = 1 - reward_frequency / 2
    return sigma_r * float(np.sqrt(_geometric_sum(gamma_0**2, length_K)).mean())


def normalized_reward(reward: Values, terminated: Values, discount: float, normalization: Normalization) -> Values:
    """r̂, Eq. 45 and 46: (r − (1−γ)μ)/σ, at a terminal step (r − μ)/σ. For arrays and for tensors.

    A truncated step is not terminal: Q̂ of its next state is still to come.
    """
    mean, scale = normalization
    going_on = (reward - (1 - discount) * mean) / scale
    ended = (reward - mean) / scale
    if isinstance(going_on, Tensor):
        return torch.where(terminated, ended, going_on)
    return np.where(terminated, ended, going_on)


def denormalize(q: Numbers, normalization: Normalization) -> Numbers:
    """Q = σ Q̂ + μ."""
    return normalization.scale * q + normalization.mean


def discount_for(frequency: float, horizon_multiplier: float, bounds: tuple[float, float]) -> float:
    """1 − f/c̃_γ within the bounds."""
    if not 0 < horizon_multiplier < math.inf:
        raise ConfigError(f"horizon_multiplier is {horizon_multiplier!r}: it must be above 0; the paper has 5 to 15")
    if len(bounds) != 2 or not 0 < bounds[0] <= bounds[1] < 1:
        raise ConfigError(
            f"bounds is {bounds!r}: it must be the lowest and the highest γ, in this order, between 0 and 1"
        )
    low, high = bounds
    return float(min(max(1 - frequency / horizon_multiplier, low), high))


def normalization_from(episodes: list[Floats], discount: float, frequency: float) -> tuple[Normalization, str]:
    """μ and σ, and what to tell the user of them."""
    rewarded = [rewards for rewards in episodes if rewards.any()]
    if not rewarded:
        why = "without a reward" if episodes else "without a completed game (raise warmup_steps)"
        return Normalization(0.0, 1.0), f"{why} Q is not normalised"
    used = [rewards for rewards in rewarded if rewards.sum() != 0]
    basis = f"{counted(len(used), 'game')} of nonzero return"
    if not used:
        used, basis = rewarded, f"{counted(len(rewarded), 'game')} of zero return, as there is no other"
    returns = [discounted_returns(rewards, discount) for rewards in used]
    length_K = np.array([len(rewards) for rewards in used])
    sigma_r = reward_deviation(np.array([q[0] for q in returns]), length_K, discount)
    if sigma_r == 0:
        sigma_r = math.sqrt(np.square(np.concatenate(used)).mean())
        basis += ", and from the root mean square reward, as there is no spread between games"
    mean, scale = float(np.concatenate(returns).mean()), return_scale(sigma_r, length_K, frequency)
    return Normalization(mean, scale), f"μ = {mean:.4g}, σ = {scale:.4g} from {basis}"


def _geometric_sum(ratio: float, length_K: Ints) -> Floats:
    """Σ_{t<T} ratio^t = (1 − ratio^T)/(1 − ratio), without cancellation near 1, and with its limits at 0 and 1."""
    if ratio in (0, 1):
        return (length_K if ratio else np.ones_like(length_K)).astype(np.float64)
    return cast(Floats, -np.expm1(length_K * math.log(ratio)) / (1 - ratio))


def checked_episodes(episodes: Iterable[ArrayLike]) -> list[Floats]:
    """The episodes as arrays; a reward too small for float32, in which the networks learn, is 0."""
    return [_checked_episode(index, rewards) for index, rewards in enumerate(episodes)]


def _checked_episode(index: int, rewards: ArrayLike) -> Floats:
    try:
        rewards_T = np.array(rewards, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"episode {index} is {rewards!r}: it must be a sequence of rewards") from error
    if rewards_T.ndim != 1:
        raise ConfigError(
            f"episode {index} has {rewards_T.ndim} dimensions: it must be one sequence of rewards; "
            "give a list of such sequences, one per episode"
        )
    if rewards_T.size == 0:
        raise ConfigError(f"episode {index} is empty: leave it out, an episode has at least one step")
    limits = np.finfo(np.float32)
    magnitude_T = np.abs(rewards_T)
    bad = np.flatnonzero(~(magnitude_T <= limits.max))
    if bad.size:
        raise ConfigError(
            f"episode {index} has the reward {rewards_T[bad[0]]} at step {bad[0]}: rewards must be finite numbers "
            f"up to {limits.max:.2g}; fix the environment or the data"
        )
    rewards_T[magnitude_T < limits.tiny] = 0
    return rewards_T


def counted(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _compiled(function: Function) -> Function:
    """numba.njit, which has no types of its own."""
    return cast(Function, njit(cache=True)(function))


@_compiled
def _discounted_returns(rewards_T: Floats, discount: float) -> Floats:
    return_T = np.empty_like(rewards_T)
    following = 0.0
    for i in range(rewards_T.size - 1, -1, -1):
        following = rewards_T[i] + discount * following
        return_T[i] = following
    return return_T


@_compiled
def _tree_add(tree: Floats, place: int, alive: float, steps: float) -> None:
    """Add to one entry of a Fenwick tree, which holds prefix sums under single changes."""
    node = place + 1
    while node < len(tree):
        tree[node, 0] += alive
        tree[node, 1] += steps
        node += node & -node


@_compiled
def _tree_before(tree: Floats, place: int) -> tuple[float, float]:
    """The sums over the entries before `place`."""
    alive = steps = 0.0
    node = place
    while node > 0:
        alive += tree[node, 0]
        steps += tree[node, 1]
        node -= node & -node
    return alive, steps


@_compiled
def _layered_steps(step: Ints, magnitude: Floats, ascending: Ints) -> float:
    """l_k, from the steps that have a reward, its magnitude, and their order by magnitude.

    A layer is the set of rewards of at least its height. Let g be the gap before such a reward, with l_i = g … 1 in
    it, and c the rewards from there on, which is R_i in units of r′. Then l̂ = Σ c g(g+1)/2 / Σ c g, and Σ c g is the
    sum of (step + 1). The next layer lacks the smallest reward: its gap joins the one behind it, and c falls by one
    for all before it. Sums are float64, exact up to episodes of half a million steps.
    """
    count = step.size
    gap = np.empty(count)
    left, right = np.arange(-1, count - 1), np.arange(1, count + 1)
    tree = np.zeros((count + 1, 2))  # of the rewards still there: their number, and g(g+1)/2
    numerator = denominator = 0.0
    for q in range(count):
        gap[q] = step[q] + 1 if q == 0 else step[q] - step[q - 1]
        steps = gap[q] * (gap[q] + 1) / 2
        _tree_add(tree, q, 1.0, steps)
        numerator += (count - q) * steps
        denominator += step[q] + 1
    weighted = total = below = 0.0
    for removed in range(count):
        q = ascending[removed]
        layer_return = (magnitude[q] - below) * (count - removed)  # 0 while rewards are equal: one layer
        weighted += layer_return * (numerator / denominator)
        total += layer_return
        below = magnitude[q]

        alive_before, steps_before = _tree_before(tree, q)
        following = count - removed - alive_before - 1
        steps = gap[q] * (gap[q] + 1) / 2
        numerator -= steps_before + (following + 1) * steps
        denominator -= step[q] + 1
        _tree_add(tree, q, -1.0, -steps)
        if left[q] >= 0:
            right[left[q]] = right[q]
        if right[q] < count:
            behind = right[q]
            left[behind] = left[q]
            # (g+h)(g+h+1)/2 − h(h+1)/2 with h the gap behind
            growth = steps + gap[q] * gap[behind]
            gap[behind] += gap[q]
            _tree_add(tree, behind, 0.0, growth)
            numerator += following * growth
    return weighted / total
