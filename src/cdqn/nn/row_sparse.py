"""A network body whose backward pass leaves out the rows of a batch that have no gradient: exact, and faster.

C-DQN needs the gradient at s′ only for samples on the MSBE branch (Eq. 12); for the others it is exactly zero.
They are three quarters of a batch early in Space Invaders, and the backward pass is most of an update. The
forward pass stays one pass for all rows.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import conv2d, linear


def rows_with_gradient(gradient: Tensor) -> Tensor | None:
    """The rows that are not zero everywhere; None when that is all of them. A NaN is not zero."""
    has_gradient_B = gradient.ne(0).any(1)
    return None if bool(has_gradient_B.all()) else has_gradient_B.nonzero().squeeze(1)


class ConvolutionalBody(torch.autograd.Function):
    """Convolutions, each with ReLU, and one hidden layer with ReLU. The input gets no gradient."""

    @staticmethod
    def forward(ctx: Any, strides: Sequence[int], x: Tensor, *parameters: Tensor) -> Tensor:
        """`parameters`: weight and bias of each convolution, then of the hidden layer; there is no padding."""
        weights, biases = parameters[::2], parameters[1::2]
        outputs = [x]
        for stride, weight, bias in zip(strides, weights[:-1], biases[:-1], strict=True):
            outputs.append(conv2d(outputs[-1], weight, bias, stride).relu_())
        features = outputs[-1].flatten(1)
        hidden = linear(features, weights[-1], biases[-1]).relu_()
        ctx.strides = strides
        ctx.save_for_backward(hidden, features, *outputs, *weights)
        return hidden

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """R is the number of rows that have a gradient."""
        depth = len(ctx.strides)
        hidden, features, *rest = ctx.saved_tensors
        outputs, weights = rest[: depth + 1], rest[depth + 1 :]
        rows = rows_with_gradient(gradient)
        if rows is not None:
            gradient, hidden, features = gradient[rows], hidden[rows], features[rows]
            outputs = [output[rows] for output in outputs]
        gradient_R = _through_relu(gradient, hidden)
        gradients: list[Tensor | None] = [gradient_R.t() @ features, gradient_R.sum(0)]
        gradient_R = (gradient_R @ weights[-1]).view_as(outputs[-1])
        for layer in reversed(range(depth)):
            gradient_R, *of_parameters = torch.ops.aten.convolution_backward(
                _through_relu(gradient_R, outputs[layer + 1]),
                outputs[layer],
                weights[layer],
                [len(weights[layer])],
                [ctx.strides[layer]] * 2,
                [0, 0],
                [1, 1],
                False,
                [0, 0],
                1,
                [layer > 0, True, True],
            )
            gradients = [*of_parameters, *gradients]
        return None, None, *gradients


def _through_relu(gradient: Tensor, output: Tensor) -> Tensor:
    """The gradient before a ReLU, from the one after it and the ReLU's output."""
    before: Tensor = torch.ops.aten.threshold_backward(gradient, output, 0)
    return before
