"""Schedules: plain functions of the step."""

import itertools
import math
from collections.abc import Sequence


def linear(step: int, start: float, end: float, first_step: int, last_step: int) -> float:
    """From `start` at `first_step` to `end` at `last_step`, constant outside."""
    if step >= last_step:
        return end
    if step <= first_step:
        return start
    return start + (end - start) * (step - first_step) / (last_step - first_step)


def dropped(step: int, budget_steps: int, drops: Sequence[tuple[float, float]]) -> float:
    """The factor of the last drop the step has reached, 1 before the first; a drop is (share of budget, factor)."""
    return ([1.0] + [factor for share, factor in drops if step >= share * budget_steps])[-1]


def are_drops(drops: Sequence[Sequence[object]]) -> bool:
    """Whether these are pairs of a share of the budget, rising within (0, 1], and a factor above 0."""
    if not all(len(drop) == 2 and all(isinstance(n, int | float) for n in drop) for drop in drops):
        return False
    pairs = [(float(share), float(factor)) for share, factor in drops]  # type: ignore[arg-type]
    rising = all(0 <= a < b <= 1 for a, b in itertools.pairwise([0.0, *(share for share, _ in pairs)]))
    return rising and all(factor > 0 for _, factor in pairs)


def epsilon_greedy(
    step: int,
    *,
    warmup_steps: int,
    middle_step: int,
    final_step: int,
    middle: float = 0.1,
    final: float = 0.01,
) -> float:
    """ε of App. E.1, "Other details": three phases after the random warm-up.

    1 while the policy is random; then exponentially e^{j/τ}, τ = middle_step / ln(middle), down to
    `middle` at `middle_step`; then linearly to `final` at `final_step`; then constant. The paper has
    warmup_steps = 50 000, middle_step = 10⁶, final_step = 4·10⁷ of a budget of 5·10⁷.
    """
    if step < warmup_steps:
        return 1.0
    if step < middle_step:
        return math.exp(math.log(middle) * step / middle_step)
    return linear(step, middle, final, middle_step, final_step)


def importance_exponent(step: int, budget_steps: int, start: float = 0.4) -> float:
    """β of App. E.2: linear from 0.4 to 1 over the budget."""
    return linear(step, start, 1.0, 0, budget_steps)
