"""All parameters of a module in one flat vector, of which they are views.

A copy to the target network is then one line, the optimizer one expression, a checkpoint one tensor for each of θ, θ̃
and the two moments of Adam.
"""

import torch
from torch import Tensor, nn


def flatten_(module: nn.Module) -> Tensor:
    """Move the module's parameters into one vector, of which they become views."""
    flat = torch.cat([flat_of(parameter.detach(), parameter) for parameter in module.parameters()])
    point_(module, flat)
    return flat


def point_(module: nn.Module, flat: Tensor) -> None:
    """Make the module's parameters views of `flat`."""
    for parameter, view in zip(module.parameters(), views(module, flat).values(), strict=True):
        parameter.data = view


def views(module: nn.Module, flat: Tensor) -> dict[str, Tensor]:
    """The flat vector cut into the module's parameters, by name."""
    named = dict(module.named_parameters())
    pieces = torch.split(flat, [parameter.numel() for parameter in named.values()])
    return {name: _shaped(piece, p) for (name, p), piece in zip(named.items(), pieces, strict=True)}


def flat_of(tensor: Tensor, parameter: Tensor) -> Tensor:
    """A tensor of the parameter's shape as its piece of the flat vector."""
    return (tensor.permute(0, 2, 3, 1) if _is_channels_last(parameter) else tensor).reshape(-1)


def _shaped(piece: Tensor, parameter: Tensor) -> Tensor:
    """A piece of the flat vector as a view with the shape, and the order in memory, of the parameter."""
    if not _is_channels_last(parameter):
        return piece.view(parameter.shape)
    outputs, inputs, height, width = parameter.shape
    return piece.view(outputs, height, width, inputs).permute(0, 3, 1, 2)


def _is_channels_last(parameter: Tensor) -> bool:
    return not parameter.is_contiguous() and parameter.is_contiguous(memory_format=torch.channels_last)
