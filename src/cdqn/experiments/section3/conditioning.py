"""The condition numbers of Section 3.1 and App. D: Hessians of the MSBE by autograd, beside the closed forms.

Q(s_t, a_t) of N states in a row, one action each, are N variables; κ is the largest eigenvalue over the smallest.
The paper adds Q(s_0, a_0)² to a trajectory's loss, to have a closed form; the loss without it is measured as well.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cdqn.experiments.request import Request
from cdqn.losses import action_value, msbe_loss, msbe_target
from cdqn.report.reproduction import Claim, Point, Reproduction

FloatArray = NDArray[np.float64]

LENGTHS = {
    "smoke": (2, 4, 8, 16, 32),
    "laptop": (2, 4, 8, 16, 32, 64, 128),
    "paper": (2, 4, 8, 16, 32, 64, 128, 256, 512),
}
DISCOUNTS = {
    "smoke": (0.5, 0.8, 0.9, 0.95, 0.99),
    "laptop": (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999),
    "paper": (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999),
}
CYCLES = {"smoke": (2, 16), "laptop": (2, 3, 16, 17, 64), "paper": (2, 3, 16, 17, 128, 129)}
"""Lengths of the cycles, even and odd: the paper's closed form is for even ones."""
ROUNDING = 1e-6


def chain_loss(q_N: Tensor, discount: float, cycle: bool, with_q0: bool = False) -> Tensor:
    """N·L_MSBE of Eq. 6, or of a cycle: the sum of δ² over N transitions s_t → s_{t+1}, with rewards of 0.

    A trajectory ends after s_{N−1}; in a cycle s_0 follows. `with_q0` adds the paper's Q(s_0, a_0)².
    """
    n = len(q_N)
    state_N = torch.arange(n)
    terminated_N = (state_N == n - 1) & (not cycle)
    next_q_NA = q_N.roll(-1).unsqueeze(1)
    target_N = msbe_target(torch.zeros_like(q_N), terminated_N, discount, next_q_NA)
    value_N = action_value(q_N.unsqueeze(1), torch.zeros_like(state_N))
    loss = 2 * msbe_loss(value_N, target_N, huber=False).loss.sum()  # the library's ρ is ½δ², the paper's δ²
    return loss + q_N[0] ** 2 if with_q0 else loss


def hessian(length: int, discount: float, cycle: bool, with_q0: bool = False) -> FloatArray:
    """∂²(N·L)/∂Q∂Q by autograd."""
    q_N = torch.zeros(length, dtype=torch.float64)
    # Not torch.func.hessian: its forward mode takes seconds to load, and gives the same matrix.
    differentiate: Any = torch.autograd.functional.hessian
    matrix_NN: Tensor = differentiate(lambda q: chain_loss(q, discount, cycle, with_q0), q_N, vectorize=True)
    return matrix_NN.numpy()


def condition_number(matrix_NN: FloatArray) -> float:
    """κ: the largest |eigenvalue| over the smallest."""
    size_N = np.abs(np.linalg.eigvalsh(matrix_NN))
    return float(size_N.max() / size_N.min())


def trajectory_eigenvalues(length: int) -> FloatArray:
    """4 − 4cos(kπ/(N+1)), k = 1 … N, in rising order: a trajectory with the added term (App. D)."""
    return 4 - 4 * np.cos(np.arange(1, length + 1) * np.pi / (length + 1))


def trajectory_condition(length: float) -> float:
    """(1+cos π/(N+1)) / (1−cos π/(N+1))."""
    cosine = np.cos(np.pi / (length + 1))
    return float((1 + cosine) / (1 - cosine))


def cycle_eigenvalues(length: int, discount: float) -> FloatArray:
    """2(1+γ²) − 4γcos(2kπ/N), k = 0 … N−1, in rising order: a cycle (App. D)."""
    return np.sort(2 * (1 + discount**2) - 4 * discount * np.cos(2 * np.arange(length) * np.pi / length))


def cycle_condition(discount: float) -> float:
    """(1+γ)²/(1−γ)²."""
    return (1 + discount) ** 2 / (1 - discount) ** 2


def conditioning(request: Request) -> Reproduction:
    """κ against N and against γ. Nothing here is random, and it is done in one piece: only the scale matters."""
    scale = request.scale
    lengths, cycles, discounts = LENGTHS[scale], CYCLES[scale], DISCOUNTS[scale]
    total, rows, errors = 2 * len(lengths) + len(cycles) * len(discounts), [], {"trajectory": [0.0], "cycle": [0.0]}

    def note(row: Point) -> None:
        rows.append(row)
        if request.on_progress:
            request.on_progress(len(rows), total)

    for length in lengths:
        for with_q0, setting in ((True, "trajectory with the added term"), (False, "trajectory")):
            matrix_NN = hessian(length, 1.0, cycle=False, with_q0=with_q0)
            note(Point("MSBE", setting, length, "kappa", condition_number(matrix_NN), 0.0))
            if with_q0:
                errors["trajectory"].append(_largest_difference(matrix_NN, trajectory_eigenvalues(length)))
    for length in cycles:
        for discount in discounts:
            matrix_NN = hessian(length, discount, cycle=True)
            note(Point("MSBE", f"cycle of {length}", 1 / (1 - discount), "kappa", condition_number(matrix_NN), 0.0))
            errors["cycle"].append(_largest_difference(matrix_NN, cycle_eigenvalues(length, discount)))
    about = f"N up to {lengths[-1]}, γ up to {discounts[-1]:g}, scale {scale}"
    return Reproduction("conditioning", about, rows, _claims(rows, max(errors["trajectory"]), max(errors["cycle"])))


def _largest_difference(matrix_NN: FloatArray, eigenvalue_N: FloatArray) -> float:
    return float(np.abs(np.linalg.eigvalsh(matrix_NN) - eigenvalue_N).max())


def _claims(rows: list[Point], trajectory_error: float, cycle_error: float) -> list[Claim]:
    kappa = {setting: [(row.step, row.value) for row in rows if row.setting == setting] for _, setting, *_ in rows}
    added, plain = kappa.pop("trajectory with the added term"), kappa.pop("trajectory")
    largest, found = added[-1]
    expected = trajectory_condition(largest)
    slope_added, slope_plain = _last_slope(added), _last_slope(plain)
    doubling = f"N from {added[-2][0]:g} to {largest:g}"
    claims = [
        Claim(
            "trajectory with Q(s₀,a₀)² added: eigenvalues 4−4cos(kπ/(N+1))",
            "equal",
            f"all N: no eigenvalue off by more than {trajectory_error:.1e}",
            bool(trajectory_error < ROUNDING),
        ),
        Claim(
            f"its κ at N = {largest:g}: (1+cos π/(N+1))/(1−cos π/(N+1))",
            f"{expected:,.1f}",
            f"{found:,.1f}",
            bool(abs(found / expected - 1) < ROUNDING),
        ),
        Claim(f"its κ ∝ N^x, {doubling}", "x = 2, within 0.1", f"x = {slope_added:.3f}", abs(slope_added - 2) < 0.1),
        Claim(
            f"trajectory as it is: κ ∝ N^x, {doubling}",
            "x = 2, within 0.1",
            f"x = {slope_plain:.3f}; κ = {plain[-1][1]:,.0f}, {plain[-1][1] / found:.2f} times that with the term",
            abs(slope_plain - 2) < 0.1,
        ),
        Claim(
            "cycle: eigenvalues 2(1+γ²)−4γcos(2kπ/N), k = 0 … N−1",
            "equal",
            f"all N and γ: no eigenvalue off by more than {cycle_error:.1e}",
            bool(cycle_error < ROUNDING),
        ),
    ]
    for setting, points in kappa.items():
        off = max(abs(value / cycle_condition(1 - 1 / horizon) - 1) for horizon, value in points)
        even = int(setting.split()[-1]) % 2 == 0
        text = f"{setting}: κ = (1+γ)²/(1−γ)², in the paper as N → ∞"
        claims.append(Claim(text, "equal", f"off by {off:.1e} at most", bool(off < ROUNDING) if even else None))
    points = next(reversed(kappa.values()))
    slope, (before, _), (last, _) = _last_slope(points), points[-2], points[-1]
    text = f"cycle: κ ∝ (1−γ)^−x, 1/(1−γ) from {before:.4g} to {last:.4g}"
    claims.append(Claim(text, "x = 2, within 0.1", f"x = {slope:.3f}", abs(slope - 2) < 0.1))
    return claims


def _last_slope(points: list[tuple[float, float]]) -> float:
    """Of log κ against log size, between the two largest sizes: the order is that of large ones."""
    (before, low), (last, high) = points[-2:]
    return float(np.log(high / low) / np.log(last / before))
