"""Our Adam on a flat vector against PyTorch's own."""

import math

import pytest
import torch

from cdqn.nn.adam import adam_step_, clip_norm, step_sizes


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
