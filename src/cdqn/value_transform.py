"""The transform T that squashes Q roughly to its square root (App. E.1, used in Sec. 5.3)."""

import torch
from torch import Tensor

EPSILON_T = 0.01
"""ε_T of the paper: the small linear part that keeps T invertible with a bounded slope of T⁻¹."""


def squash(q: Tensor, epsilon: float = EPSILON_T) -> Tensor:
    """T(Q), Eq. 28: sign(Q)(√(|Q|+1) − 1) + ε_T Q."""
    return torch.sign(q) * (torch.sqrt(q.abs() + 1) - 1) + epsilon * q


def unsquash(f: Tensor, epsilon: float = EPSILON_T) -> Tensor:
    """T⁻¹(f), Eq. 29.

    With u = √(|Q|+1) the forward map is ε u² + u = |f| + 1 + ε, so u is the positive root. It is
    written as 2c/(1+√(1+4εc)) instead of (√(1+4εc)−1)/(2ε): the same number, without the
    cancellation that costs float32 four digits at ε = 0.01.
    """
    c = f.abs() + 1 + epsilon
    u = 2 * c / (1 + torch.sqrt(1 + 4 * epsilon * c))
    return torch.sign(f) * (u.square() - 1)
