"""ε of App. E.1 and β of App. E.2 at the paper's own breakpoints."""

import itertools

import pytest

from cdqn.schedules import dropped, epsilon_greedy, importance_exponent, linear

PAPER = {"warmup_steps": 50_000, "middle_step": 1_000_000, "final_step": 40_000_000}


@pytest.mark.parametrize(
    ("step", "epsilon"),
    [
        (0, 1.0),
        (49_999, 1.0),
        (50_000, 0.1**0.05),
        (500_000, 0.1**0.5),
        (1_000_000, 0.1),
        (20_500_000, 0.055),
        (40_000_000, 0.01),
        (50_000_000, 0.01),
    ],
)
def test_epsilon_has_the_papers_values(step, epsilon):
    assert epsilon_greedy(step, **PAPER) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("step", [1_000_000, 40_000_000])
def test_epsilon_is_continuous_where_its_phases_meet(step):
    around = [epsilon_greedy(s, **PAPER) for s in (step - 1, step, step + 1)]
    assert max(around) - min(around) < 1e-6


def test_epsilon_never_rises():
    values = [epsilon_greedy(step, **PAPER) for step in range(0, 50_000_001, 50_000)]
    assert all(later <= earlier for earlier, later in itertools.pairwise(values))


def test_epsilon_reaches_other_values_at_other_steps():
    settings = {"warmup_steps": 10, "middle_step": 100, "final_step": 300, "middle": 0.25, "final": 0.05}
    assert epsilon_greedy(50, **settings) == pytest.approx(0.5)
    assert epsilon_greedy(100, **settings) == pytest.approx(0.25)
    assert epsilon_greedy(200, **settings) == pytest.approx(0.15)
    assert epsilon_greedy(300, **settings) == pytest.approx(0.05)


def test_epsilon_with_a_warmup_beyond_the_middle_goes_on_along_the_line():
    settings = {"warmup_steps": 150, "middle_step": 100, "final_step": 200, "middle": 0.2, "final": 0.1}
    assert epsilon_greedy(149, **settings) == 1.0
    assert epsilon_greedy(150, **settings) == pytest.approx(0.15)


@pytest.mark.parametrize(
    ("step", "beta"), [(0, 0.4), (12_500_000, 0.55), (25_000_000, 0.7), (50_000_000, 1.0), (60_000_000, 1.0)]
)
def test_beta_rises_from_04_to_1_over_the_budget(step, beta):
    assert importance_exponent(step, 50_000_000) == pytest.approx(beta, rel=1e-12)


def test_linear_is_constant_outside_its_range():
    assert [linear(step, 2.0, 4.0, 10, 20) for step in (0, 10, 15, 20, 99)] == [2.0, 2.0, 3.0, 4.0, 4.0]


def test_linear_over_no_range_at_all_is_its_end():
    assert linear(5, 2.0, 4.0, 5, 5) == 4.0


@pytest.mark.parametrize(("step", "factor"), [(0, 1.0), (499, 1.0), (500, 0.4), (899, 0.4), (900, 0.08), (2000, 0.08)])
def test_a_drop_holds_from_its_share_of_the_budget_on(step, factor):
    assert dropped(step, 1000, ((0.5, 0.4), (0.9, 0.08))) == factor
    assert dropped(step, 1000, ()) == 1.0
