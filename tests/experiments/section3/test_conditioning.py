"""The Hessians of the MSBE: by autograd, by hand, and by the closed forms of the paper."""

import numpy as np
import pytest

from cdqn.experiments.request import Request
from cdqn.experiments.section3.conditioning import (
    condition_number,
    conditioning,
    cycle_condition,
    cycle_eigenvalues,
    hessian,
    trajectory_condition,
    trajectory_eigenvalues,
)


def test_the_hessian_of_a_trajectory_is_the_papers_matrix():
    """Eq. 7: 4 on the diagonal, −2 beside it; without the added term the first is 2."""
    matrix_NN = 4 * np.eye(5) - 2 * np.eye(5, k=1) - 2 * np.eye(5, k=-1)
    np.testing.assert_allclose(hessian(5, 1.0, cycle=False, with_q0=True), matrix_NN, atol=1e-12)
    matrix_NN[0, 0] = 2
    np.testing.assert_allclose(hessian(5, 1.0, cycle=False), matrix_NN, atol=1e-12)


def test_the_hessian_of_a_cycle_is_cyclic():
    matrix_NN = 2 * (1 + 0.9**2) * np.eye(5) - 2 * 0.9 * (np.roll(np.eye(5), 1, 0) + np.roll(np.eye(5), -1, 0))
    np.testing.assert_allclose(hessian(5, 0.9, cycle=True), matrix_NN, atol=1e-12)


@pytest.mark.parametrize("length", [2, 3, 7, 20])
def test_the_eigenvalues_are_the_closed_forms(length):
    found_N = np.linalg.eigvalsh(hessian(length, 1.0, cycle=False, with_q0=True))
    np.testing.assert_allclose(found_N, trajectory_eigenvalues(length), atol=1e-12)
    assert found_N.max() / found_N.min() == pytest.approx(trajectory_condition(length))
    found_N = np.linalg.eigvalsh(hessian(length, 0.8, cycle=True))
    np.testing.assert_allclose(found_N, cycle_eigenvalues(length, 0.8), atol=1e-12)


@pytest.mark.parametrize("length", [2, 4, 16])
def test_an_even_cycle_has_the_papers_condition_number_at_any_length(length):
    assert condition_number(hessian(length, 0.95, cycle=True)) == pytest.approx(cycle_condition(0.95), rel=1e-9)


def test_an_odd_cycle_has_a_smaller_condition_number():
    assert condition_number(hessian(3, 0.95, cycle=True)) < 0.8 * cycle_condition(0.95)


def test_all_claims_hold_at_every_length_and_nothing_is_random():
    told: list[tuple[int, int]] = []
    result = conditioning(Request("smoke", on_progress=lambda *progress: told.append(progress)))
    assert {claim.holds for claim in result.claims} == {True}
    assert told[-1] == (len(result.rows), len(result.rows))
    assert conditioning(Request("smoke", seed=5)).rows == result.rows
