"""Adam (Kingma & Ba 2015) on one flat vector, with gradient clipping.

`adam_step_` is written here and not taken from torch.optim so that it can be traced into the same compiled
function as the gradient: for small networks the optimizer's call overhead is a large part of an update. The
bias corrections come in as numbers, because a power of a tensor would be computed anew for every element.
Large networks are not compiled, and use PyTorch's own (`fused_adam_step_`).
"""

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

BETA1, BETA2 = 0.9, 0.999


def step_sizes(update: int, learning_rate: float, epsilon: float) -> tuple[float, float, float]:
    """The three numbers that `adam_step_` needs at the `update`-th step, counted from 1."""
    return learning_rate / (1 - BETA1**update), 1 / math.sqrt(1 - BETA2**update), epsilon


def clip_norm(gradient: Tensor, max_norm: float) -> tuple[Tensor, Tensor]:
    """The gradient scaled down to `max_norm` where it is longer, and the norm it had."""
    norm = gradient.norm()
    if math.isinf(max_norm):
        return gradient, norm
    return gradient * torch.clamp(max_norm / (norm + 1e-6), max=1.0), norm


def clip_parts(gradient: Tensor, lengths: list[int], max_norm: float) -> tuple[Tensor, Tensor]:
    """`clip_norm` for each part of the gradient by itself, so that none shortens another; and the norm of the whole."""
    parts, norms = zip(*(clip_norm(part, max_norm) for part in torch.split(gradient, lengths)), strict=True)
    return torch.cat(parts), total_norm(norms)


def total_norm(norms: Sequence[Tensor]) -> Tensor:
    """The norm of what has parts of these norms."""
    return torch.stack(list(norms)).norm() if len(norms) > 1 else norms[0]


def parts_of(lengths: list[int], numbers: list[float], like: Tensor) -> Tensor | float:
    """A vector with one number in each part, or the number itself where all are equal."""
    if len(set(numbers)) == 1:
        return numbers[0]
    return torch.cat([like.new_full((length,), number) for length, number in zip(lengths, numbers, strict=True)])


def clip_gradients_(parameters: Iterable[nn.Parameter], max_norm: float) -> Tensor:
    """`clip_norm` for the gradients of parameters, in place; a pass over the memory only where it is needed."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = nn.utils.get_total_norm(gradients)
    if norm > max_norm:
        torch._foreach_mul_(gradients, max_norm / (norm + 1e-6))
    return norm


def adam_step_(
    theta: Tensor, first: Tensor, second: Tensor, gradient: Tensor, sizes: Tensor, factor: Tensor | float = 1.0
) -> None:
    """One step in place; `sizes` holds what `step_sizes` returned, `first` and `second` the two moments.

    `factor` multiplies the step size.
    """
    first.mul_(BETA1).add_(gradient, alpha=1 - BETA1)
    second.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
    step_size = sizes[0] if isinstance(factor, float) and factor == 1 else factor * sizes[0]
    theta.sub_(step_size * first / (second.sqrt() * sizes[1] + sizes[2]))


@torch.no_grad()
def fused_adam_step_(
    with_moments: Iterable[tuple[Tensor, Tensor, Tensor]], update: int, learning_rate: float, epsilon: float
) -> None:
    """PyTorch's Adam on the gradients of parameters beside their two moments, one pass over the memory.

    The function and not the class torch.optim.Adam, which imports all of Dynamo: two seconds of every process.
    """
    used = [triple for triple in with_moments if triple[0].grad is not None]
    parameters, first, second = ([triple[i] for triple in used] for i in range(3))
    adam(
        parameters,
        [parameter.grad for parameter in parameters if parameter.grad is not None],
        first,
        second,
        [],
        [torch.full((), update - 1.0, device=parameter.device) for parameter in parameters],  # counted on before use
        fused=True,
        amsgrad=False,
        beta1=BETA1,
        beta2=BETA2,
        lr=learning_rate,
        weight_decay=0.0,
        eps=epsilon,
        maximize=False,
    )
