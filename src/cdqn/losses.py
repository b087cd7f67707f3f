"""The three losses of the paper, which differ in the target alone, and a reward beyond it.

Data flow: two functions build the targets, three functions compare Q(s, a) with them.

    q_B      = action_value(q_BA, action_B)
    y_dqn_B  = dqn_target(...)      from the target network θ̃, detached          Eq. 10
    y_msbe_B = msbe_target(...)     from the online network θ, gradient flows     Eq. 5
    cdqn_loss(q_B, y_dqn_B, y_msbe_B), dqn_loss(q_B, y_dqn_B), msbe_loss(q_B, y_msbe_B)
    denoised_reward(reward_B, E[y_slow | s, a]_B, y_slow_B)                       beyond the paper
    named_loss("cdqn", q_BA, action_B, ...)                                       all at once, for other libraries

Suffixes: B the batch, A the actions. Everything is a pure function of tensors.
"""

from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from cdqn.errors import ConfigError
from cdqn.value_transform import squash, unsquash

LossName = Literal["cdqn", "dqn", "rg"]
LOSS_NAMES: tuple[LossName, ...] = get_args(LossName)


class LossTerms(NamedTuple):
    """What a loss says of each sample."""

    loss: Tensor
    """ℓ times the importance weight; its mean is what is minimised."""
    td_error_abs: Tensor
    """|δ| of the branch taken, detached and unweighted: the source of priorities and of the logged MSE."""
    on_dqn_branch: Tensor
    """True where the gradient is that of ℓ_DQN (everywhere for DQN, nowhere for RG)."""


def action_value(q_BA: Tensor, action_B: Tensor) -> Tensor:
    """Q(s, a) of the actions taken."""
    return q_BA.gather(1, action_B.unsqueeze(1)).squeeze(1)


def dqn_target(
    reward_B: Tensor,
    terminated_B: Tensor,
    discount: float | Tensor,
    next_q_target_BA: Tensor,
    next_q_online_BA: Tensor | None = None,
    transform: bool = False,
) -> Tensor:
    """r + γ max Q_θ̃(s′), the target of Eq. 10; detached.

    With `next_q_online_BA` it is double Q-learning: θ chooses the action, θ̃ values it (App. E.1, "Loss").
    """
    if next_q_online_BA is None:
        next_value_B = next_q_target_BA.amax(1)
    else:
        next_value_B = action_value(next_q_target_BA, next_q_online_BA.argmax(1))
    return _bootstrap(reward_B, terminated_B, discount, next_value_B, transform).detach()


def msbe_target(
    reward_B: Tensor,
    terminated_B: Tensor,
    discount: float | Tensor,
    next_q_online_BA: Tensor,
    transform: bool = False,
) -> Tensor:
    """r + γ max Q_θ(s′), the target of Eq. 5; the gradient flows through it.

    Double Q-learning does not touch it: θ would choose and value the action itself.
    `max(1).values` and not `amax`: where two actions tie, one of them gets the gradient, not half each.
    """
    return _bootstrap(reward_B, terminated_B, discount, next_q_online_BA.max(1).values, transform)


def huber(delta: Tensor) -> Tensor:
    """ℓ_Huber of Eq. 27: ½δ² inside |δ| < 1, |δ| − ½ outside."""
    magnitude = delta.abs()
    return torch.where(magnitude < 1, 0.5 * delta * delta, magnitude - 0.5)


def half_squared(delta: Tensor) -> Tensor:
    """½δ² of Eq. 26."""
    return 0.5 * delta * delta


def cdqn_loss(
    q_B: Tensor,
    target_dqn_B: Tensor,
    target_msbe_B: Tensor,
    weights: Tensor | None = None,
    huber: bool = True,
) -> LossTerms:
    """ℓ_CDQN, Eq. 12: the larger of ℓ_DQN and ℓ_MSBE, per sample; a tie takes ℓ_DQN (App. E.1).

    `torch.where` and not `torch.maximum`: the latter splits the gradient between the two at a tie.
    """
    dqn = dqn_loss(q_B, target_dqn_B, weights, huber)
    msbe = msbe_loss(q_B, target_msbe_B, weights, huber)
    # Compared by |δ|, not by ℓ: the order is the same, and rounding in ℓ cannot make a false tie.
    on_dqn_branch = dqn.td_error_abs >= msbe.td_error_abs
    return LossTerms(
        loss=torch.where(on_dqn_branch, dqn.loss, msbe.loss),
        td_error_abs=torch.maximum(dqn.td_error_abs, msbe.td_error_abs),
        on_dqn_branch=on_dqn_branch,
    )


def denoised_reward(reward_B: Tensor, expected_B: Tensor, target_slow_B: Tensor) -> Tensor:
    """r + E[y_slow | s, a] − y_slow, with which C-DQN is free of the bias of noise (docs/denoised.md); detached.

    `target_slow_B` is DQN's target with a slow copy of θ, and `expected_B` its mean for the pair, as learned. What is
    added is zero on average. The reward itself cancels, and what is random in s′ is left in the targets only in what Q
    has changed since the slow copy.
    """
    return reward_B + (expected_B - target_slow_B).detach()


def dqn_loss(q_B: Tensor, target_dqn_B: Tensor, weights: Tensor | None = None, huber: bool = True) -> LossTerms:
    """ℓ_DQN, Eq. 10, with ρ of Eq. 26 or 27."""
    delta_B = q_B - target_dqn_B
    return LossTerms(_rho(delta_B, weights, huber), delta_B.detach().abs(), torch.ones_like(q_B, dtype=torch.bool))


def msbe_loss(q_B: Tensor, target_msbe_B: Tensor, weights: Tensor | None = None, huber: bool = True) -> LossTerms:
    """ℓ_MSBE, Eq. 5, with ρ of Eq. 26 or 27: the loss of the residual gradient (RG)."""
    delta_B = q_B - target_msbe_B
    return LossTerms(_rho(delta_B, weights, huber), delta_B.detach().abs(), torch.zeros_like(q_B, dtype=torch.bool))


def named_loss(
    name: LossName,
    q_BA: Tensor,
    action_B: Tensor,
    reward_B: Tensor,
    terminated_B: Tensor,
    discount: float | Tensor,
    next_q_target_BA: Tensor | None,
    next_q_online_BA: Tensor | None,
    *,
    double_q: bool = False,
    weights: Tensor | None = None,
    huber: bool = True,
) -> LossTerms:
    """The loss of this name from the values of Q; `discount` is one number, or γⁿ of each sample.

    RG needs no values of the target network, DQN those of the online network only for double Q-learning.
    """
    q_B, facts = action_value(q_BA, action_B), (reward_B, terminated_B, discount)
    if name == "rg":
        return msbe_loss(q_B, msbe_target(*facts, _needed(next_q_online_BA, name)), weights, huber)
    chooser_BA = _needed(next_q_online_BA, "double Q-learning").detach() if double_q else None
    dqn_B = dqn_target(*facts, _needed(next_q_target_BA, name), chooser_BA)
    if name == "dqn":
        return dqn_loss(q_B, dqn_B, weights, huber)
    if name == "cdqn":
        return cdqn_loss(q_B, dqn_B, msbe_target(*facts, _needed(next_q_online_BA, name)), weights, huber)
    raise ConfigError(f"loss is {name!r}: choose 'cdqn', 'dqn' or 'rg'")


def require_loss_name(name: str) -> None:
    """Refuse a name that `named_loss` does not know, before anything is built."""
    if name not in LOSS_NAMES:
        raise ConfigError(f"loss is {name!r}: choose one of {', '.join(map(repr, LOSS_NAMES))}")


def logged_loss(td_error_abs_B: Tensor, weights: Tensor | None = None) -> Tensor:
    """The loss as the paper plots it, Eq. 31 and 32: the weighted mean *squared* error, never Huber."""
    squared_B = td_error_abs_B.square()
    return (squared_B if weights is None else weights * squared_B).mean()


def untransformed_td_error(f_B: Tensor, target_B: Tensor) -> Tensor:
    """|δ| in units of Q for a network that outputs f = T(Q): what priorities are made of under T."""
    return (unsquash(f_B) - unsquash(target_B)).detach().abs()


def _needed(next_q_BA: Tensor | None, purpose: str) -> Tensor:
    if next_q_BA is None:
        raise ConfigError(f"{purpose} needs the values of the next states of both networks: one of them is None")
    return next_q_BA


def _bootstrap(
    reward_B: Tensor, terminated_B: Tensor, discount: float | Tensor, next_value_B: Tensor, transform: bool
) -> Tensor:
    """r + γ(1−terminal)·V(s′), or with the transform T(r + γ(1−terminal)·T⁻¹(f(s′))), Eq. 30."""
    if transform:
        next_value_B = unsquash(next_value_B)
    # where, not a product with 0: a diverged Q(s′) = inf after a terminal step must not become NaN.
    target_B = reward_B + torch.where(terminated_B, 0.0, discount * next_value_B)
    return squash(target_B) if transform else target_B


def _rho(delta_B: Tensor, weights: Tensor | None, use_huber: bool) -> Tensor:
    """ρ(δ) of Eq. 26 or 27, times the importance weights: they belong to either of the two."""
    rho_B = huber(delta_B) if use_huber else half_squared(delta_B)
    return rho_B if weights is None else weights * rho_B
