"""Sec. 4 and App. E.1, "Loss", on numbers worked out by hand."""

import numpy as np
import pytest
import torch

from cdqn import losses
from cdqn.errors import ConfigError
from cdqn.losses import (
    action_value,
    cdqn_loss,
    dqn_loss,
    dqn_target,
    half_squared,
    huber,
    logged_loss,
    msbe_loss,
    msbe_target,
    untransformed_td_error,
)

GAMMA = 0.5
REWARD = torch.tensor([1.0, -2.0, 0.5, 3.0])
TERMINATED = torch.tensor([False, False, True, False])
NEXT_TARGET = torch.tensor([[4.0, 2.0], [1.0, 6.0], [9.0, 9.0], [-4.0, -2.0]])
NEXT_ONLINE = torch.tensor([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [5.0, -1.0]])


def literal_transform(q, epsilon=0.01):
    """Eq. 28 as printed."""
    return np.sign(q) * (np.sqrt(np.abs(q) + 1) - 1) + epsilon * q


def literal_inverse(f, epsilon=0.01):
    """Eq. 29 as printed."""
    root = (np.sqrt(1 + 4 * epsilon * (np.abs(f) + 1 + epsilon)) - 1) / (2 * epsilon)
    return np.sign(f) * (root**2 - 1)


def test_action_value_picks_the_action_taken():
    q = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert action_value(q, torch.tensor([2, 0])).tolist() == [3.0, 4.0]


def test_dqn_target_of_a_batch_by_hand():
    target = dqn_target(REWARD, TERMINATED, GAMMA, NEXT_TARGET)
    assert target.tolist() == [1 + 2.0, -2 + 3.0, 0.5, 3 - 1.0]


def test_double_q_lets_theta_choose_and_the_target_network_value():
    target = dqn_target(REWARD, TERMINATED, GAMMA, NEXT_TARGET, NEXT_ONLINE)
    assert target.tolist() == [1 + 1.0, -2 + 3.0, 0.5, 3 - 2.0]


def test_msbe_target_takes_the_largest_online_value():
    target = msbe_target(REWARD, TERMINATED, GAMMA, NEXT_ONLINE)
    assert target.tolist() == [1 + 0.5, -2 + 0.5, 0.5, 3 + 2.5]


def test_dqn_has_no_gradient_at_the_next_state():
    next_target = NEXT_TARGET.clone().requires_grad_()
    next_online = NEXT_ONLINE.clone().requires_grad_()
    q = torch.zeros(4, requires_grad=True)
    for chooser in (None, next_online):
        loss = dqn_loss(q, dqn_target(REWARD, TERMINATED, GAMMA, next_target, chooser)).loss.sum()
        loss.backward()
    assert next_target.grad is None
    assert next_online.grad is None
    assert q.grad.abs().min() > 0


@pytest.mark.parametrize("use_huber", [True, False])
@pytest.mark.parametrize("transform", [True, False])
def test_msbe_gradient_equals_finite_differences_also_through_the_next_state(use_huber, transform):
    rng = np.random.default_rng(1)
    q = torch.tensor(rng.normal(size=6) * 3, requires_grad=True)
    next_q = torch.tensor(rng.normal(size=(6, 3)) * 3, requires_grad=True)
    reward = torch.tensor(rng.normal(size=6))
    terminated = torch.tensor([False, True, False, False, True, False])
    weights = torch.tensor(rng.uniform(0.5, 2, 6))

    def loss(q, next_q):
        return msbe_loss(q, msbe_target(reward, terminated, 0.9, next_q, transform), weights, use_huber).loss.sum()

    analytic = torch.autograd.grad(loss(q, next_q), (q, next_q))
    for number, argument in enumerate((q, next_q)):
        values = argument.detach()
        for index in np.ndindex(*values.shape):
            shifted = []
            for step in (1e-6, -1e-6):
                moved = values.clone()
                moved[index] += step
                shifted.append(loss(*((moved, next_q) if number == 0 else (q, moved))).item())
            numeric = (shifted[0] - shifted[1]) / 2e-6
            assert analytic[number][index].item() == pytest.approx(numeric, abs=1e-7)
    assert (analytic[1][~terminated].abs().sum(1) > 0).all()
    assert (analytic[1][terminated] == 0).all()


def test_msbe_gradient_at_equal_next_values_goes_to_one_action():
    next_q = torch.tensor([[2.0, 2.0]], requires_grad=True)
    msbe_target(torch.zeros(1), torch.tensor([False]), 0.5, next_q).sum().backward()
    assert sorted(next_q.grad[0].tolist()) == [0.0, 0.5]


def test_cdqn_loss_is_the_larger_of_the_two_for_every_sample():
    rng = np.random.default_rng(2)
    q, y_dqn, y_msbe = (torch.tensor(rng.normal(size=500) * 2) for _ in range(3))
    weights = torch.tensor(rng.uniform(0.1, 3, 500))
    for use_huber in (True, False):
        ours = cdqn_loss(q, y_dqn, y_msbe, weights, use_huber)
        dqn = dqn_loss(q, y_dqn, weights, use_huber)
        msbe = msbe_loss(q, y_msbe, weights, use_huber)
        assert torch.equal(ours.loss, torch.maximum(dqn.loss, msbe.loss))
        assert torch.equal(ours.td_error_abs, torch.maximum((q - y_dqn).abs(), (q - y_msbe).abs()))
        assert torch.equal(ours.on_dqn_branch, dqn.loss >= msbe.loss)
        assert 0 < ours.on_dqn_branch.sum() < 500


def test_cdqn_gradient_is_that_of_the_winner():
    q = torch.tensor([0.0, 0.0], requires_grad=True)
    y_msbe = torch.tensor([0.25, 0.75], requires_grad=True)
    terms = cdqn_loss(q, torch.tensor([0.5, 0.5]), y_msbe)
    assert terms.on_dqn_branch.tolist() == [True, False]
    terms.loss.sum().backward()
    assert q.grad.tolist() == [-0.5, -0.75]
    assert y_msbe.grad.tolist() == [0.0, 0.75]


def test_cdqn_tie_has_exactly_the_gradient_of_dqn():
    """At a copy θ̃ = θ every sample ties: half of each gradient would be neither algorithm's."""
    q = torch.tensor([0.0, 3.0], requires_grad=True)
    y_msbe = torch.tensor([0.5, 0.5], requires_grad=True)
    terms = cdqn_loss(q, y_msbe.detach().clone(), y_msbe)
    assert terms.on_dqn_branch.tolist() == [True, True]
    terms.loss.sum().backward()
    assert q.grad.tolist() == [-0.5, 1.0]
    assert y_msbe.grad.tolist() == [0.0, 0.0]


def test_cdqn_tie_of_opposite_errors_takes_dqn():
    q = torch.tensor([0.0], requires_grad=True)
    cdqn_loss(q, torch.tensor([0.5]), torch.tensor([-0.5])).loss.backward()
    assert q.grad.item() == -0.5


def test_huber_and_half_squared_on_both_sides_of_one():
    delta = torch.tensor([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0])
    assert huber(delta).tolist() == [2.5, 0.5, 0.125, 0.0, 0.125, 0.5, 2.5]
    assert half_squared(delta).tolist() == [4.5, 0.5, 0.125, 0.0, 0.125, 0.5, 4.5]


def test_huber_slope_is_the_error_clipped_to_one():
    delta = torch.tensor([-3.0, -0.5, 0.5, 3.0], requires_grad=True)
    huber(delta).sum().backward()
    assert delta.grad.tolist() == [-1.0, -0.5, 0.5, 1.0]


@pytest.mark.parametrize(("use_huber", "losses_of_3_and_half"), [(True, [2.5, 0.125]), (False, [4.5, 0.125])])
def test_importance_weights_multiply_huber_and_squared_error_alike(use_huber, losses_of_3_and_half):
    q, zero, weights = torch.tensor([3.0, 0.5]), torch.zeros(2), torch.tensor([2.0, 4.0])
    expected = [2 * losses_of_3_and_half[0], 4 * losses_of_3_and_half[1]]
    assert dqn_loss(q, zero, weights, use_huber).loss.tolist() == expected
    assert msbe_loss(q, zero, weights, use_huber).loss.tolist() == expected
    assert cdqn_loss(q, zero, zero, weights, use_huber).loss.tolist() == expected


def test_td_error_is_neither_weighted_nor_squared_nor_huber():
    q, zero, weights = torch.tensor([-3.0, 0.5]), torch.zeros(2), torch.tensor([2.0, 4.0])
    for terms in (dqn_loss(q, zero, weights), msbe_loss(q, zero, weights), cdqn_loss(q, zero, zero, weights)):
        assert terms.td_error_abs.tolist() == [3.0, 0.5]
        assert not terms.td_error_abs.requires_grad


def test_branch_mask_is_everywhere_for_dqn_and_nowhere_for_rg():
    q = torch.ones(3)
    assert dqn_loss(q, q).on_dqn_branch.tolist() == [True] * 3
    assert msbe_loss(q, q).on_dqn_branch.tolist() == [False] * 3


@pytest.mark.parametrize("transform", [False, True])
@pytest.mark.parametrize("diverged", [float("inf"), float("nan")])
def test_termination_cuts_the_bootstrap_even_of_a_diverged_value(diverged, transform):
    next_q = torch.full((1, 2), diverged)
    expected = literal_transform(2.0) if transform else 2.0
    facts = (torch.tensor([2.0]), torch.tensor([True]), 0.99)
    for target in (
        dqn_target(*facts, next_q, transform=transform),
        dqn_target(*facts, next_q, next_q, transform=transform),
        msbe_target(*facts, next_q, transform=transform),
    ):
        assert target.item() == pytest.approx(expected, rel=1e-6)


def test_transformed_target_is_t_of_reward_plus_discounted_inverse():
    f_online = NEXT_ONLINE.double()
    f_target = NEXT_TARGET.double()
    reward = REWARD.double()
    alive = (~TERMINATED).numpy()
    for ours, best in (
        (dqn_target(reward, TERMINATED, 0.9, f_target, transform=True), [4.0, 6.0, 9.0, -2.0]),
        (dqn_target(reward, TERMINATED, 0.9, f_target, f_online, transform=True), [2.0, 6.0, 9.0, -4.0]),
        (msbe_target(reward, TERMINATED, 0.9, f_online, transform=True), [1.0, 1.0, 1.0, 5.0]),
    ):
        expected = literal_transform(reward.numpy() + 0.9 * alive * literal_inverse(np.array(best)))
        np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-12)


def test_logged_loss_is_the_weighted_squared_error_never_huber():
    error = torch.tensor([3.0, 0.5])
    assert logged_loss(error).item() == (9 + 0.25) / 2
    assert logged_loss(error, torch.tensor([2.0, 4.0])).item() == (18 + 1) / 2


def test_untransformed_td_error_is_in_units_of_q():
    q, y = torch.tensor([100.0, -30.0], dtype=torch.float64), torch.tensor([40.0, 5.0], dtype=torch.float64)
    f = torch.tensor(literal_transform(q.numpy()), requires_grad=True)
    error = untransformed_td_error(f, losses.squash(y))
    np.testing.assert_allclose(error.numpy(), [60.0, 35.0], rtol=1e-12)
    assert not error.requires_grad


@pytest.mark.parametrize("double_q", [False, True])
def test_named_losses_are_the_three(double_q):
    q_BA, action_B = torch.tensor([[3.0, 0.0], [0.0, 2.0], [1.0, 5.0], [0.2, 0.0]]), torch.tensor([0, 1, 0, 1])
    facts, weights = (REWARD, TERMINATED, GAMMA), torch.tensor([1.0, 0.5, 2.0, 1.0])
    q_B, msbe_B = action_value(q_BA, action_B), msbe_target(*facts, NEXT_ONLINE)
    dqn_B = dqn_target(*facts, NEXT_TARGET, NEXT_ONLINE if double_q else None)
    expected = {
        "cdqn": cdqn_loss(q_B, dqn_B, msbe_B, weights),
        "dqn": dqn_loss(q_B, dqn_B, weights),
        "rg": msbe_loss(q_B, msbe_B, weights),
    }
    for name, terms in expected.items():
        found = losses.named_loss(
            name, q_BA, action_B, *facts, NEXT_TARGET, NEXT_ONLINE, double_q=double_q, weights=weights
        )
        for mine, theirs in zip(found, terms, strict=True):
            assert torch.equal(mine, theirs), name


def test_named_loss_takes_a_discount_for_each_sample():
    discount_B = torch.tensor([0.5, 0.25, 0.5, 0.0])
    q_BA = torch.zeros(4, 2)
    found = losses.named_loss(
        "dqn", q_BA, torch.zeros(4, dtype=torch.int64), REWARD, TERMINATED, discount_B, NEXT_TARGET, None
    )
    assert found.td_error_abs.tolist() == [1 + 2.0, 2 - 1.5, 0.5, 3.0]


@pytest.mark.parametrize(
    ("name", "missing", "words"),
    [
        ("c51", "", "loss is 'c51': choose 'cdqn', 'dqn' or 'rg'"),
        ("cdqn", "target", "cdqn needs the values of the next states"),
        ("cdqn", "online", "cdqn needs the values of the next states"),
        ("rg", "online", "rg needs the values of the next states"),
        ("dqn", "target", "dqn needs the values of the next states"),
    ],
)
def test_unknown_losses_and_missing_values_are_refused(name, missing, words):
    action_B = torch.zeros(4, dtype=torch.int64)
    target, online = (
        None if missing == part else value for part, value in (("target", NEXT_TARGET), ("online", NEXT_ONLINE))
    )
    with pytest.raises(ConfigError, match=words):
        losses.named_loss(name, torch.zeros(4, 2), action_B, REWARD, TERMINATED, GAMMA, target, online)


def test_denoised_reward_has_the_mean_of_the_slow_target_in_place_of_its_sample_and_no_gradient():
    reward_B, slow_B = torch.tensor([1.0, -2.0]), torch.tensor([4.0, -2.0])
    expected_B = torch.tensor([3.0, 0.5], requires_grad=True)
    found_B = losses.denoised_reward(reward_B, expected_B, slow_B)
    assert found_B.tolist() == [0.0, 0.5]
    assert not found_B.requires_grad
