"""The transform T that squashes Q roughly to its square root (App. E.1, used in Sec. 5.3)."""

import torch
from torch import Tensor

EPSILON_T = 0.01
"""ε_T of the paper: the small linear part that keeps T invertible with a bounded slope of T⁻¹."""


def squash(q: Tensor, epsilon: float = EPSILON_T) -> Tensor:
    """T(Q), Eq. 28: sign(Q)(√(|Q|+1) − 1) + ε_T Q.

    √(|Q|+1) − 1 is written as |Q|/(1+√(|Q|+1)): equal, without cancellation near 0, and with the right slope at 0,
    where the derivative of sign and |·| is taken as 0.
    """
    return q / (1 + torch.sqrt(1 + q.abs())) + epsilon * q


def unsquash(f: Tensor, epsilon: float = EPSILON_T) -> Tensor:
    """T⁻¹(f), Eq. 29.

    With v = √(|Q|+1) − 1 the forward map is ε v² + (1+2ε) v = |f|. Its positive root is v = |f| k with
    k = 2/(1+2ε+s), s = √((1+2ε)² + 4ε|f|), and |Q| = v (v+2): equal to Eq. 29, without its cancellation.
    """
    a = 1 + 2 * epsilon
    k = 2 / (a + torch.sqrt(a * a + 4 * epsilon * f.abs()))
    return f * k * (f.abs() * k + 2)
