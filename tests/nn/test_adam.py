"""Our Adam on a flat vector against PyTorch's own."""

import math

import pytest
import torch

from cdqn.nn.adam import adam_step_, clip_norm, clip_parts, parts_of, step_sizes


@pytest.mark.parametrize("max_norm", [0.5, 10.0, math.inf])
def test_adam_with_clipping_equals_torch_over_50_steps(max_norm):
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(40, generator=generator, dtype=torch.float64)
    reference = torch.nn.Parameter(start.clone())
    optimizer = torch.optim.Adam([reference], lr=3e-3, eps=1e-4)
    theta, first, second = start.clone(), torch.zeros_like(start), torch.zeros_like(start)
    clipped = 0
    for update in range(1, 51):
        gradient = torch.randn(40, generator=generator, dtype=torch.float64) * 10 ** (-update / 15)
        reference.grad = gradient.clone()
        norm = torch.nn.utils.clip_grad_norm_([reference], max_norm)
        optimizer.step()
        ours, our_norm = clip_norm(gradient, max_norm)
        torch.testing.assert_close(our_norm, norm)
        torch.testing.assert_close(ours, reference.grad, rtol=1e-12, atol=0)
        clipped += int(norm > max_norm)
        sizes = torch.tensor(step_sizes(update, 3e-3, 1e-4), dtype=torch.float64)
        adam_step_(theta, first, second, ours, sizes)
        torch.testing.assert_close(theta, reference.detach(), rtol=1e-10, atol=1e-12)
    state = optimizer.state[reference]
    torch.testing.assert_close(first, state["exp_avg"], rtol=1e-12, atol=1e-18)
    torch.testing.assert_close(second, state["exp_avg_sq"], rtol=1e-12, atol=1e-18)
    assert {0.5: 0 < clipped < 50, 10.0: clipped == 0, math.inf: clipped == 0}[max_norm]


def test_first_step_is_the_learning_rate_in_the_direction_of_the_sign():
    theta = torch.zeros(3)
    gradient = torch.tensor([2.0, -30.0, 0.5])
    sizes = torch.tensor(step_sizes(1, 0.1, 1e-8))
    adam_step_(theta, torch.zeros(3), torch.zeros(3), gradient, sizes)
    torch.testing.assert_close(theta, torch.tensor([-0.1, 0.1, -0.1]))


def test_norm_is_reported_as_it_was_before_clipping():
    gradient, norm = clip_norm(torch.tensor([30.0, 40.0]), 10.0)
    assert norm.item() == pytest.approx(50)
    torch.testing.assert_close(gradient, torch.tensor([6.0, 8.0]))


def test_short_gradient_is_left_as_it_is():
    gradient, _ = clip_norm(torch.tensor([0.3, 0.4]), 10.0)
    assert torch.equal(gradient, torch.tensor([0.3, 0.4]))


def test_parts_are_clipped_one_by_one_and_the_norm_is_that_of_the_whole():
    gradient = torch.tensor([30.0, 40.0, 0.3, 0.4, 0.0])
    clipped, norm = clip_parts(gradient, [2, 3], 10.0)
    torch.testing.assert_close(clipped, torch.tensor([6.0, 8.0, 0.3, 0.4, 0.0]), rtol=1e-5, atol=0)
    torch.testing.assert_close(norm, gradient.norm())


def test_a_single_part_is_clipped_to_the_same_bits_as_the_whole():
    gradient = torch.randn(1000, generator=torch.Generator().manual_seed(0)) * 10
    for ours, whole in zip(clip_parts(gradient, [1000], 10.0), clip_norm(gradient, 10.0), strict=True):
        assert torch.equal(ours, whole)


def test_factor_of_each_part_multiplies_its_steps_alone():
    start, gradient = torch.zeros(5), torch.tensor([1.0, -2.0, 3.0, -4.0, 5.0])
    plain, own = start.clone(), start.clone()
    sizes = torch.tensor(step_sizes(1, 0.1, 1e-8))
    adam_step_(plain, start.clone(), start.clone(), gradient, sizes)
    adam_step_(own, start.clone(), start.clone(), gradient, sizes, parts_of([2, 3], [1.0, 3.0], start))
    torch.testing.assert_close(own, plain * torch.tensor([1.0, 1.0, 3.0, 3.0, 3.0]))
    assert parts_of([2, 3], [3.0, 3.0], start) == 3.0, "a number is cheaper than a vector of it"
