"""Section 3's mathematics: finite deterministic tasks, the update rules of a Q table, and how far it is from Q*.

A table is `q_SA`, S the states, A the actions; a pair that does not exist (a move into a wall) holds −∞, so that it
never is the maximum. A *pair* is s·A + a. The rules change the table in place; each is one step of gradient
descent, with the learning rate α, on ½δ² of the loss in `cdqn.losses` that has the same name.

Randomness comes as numbers: who calls draws the pairs or the uniform numbers, and the loops here are functions of them.
Every compiled function lives in this file: numba's cache notices a change of the file a function is written in.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cdqn.errors import ConfigError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LABELS = {"q_table": "Q-table", "rg": "RG", "cdqn": "C-DQN"}
"""The algorithms of tables as people read them."""
Q_TABLE, RG, RG_SPLIT = 0, 1, 2
"""Rules of `learn_pairs` and `learn_online`: Eq. 3; Eq. 8; Eq. 8 with the equal-action rule of App. F."""

EQUAL = 1e-10
"""Actions whose values differ by less are equal, for the random choice and the equal-action rule; as the authors'."""


class FiniteMDP(NamedTuple):
    """A deterministic task with S states that can be acted in and A actions; every array is (S, A)."""

    next_state: Ints
    """0 where the episode ends, and never read there."""
    reward: Floats
    terminal: Bools
    valid: Bools
    """Whether the pair exists."""
    start: int


def initial_q(mdp: FiniteMDP) -> Floats:
    """Q = 0, and −∞ where there is no such action."""
    return np.where(mdp.valid, 0.0, -np.inf)


def all_pairs(mdp: FiniteMDP) -> Ints:
    """The pairs s·A + a that exist."""
    return np.flatnonzero(mdp.valid).astype(np.int64)


def optimal_q(mdp: FiniteMDP, discount: float, sweeps: int = 100_000) -> Floats:
    """Q* of the Bellman equation, Eq. 2, by value iteration from Q = 0 until nothing changes by more than rounding."""
    q_SA = initial_q(mdp)
    for _ in range(sweeps):
        next_value_SA = np.where(mdp.terminal, 0.0, q_SA.max(1)[mdp.next_state])
        new_SA = np.where(mdp.valid, mdp.reward + discount * next_value_SA, -np.inf)
        change = np.abs(new_SA[mdp.valid] - q_SA[mdp.valid]).max()
        q_SA = new_SA
        if change <= 1e-13 * max(1.0, np.abs(q_SA[mdp.valid]).max()):
            return q_SA
    raise ConfigError(f"value iteration with discount {discount} has not converged in {sweeps} sweeps: is Q* finite?")


# One update ---------------------------------------------------------------------------------------------
#
# The rules take a transition as plain numbers, not the task: each array handed to a compiled function is counted
# there and back, which made an update seven times slower.


@njit(cache=True, nogil=True)
def best_action(q_SA: Floats, state: int) -> int:
    """The first action that has the largest value."""
    best, largest = 0, q_SA[state, 0]
    for action in range(1, q_SA.shape[1]):
        better = q_SA[state, action] > largest
        best, largest = (action, q_SA[state, action]) if better else (best, largest)
    return best


@njit(cache=True, nogil=True)
def q_table_step(
    q_SA: Floats,
    state: int,
    action: int,
    reward: float,
    next_state: int,
    terminal: bool,
    discount: float,
    learning_rate: float,
) -> None:
    """Q-table learning, Eq. 3: Q(s, a) moves towards its target, and nothing else does."""
    next_value = 0.0 if terminal else q_SA[next_state, best_action(q_SA, next_state)]
    q_SA[state, action] += learning_rate * (reward + discount * next_value - q_SA[state, action])


@njit(cache=True, nogil=True)
def rg_step(
    q_SA: Floats,
    state: int,
    action: int,
    reward: float,
    next_state: int,
    terminal: bool,
    discount: float,
    learning_rate: float,
) -> None:
    """The residual gradient, Eq. 8: as Q(s, a) moves by Δ, max Q(s′) moves by −γΔ.

    Of equal maximal actions the first one moves, as in the gradient of `losses.msbe_target`.
    """
    if terminal:
        q_SA[state, action] += learning_rate * (reward - q_SA[state, action])
        return
    best = best_action(q_SA, next_state)
    change = learning_rate * (reward + discount * q_SA[next_state, best] - q_SA[state, action])
    q_SA[state, action] += change
    q_SA[next_state, best] -= discount * change


@njit(cache=True, nogil=True)
def rg_split_step(
    q_SA: Floats,
    state: int,
    action: int,
    reward: float,
    next_state: int,
    terminal: bool,
    discount: float,
    learning_rate: float,
) -> None:
    """As `rg_step`, but equal maximal actions share the change of s′ (App. F): its greedy policy stays what it is."""
    if terminal:
        q_SA[state, action] += learning_rate * (reward - q_SA[state, action])
        return
    largest = q_SA[next_state, best_action(q_SA, next_state)]
    change = learning_rate * (reward + discount * largest - q_SA[state, action])
    share = discount * change / count_equal(q_SA, next_state, largest)
    for k in range(q_SA.shape[1]):
        if largest - q_SA[next_state, k] < EQUAL:
            q_SA[next_state, k] -= share
    q_SA[state, action] += change


@njit(cache=True, nogil=True)
def cdqn_step(
    q_SA: Floats,
    target_SA: Floats,
    state: int,
    action: int,
    reward: float,
    next_state: int,
    terminal: bool,
    discount: float,
    learning_rate: float,
) -> bool:
    """C-DQN, Eq. 12, on a table: the step of the larger of ℓ_DQN and ℓ_MSBE; a tie takes ℓ_DQN. True if that is it."""
    target_next = 0.0 if terminal else target_SA[next_state, best_action(target_SA, next_state)]
    online_next = 0.0 if terminal else q_SA[next_state, best_action(q_SA, next_state)]
    dqn_delta = reward + discount * target_next - q_SA[state, action]
    msbe_delta = reward + discount * online_next - q_SA[state, action]
    on_dqn_branch: bool = abs(dqn_delta) >= abs(msbe_delta)
    if on_dqn_branch:
        q_SA[state, action] += learning_rate * dqn_delta
    else:
        rg_step(q_SA, state, action, reward, next_state, terminal, discount, learning_rate)
    return on_dqn_branch


@njit(cache=True, nogil=True)
def dcdqn_step(
    q_SA: Floats,
    target_SA: Floats,
    slow_SA: Floats,
    mean_SA: Floats,
    state: int,
    action: int,
    reward: float,
    next_state: int,
    terminal: bool,
    discount: float,
    learning_rate: float,
    mean_learning_rate: float,
) -> bool:
    """DC-DQN (docs/denoised.md) on a table, for tasks with noise: C-DQN's step with the reward r + V(s, a) − y_slow.

    `mean_SA` is V, which moves towards y_slow, the target of the slow copy. True if the step was ℓ_DQN's.
    """
    slow_next = 0.0 if terminal else slow_SA[next_state, best_action(slow_SA, next_state)]
    correction = mean_SA[state, action] - (reward + discount * slow_next)
    mean_SA[state, action] -= mean_learning_rate * correction
    return cdqn_step(q_SA, target_SA, state, action, reward + correction, next_state, terminal, discount, learning_rate)


# Choosing actions ---------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def count_equal(q_SA: Floats, state: int, largest: float) -> int:
    """How many actions share the largest value."""
    count = 0
    for action in range(q_SA.shape[1]):
        if largest - q_SA[state, action] < EQUAL:
            count += 1
    return count


@njit(cache=True, nogil=True)
def choose_equal(q_SA: Floats, state: int, uniform: float) -> int:
    """A greedy action; `uniform` of [0, 1) decides between equal ones."""
    chosen = best_action(q_SA, state)
    largest = q_SA[state, chosen]
    remaining = int(uniform * count_equal(q_SA, state, largest))
    for action in range(q_SA.shape[1]):
        if largest - q_SA[state, action] < EQUAL:
            chosen = action
            if remaining == 0:
                break
            remaining -= 1
    return chosen


@njit(cache=True, nogil=True)
def choose_valid(valid_SA: Bools, state: int, uniform: float) -> int:
    """Any action that exists; `uniform` of [0, 1) decides which."""
    remaining, chosen = int(uniform * valid_SA[state].sum()), 0
    for action in range(valid_SA.shape[1]):
        if valid_SA[state, action]:
            chosen = action
            if remaining == 0:
                break
            remaining -= 1
    return chosen


# Many updates -------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def learn_pairs(q_SA: Floats, mdp: FiniteMDP, pair_T: Ints, discount: float, learning_rate: float, rule: int) -> None:
    """One update of the rule at each of these pairs in turn."""
    actions = q_SA.shape[1]
    for t in range(pair_T.size):
        s, a = pair_T[t] // actions, pair_T[t] % actions
        r, next_s, terminal = mdp.reward[s, a], mdp.next_state[s, a], mdp.terminal[s, a]
        if rule == Q_TABLE:
            q_table_step(q_SA, s, a, r, next_s, terminal, discount, learning_rate)
        elif rule == RG:
            rg_step(q_SA, s, a, r, next_s, terminal, discount, learning_rate)
        else:
            rg_split_step(q_SA, s, a, r, next_s, terminal, discount, learning_rate)


@njit(cache=True, nogil=True)
def learn_pairs_cdqn(
    q_SA: Floats,
    target_SA: Floats,
    mdp: FiniteMDP,
    pair_T: Ints,
    discount: float,
    learning_rate: float,
    target_period: int,
    updates_before: int,
) -> None:
    """As `learn_pairs`, for C-DQN. The target table becomes a copy of Q after every `target_period`-th update,
    counted from the first one of the run.
    """
    actions = q_SA.shape[1]
    for t in range(pair_T.size):
        s, a = pair_T[t] // actions, pair_T[t] % actions
        r, next_s, terminal = mdp.reward[s, a], mdp.next_state[s, a], mdp.terminal[s, a]
        cdqn_step(q_SA, target_SA, s, a, r, next_s, terminal, discount, learning_rate)
        if (updates_before + t + 1) % target_period == 0:
            target_SA[:] = q_SA


@njit(cache=True, nogil=True)
def learn_online(
    q_SA: Floats,
    mdp: FiniteMDP,
    state: int,
    uniform_T2: Floats,
    epsilon: float,
    discount: float,
    learning_rate: float,
    rule: int,
) -> int:
    """T steps of the ε-greedy policy from `state`, an update after each; returns the state it stands in.

    The first uniform number of a step decides whether it explores, the second which action it takes.
    """
    s = state
    for t in range(uniform_T2.shape[0]):
        if uniform_T2[t, 0] < epsilon:
            a = choose_valid(mdp.valid, s, uniform_T2[t, 1])
        else:
            a = choose_equal(q_SA, s, uniform_T2[t, 1])
        r, next_s, terminal = mdp.reward[s, a], mdp.next_state[s, a], mdp.terminal[s, a]
        if rule == Q_TABLE:
            q_table_step(q_SA, s, a, r, next_s, terminal, discount, learning_rate)
        elif rule == RG:
            rg_step(q_SA, s, a, r, next_s, terminal, discount, learning_rate)
        else:
            rg_split_step(q_SA, s, a, r, next_s, terminal, discount, learning_rate)
        s = mdp.start if terminal else next_s
    return s


# What a table is worth ----------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def msbe_sum(q_SA: Floats, mdp: FiniteMDP, discount: float) -> float:
    """Σ δ² over all pairs: the MSBE of Eq. 5 as Fig. 1 and 2 plot it, a sum and not a mean."""
    total = 0.0
    for s in range(q_SA.shape[0]):
        for a in range(q_SA.shape[1]):
            if mdp.valid[s, a]:
                next_s = mdp.next_state[s, a]
                next_value = 0.0 if mdp.terminal[s, a] else q_SA[next_s, best_action(q_SA, next_s)]
                total += (mdp.reward[s, a] + discount * next_value - q_SA[s, a]) ** 2
    return total


@njit(cache=True, nogil=True)
def squared_distance(q_SA: Floats, other_SA: Floats, valid_SA: Bools) -> float:
    """|Q − Q′|², summed over all pairs."""
    total = 0.0
    for s in range(q_SA.shape[0]):
        for a in range(q_SA.shape[1]):
            if valid_SA[s, a]:
                total += (q_SA[s, a] - other_SA[s, a]) ** 2
    return total


@njit(cache=True, nogil=True)
def greedy_return(q_SA: Floats, mdp: FiniteMDP, uniform_T: Floats) -> float:
    """The undiscounted return of the greedy policy, a random one of equal actions; at most T steps."""
    s, total = mdp.start, 0.0
    for t in range(uniform_T.size):
        a = choose_equal(q_SA, s, uniform_T[t])
        total += mdp.reward[s, a]
        if mdp.terminal[s, a]:
            break
        s = mdp.next_state[s, a]
    return total
