"""The rules of prioritized sampling (App. E.2), one function each. All are elementwise over a batch.

Priorities are kept with the exponent α already applied: p_i is what a transition is sampled in proportion to.
"""

from cdqn.replay.transitions import Floats


def priority(td_error_abs_B: Floats, epsilon: float, alpha: float) -> Floats:
    """(|δ| + ε_p)^α, App. E.2 and Schaul et al. (2016)."""
    return (td_error_abs_B + epsilon) ** alpha


def floor(mean_priority: float, divisor: float) -> float:
    """p̄/c̃_p, App. E.2: below this no priority is set, so each row is drawn with at least 1/(c̃_p N)."""
    return mean_priority / divisor


def predecessor_bound(td_error_abs_B: Floats, epsilon: float, alpha: float) -> Floats:
    """(|δ|/2 + ε_p)^α, App. E.2: what the transition before it should have at least."""
    return priority(td_error_abs_B / 2, epsilon, alpha)


def largest_weight(divisor: float) -> float:
    """2c̃_p, App. E.2: weights end here, however the total priority fluctuates."""
    return 2 * divisor


def importance_weight(priority_B: Floats, mean_priority: float, beta: float) -> Floats:
    """(p̄/p_i)^β, App. E.2: the bias of prioritized sampling corrected, fully at β = 1; not normalized."""
    return (mean_priority / priority_B) ** beta


def original_weight(priority_B: Floats, epsilon: float, alpha: float, beta: float) -> Floats:
    """Schaul et al. (2016), as in Fig. 14: divided by the largest weight possible, that of |δ| = 0.

    (p̄/p_i)^β over (p̄/ε_p^α)^β leaves (ε_p^α/p_i)^β: the mean cancels.
    """
    smallest_priority: float = epsilon**alpha
    return (smallest_priority / priority_B) ** beta
