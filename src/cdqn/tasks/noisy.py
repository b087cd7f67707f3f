"""Finite tasks whose next state is random, and losses on them without sampling: outcomes count by their probability.

Suffixes: S states, A actions, N next states; B all triples (s, a, s′).
"""

from typing import NamedTuple

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from cdqn import losses

Floats = NDArray[np.float64]
RULES = {"cdqn": 0, "rg": 1, "dcdqn": 2}
"""Algorithms of `learn`, and their numbers in compiled code."""


class NoisyMDP(NamedTuple):
    """A task that never ends; all pairs (s, a) exist and are visited alike."""

    probability_SAN: Floats
    reward_SAN: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """States and actions."""
        states, actions, _ = self.probability_SAN.shape
        return states, actions


def random_task(rng: np.random.Generator, states: int = 5, actions: int = 2, outcomes: int = 3) -> NoisyMDP:
    """Each action leads to one of `outcomes` random states; rewards are standard normal, and depend on s′ as well."""
    probability_SAN = np.zeros((states, actions, states))
    for pair in np.ndindex(states, actions):
        reached = rng.choice(states, outcomes, replace=False)
        probability_SAN[pair][reached] = rng.dirichlet(np.ones(outcomes))
    return NoisyMDP(probability_SAN, rng.normal(size=probability_SAN.shape))


def optimal_q(task: NoisyMDP, discount: float, accuracy: float = 1e-13) -> Floats:
    """Q* by value iteration."""
    q_SA = np.zeros(task.shape)
    while True:
        new_SA: Floats = (task.probability_SAN * (task.reward_SAN + discount * q_SA.max(1))).sum(2)
        change = np.abs(new_SA - q_SA).max()
        q_SA = new_SA
        if change <= accuracy:
            return q_SA


def expected_loss(
    algorithm: str,
    task: NoisyMDP,
    q_SA: Tensor,
    frozen_SA: Tensor,
    discount: float,
    double_q: bool = False,
    slow_SA: Tensor | None = None,
    v_error_SA: Tensor | None = None,
) -> Tensor:
    """E[ℓ] with ℓ = ½δ², of "cdqn", "rg" or "dcdqn".

    For the latter `slow_SA` is the slow copy, by default a copy of `frozen_SA`, and V the exact mean of its target,
    but for `v_error_SA`. The gradient with respect to `q_SA` is that of `cdqn.losses`.
    """
    states, actions = task.shape
    probability_SAN = torch.from_numpy(task.probability_SAN)
    reward_B = torch.from_numpy(task.reward_SAN).flatten()
    going_on_B = torch.zeros_like(reward_B, dtype=torch.bool)

    def following(table_SA: Tensor) -> Tensor:
        return table_SA.expand(states * actions, states, actions).reshape(-1, actions)

    if algorithm == "dcdqn":
        slow_B = losses.dqn_target(reward_B, going_on_B, discount, following(frozen_SA if slow_SA is None else slow_SA))
        v_SA = (probability_SAN * slow_B.view_as(probability_SAN)).sum(2)
        if v_error_SA is not None:
            v_SA = v_SA + v_error_SA
        reward_B = losses.denoised_reward(reward_B, v_SA.flatten().repeat_interleave(states), slow_B)
    chooser_BA = following(q_SA).detach() if double_q else None
    dqn_B = losses.dqn_target(reward_B, going_on_B, discount, following(frozen_SA), chooser_BA)
    msbe_B = losses.msbe_target(reward_B, going_on_B, discount, following(q_SA))
    q_B = q_SA.flatten().repeat_interleave(states)
    if algorithm == "rg":
        terms = losses.msbe_loss(q_B, msbe_B, huber=False)
    else:
        terms = losses.cdqn_loss(q_B, dqn_B, msbe_B, huber=False)
    return (probability_SAN.flatten() * terms.loss).sum() / (states * actions)


def learn(
    algorithm: str,
    task: NoisyMDP,
    q_SA: Floats,
    discount: float,
    sweeps: int,
    learning_rate: float = 0.5,
    target_period: int = 5,
    slow_copy_updates: int = 50,
) -> Floats:
    """The table after so many steps of gradient descent on `expected_loss`, a copy after every `target_period`-th.

    For DC-DQN the slow copy follows after each, and V is always its exact mean.
    """
    learned_SA = q_SA.copy()
    rates = (learning_rate, 1 / slow_copy_updates)
    _descend(learned_SA, *task, discount, sweeps, *rates, target_period, RULES[algorithm])
    return learned_SA


@njit(cache=True, nogil=True)
def _descend(
    q_SA: Floats,
    probability_SAN: Floats,
    reward_SAN: Floats,
    discount: float,
    sweeps: int,
    learning_rate: float,
    slow_rate: float,
    target_period: int,
    rule: int,
) -> None:
    """In place. The gradient is that of a sum over pairs: the step size means the same for tasks of any size."""
    states, actions = q_SA.shape
    slow_SA = q_SA.copy()
    value_S, slow_value_S = np.zeros(states), np.zeros(states)
    mean_SA = np.zeros((states, actions))
    for sweep in range(sweeps):
        for s in range(states):
            slow_value_S[s] = slow_SA[s].max()
            if sweep % target_period == 0:
                value_S[s] = q_SA[s].max()
        for s in range(states):
            for a in range(actions):
                mean_SA[s, a] = (probability_SAN[s, a] * (reward_SAN[s, a] + discount * slow_value_S)).sum()
        gradient_SA = np.zeros((states, actions))
        for s in range(states):
            for a in range(actions):
                for n in range(states):
                    weight = probability_SAN[s, a, n]
                    if weight == 0.0:
                        continue
                    best = q_SA[n].argmax()
                    fixed = mean_SA[s, a] - discount * slow_value_S[n] if rule == 2 else reward_SAN[s, a, n]
                    dqn = q_SA[s, a] - fixed - discount * value_S[n]
                    msbe = dqn - discount * (q_SA[n, best] - value_S[n])
                    if rule != 1 and abs(dqn) >= abs(msbe):
                        gradient_SA[s, a] += weight * dqn
                    else:
                        gradient_SA[s, a] += weight * msbe
                        gradient_SA[n, best] -= weight * discount * msbe
        q_SA -= learning_rate * gradient_SA
        slow_SA += slow_rate * (q_SA - slow_SA)
