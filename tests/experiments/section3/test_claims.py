"""Figures 1, 2 and 3: each verdict follows the numbers."""

import numpy as np
import pytest

from cdqn.experiments.section3.claims import fig1_claims, fig2_claims, fig3_claims
from cdqn.experiments.section3.runs import DISTANCE, MIN_Q, MSBE, RETURN, Curves, record_steps


def falling(step: int, runs: int) -> Curves:
    """Curves that fall below 1 at one step; |Q−Q*|² is then 2."""
    step_R = record_steps(10_000_000)
    value_R = np.where(step_R < step, 50.0, 0.5)
    return Curves(step_R, {MSBE: np.tile(value_R, (runs, 1)), DISTANCE: np.tile(4 * value_R, (runs, 1))})


def verdicts(claims) -> dict[str, bool | None]:
    return {claim.text: claim.holds for claim in claims}


@pytest.mark.parametrize(
    ("step", "runs", "holds"), [(3590, 10, True), (4073, 10, True), (4266, 10, False), (3590, 9, None)]
)
def test_a_learning_time_is_judged_by_15_percent_and_only_with_the_papers_runs(step, runs, holds):
    times = {("q_table", 10): step, ("q_table", 20): 16_000, ("rg", 10): 199_527, ("rg", 20): 3_000_000}
    times |= {("cdqn", 10): 7_000, ("cdqn", 20): 20_000}
    claims = fig1_claims({key: falling(n, runs) for key, n in times.items()}, seed=0)
    assert verdicts(claims)["Q-table, width 10: steps to MSBE < 1"] is holds


def test_a_growth_that_is_not_the_papers_is_said_not_to_hold():
    times = {("q_table", 10): 4_000, ("q_table", 20): 16_000, ("rg", 10): 200_000, ("rg", 20): 3_200_000}
    times |= {("cdqn", 10): 7_000, ("cdqn", 20): 20_000}
    claims = fig1_claims({key: falling(n, 10) for key, n in times.items()}, seed=0)
    judged = verdicts(claims)
    assert judged["Q-table: time to MSBE < 1 on the doubled system"] is True
    assert judged["RG: time to MSBE < 1 on the doubled system"] is False
    found = next(claim.found for claim in claims if claim.text == "RG: time to MSBE < 1 on the doubled system")
    assert found.startswith("16")


def test_the_exponent_is_that_of_one_over_one_minus_gamma():
    curves = {("q_table", g): falling(4_000, 10) for g in (0.9, 0.99, 1.0)}
    curves |= {("rg", g): falling(round(2_000 / (1 - g) ** 1.5), 10) for g in (0.9, 0.99)}
    curves["rg", 1.0] = falling(10**9, 10)
    claims = fig2_claims(curves, seed=0)
    found = {claim.text: claim.found for claim in claims}
    x = float(found["RG, γ from 0.9 to 0.99: time ∝ (1−γ)^−x"].split()[2])
    assert x == pytest.approx(1.5, abs=0.02)
    assert verdicts(claims)["Q-table: roughly the same time for all γ"] is True
    assert verdicts(claims)["RG, γ = 1: not converged after 10,000,000 steps"] is True
    curves["q_table", 1.0], curves["rg", 1.0] = falling(6_000, 10), falling(9_000_000, 10)
    judged = verdicts(fig2_claims(curves, seed=0))
    assert judged["Q-table: roughly the same time for all γ"] is False
    assert judged["RG, γ = 1: not converged after 10,000,000 steps"] is False


def test_the_ends_of_figure_3_are_judged_beside_the_authors():
    rng = np.random.default_rng(0)
    step_R = record_steps(100_000)

    def ends(returns: float, least: float, trials: int = 100) -> Curves:
        noise_S1 = rng.normal(size=(trials, 1)) * 0.1
        shape = np.ones(step_R.size)
        return Curves(step_R, {RETURN: (returns + noise_S1) * shape, MIN_Q: (least + noise_S1) * shape})

    published = {
        ("q_table", 0.0): (14, -0.485),
        ("rg", 0.0): (5.85, -1.69),
        ("rg", 0.01): (14, -1),
        ("rg", 0.1): (14, -1),
    }
    assert set(verdicts(fig3_claims({k: ends(*v) for k, v in published.items()})).values()) == {True}
    assert set(verdicts(fig3_claims({k: ends(*v, trials=50) for k, v in published.items()})).values()) == {None}
    off = verdicts(fig3_claims({k: ends(*v) for k, v in (published | {("rg", 0.0): (7, -1.69)}).items()}))
    assert [text for text, holds in off.items() if not holds] == ["RG, ε = 0: greedy return after 100,000 steps"]
