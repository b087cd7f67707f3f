"""T and T⁻¹ of Eq. 28 and 29."""

import numpy as np
import pytest
import torch

from cdqn.value_transform import EPSILON_T, squash, unsquash

MAGNITUDES = np.concatenate([np.logspace(-6, 6, 241), [0.0, 1.0]])
VALUES = np.sort(np.concatenate([-MAGNITUDES, MAGNITUDES]))
# Near 0 the square root of 1 + |Q| rounds |Q| to the last bit of 1: an absolute error of that size remains.
TOLERANCE = {torch.float32: {"rtol": 2e-6, "atol": 5e-7}, torch.float64: {"rtol": 1e-13, "atol": 1e-15}}


def literal_squash(q, epsilon=EPSILON_T):
    return np.sign(q) * (np.sqrt(np.abs(q) + 1) - 1) + epsilon * q


def literal_unsquash(f, epsilon=EPSILON_T):
    root = (np.sqrt(1 + 4 * epsilon * (np.abs(f) + 1 + epsilon)) - 1) / (2 * epsilon)
    return np.sign(f) * (root**2 - 1)


def test_epsilon_is_the_papers():
    assert EPSILON_T == 0.01


def test_both_maps_are_the_equations_as_printed():
    values = torch.tensor(VALUES)
    np.testing.assert_allclose(squash(values).numpy(), literal_squash(VALUES), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(unsquash(values).numpy(), literal_unsquash(VALUES), rtol=1e-10, atol=1e-12)


def test_squash_of_99_by_hand():
    assert squash(torch.tensor(99.0, dtype=torch.float64)).item() == pytest.approx(9 + 0.99, rel=1e-14)
    assert unsquash(torch.tensor(-9.99, dtype=torch.float64)).item() == pytest.approx(-99, rel=1e-14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_map_undoes_the_other(dtype):
    values = torch.tensor(VALUES, dtype=dtype)
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(unsquash(squash(values)).numpy(), values.numpy(), **tolerance)
    np.testing.assert_allclose(squash(unsquash(values)).numpy(), values.numpy(), **tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("function", [squash, unsquash])
def test_maps_are_odd_and_keep_zero(function, dtype):
    values = torch.tensor(VALUES, dtype=dtype)
    assert torch.equal(function(-values), -function(values))
    assert function(torch.zeros(1, dtype=dtype)).item() == 0


@pytest.mark.parametrize("function", [squash, unsquash])
def test_maps_increase_strictly(function):
    values = torch.tensor(np.unique(VALUES), dtype=torch.float64)
    assert (function(values).diff() > 0).all()
    assert (function(values.float()).diff() >= 0).all()


@pytest.mark.parametrize("function", [squash, unsquash])
def test_gradient_equals_finite_differences(function):
    values = torch.tensor(VALUES[VALUES != 0], dtype=torch.float64, requires_grad=True)
    function(values).sum().backward()
    step = torch.tensor(1e-4 * np.abs(VALUES[VALUES != 0]))
    with torch.no_grad():
        numeric = (function(values + step) - function(values - step)) / (2 * step)
    np.testing.assert_allclose(values.grad.numpy(), numeric.numpy(), rtol=1e-5)


@pytest.mark.parametrize(("function", "slope"), [(squash, 0.51), (unsquash, 1 / 0.51)])
def test_gradient_at_zero_is_the_slope_there(function, slope):
    """Exactly 0 is common: a state of zeros under He's zero biases, or no reward before the end."""
    value = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    function(value).sum().backward()
    assert value.grad.item() == pytest.approx(slope, rel=1e-12)


def test_small_values_keep_their_digits_in_float32():
    values = torch.tensor(MAGNITUDES[MAGNITUDES > 0], dtype=torch.float32)
    np.testing.assert_allclose(squash(values).numpy(), literal_squash64(values), rtol=1e-5)


def literal_squash64(values):
    """Eq. 28 in float64, without the cancellation: √(1+x) − 1 = x/(√(1+x) + 1)."""
    exact = values.double().numpy()
    return exact / (np.sqrt(exact + 1) + 1) + EPSILON_T * exact
