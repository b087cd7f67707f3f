"""The backward pass that leaves rows out gives the gradient of the one that does not."""

import pytest
import torch

from cdqn.nn.networks import DuelingCNN
from cdqn.nn.row_sparse import rows_with_gradient

SHAPE = (4, 44, 40)


@pytest.fixture
def network() -> DuelingCNN:
    torch.manual_seed(0)
    network = DuelingCNN(SHAPE, 3, width=16, channels=(4, 6, 5)).double()
    for bias in (layer.bias for layer in (*network.convolutions, network.head.hidden)):
        torch.nn.init.uniform_(bias, -0.1, 0.1)  # zeros would hide a wrong gradient of the bias
    return network


def gradients(network: DuelingCNN, rows_zero: list[int], sparse: bool) -> tuple[torch.Tensor, list[torch.Tensor]]:
    network.fast = sparse
    network.zero_grad()
    generator = torch.Generator().manual_seed(1)
    observation = torch.randint(0, 256, (6, *SHAPE), dtype=torch.uint8, generator=generator)
    weight = torch.randn(6, 3, dtype=torch.float64, generator=generator)
    weight[rows_zero] = 0
    q = network(observation)
    (q * weight).sum().backward()
    return q.detach(), [parameter.grad.clone() for parameter in network.parameters()]


@pytest.mark.parametrize("rows_zero", [[], [0], [1, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]])
def test_gradients_equal_those_of_the_dense_pass(network, rows_zero):
    q_dense, dense = gradients(network, rows_zero, sparse=False)
    q_sparse, sparse = gradients(network, rows_zero, sparse=True)
    torch.testing.assert_close(q_sparse, q_dense, rtol=1e-12, atol=1e-12)
    for (name, _), expected, found in zip(network.named_parameters(), dense, sparse, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12, msg=name)


def test_only_rows_with_a_gradient_enter_the_backward_pass(network, monkeypatch):
    seen = []
    original = torch.ops.aten.convolution_backward

    def spy(gradient, *rest):
        seen.append(len(gradient))
        return original(gradient, *rest)

    monkeypatch.setattr(torch.ops.aten, "convolution_backward", spy)
    gradients(network, [1, 2, 5], sparse=True)
    assert seen == [3, 3, 3]


def test_a_row_of_nan_is_not_left_out():
    gradient = torch.zeros(3, 2)
    gradient[1, 0] = float("nan")
    assert rows_with_gradient(gradient).tolist() == [1]


def test_all_rows_are_taken_without_a_copy():
    assert rows_with_gradient(torch.ones(3, 2)) is None


@pytest.mark.parametrize("size", [(105, 80), (84, 84), (52, 40), (37, 43)])
def test_first_convolution_over_blocks_is_the_strided_one_of_the_paper(size):
    torch.manual_seed(0)
    network = DuelingCNN((4, *size), 3, width=16, channels=(4, 6, 5)).double()
    observation = torch.randint(0, 256, (3, 4, *size), dtype=torch.uint8)
    weight = torch.randn(3, 3, dtype=torch.float64)

    def plainly(x):
        x = x.double() / 255
        for convolution in network.convolutions:
            x = torch.relu(convolution(x))
        return network.head(x.flatten(1))

    results = []
    for forward in (network, plainly):
        network.zero_grad()
        q = forward(observation)
        (q * weight).sum().backward()
        results.append((q.detach(), [parameter.grad.clone() for parameter in network.parameters()]))
    (q, gradients), (expected_q, expected) = results
    torch.testing.assert_close(q, expected_q, rtol=1e-12, atol=1e-12)
    for (name, _), found, wanted in zip(network.named_parameters(), gradients, expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-12, msg=name)
