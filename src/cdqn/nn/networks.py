"""Networks that map a batch of observations to Q values, one per action.

Weights by He et al. (2015), uniform with gain √2, biases zero, in every layer (App. E.1); or PyTorch's own.
The dueling head (Wang et al. 2016) is Q = V + A − mean A.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad

from cdqn.nn.row_sparse import ConvolutionalBody

Array = NDArray[np.floating]


def he_initialize(module: nn.Module) -> None:
    """He-uniform weights with gain √2 and zero biases, for every linear and convolutional layer."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def pytorch_initialize(module: nn.Module) -> None:
    """PyTorch's own weights and biases, uniform within ±1/√(inputs), for every linear and convolutional layer."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            layer.reset_parameters()


class Head(nn.Module):
    """Features to Q: one hidden layer, then Q itself or, dueling, a value and an advantage stream.

    The hidden layers of both streams are one matrix: one product instead of two.
    """

    def __init__(self, features: int, num_actions: int, width: int, dueling: bool) -> None:
        super().__init__()
        self.width = width
        self.dueling = dueling
        self.hidden = nn.Linear(features, 2 * width if dueling else width)
        self.advantage = nn.Linear(width, num_actions)
        self.value = nn.Linear(width, 1) if dueling else None

    def forward(self, features: Tensor) -> Tensor:
        return self.streams(torch.relu(self.hidden(features)))

    def streams(self, hidden: Tensor) -> Tensor:
        """Q from the hidden layer."""
        if self.value is None:
            q_BA: Tensor = self.advantage(hidden)
            return q_BA
        value_B1 = self.value(hidden[:, : self.width])
        advantage_BA = self.advantage(hidden[:, self.width :])
        return dueling_q(value_B1, advantage_BA)


def dueling_q(value_B1: Tensor, advantage_BA: Tensor) -> Tensor:
    """Q = V + A − mean A (Wang et al. 2016, their Eq. 9)."""
    return value_B1 + advantage_BA - advantage_BA.mean(1, keepdim=True)


class MLP(nn.Module):
    """For vector observations: ReLU layers of the given widths, the last of them inside the head."""

    def __init__(
        self, input_size: int, num_actions: int, hidden: Sequence[int] = (128, 128), dueling: bool = True
    ) -> None:
        super().__init__()
        widths = [input_size, *hidden[:-1]]
        self.torso = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        self.head = Head(widths[-1], num_actions, hidden[-1], dueling)
        he_initialize(self)

    def forward(self, observation: Tensor) -> Tensor:
        q_BA: Tensor = self.head(self.features(observation))
        return q_BA

    def features(self, observation: Tensor) -> Tensor:
        """What the head is given."""
        features = observation.flatten(1).to(self.head.advantage.weight.dtype)
        for layer in self.torso:
            features = torch.relu(layer(features))
        return features

    def numpy_forward(self) -> Callable[[Array], Array]:
        """The same function in NumPy, on the memory of the weights as they are now and will be.

        For a handful of states PyTorch's call overhead is several times the arithmetic, and acting
        needs no gradient.
        """
        layers = [_shared(layer) for layer in (*self.torso, self.head.hidden)]
        advantage = _shared(self.head.advantage)
        value = None if self.head.value is None else _shared(self.head.value)
        width = self.head.width

        @np.errstate(over="ignore", invalid="ignore")  # a diverging network is told of by its TD errors
        def forward(observation: Array) -> Array:
            x = observation.reshape(len(observation), -1).astype(advantage[0].dtype, copy=False)
            for weight, bias in layers:
                x = x @ weight.T
                x += bias
                np.maximum(x, 0, out=x)
            if value is None:
                return np.asarray(x @ advantage[0].T + advantage[1])
            value_B1 = x[:, :width] @ value[0].T + value[1]
            advantage_BA = x[:, width:] @ advantage[0].T + advantage[1]
            return np.asarray(value_B1 + advantage_BA - advantage_BA.mean(1, keepdims=True))

        return forward


class Table(nn.Module):
    """For numbered states, one-hot: a number for each state and action, and nothing that they share.

    What a layered network learns of one state it believes of all: where every step costs something, all of Q falls
    to the value of walking on forever before the goal is found. In a table what has not been tried keeps its first
    value, and is tried.
    """

    FIRST = 1.0
    """The first values, nearly: rewards are normalised, this is a typical one, and what is untried looks good."""
    SPREAD = 0.1
    """Differences between them, in shares of He's: or the first action would be taken everywhere."""

    def __init__(self, states: int, num_actions: int) -> None:
        super().__init__()
        bound = self.SPREAD * math.sqrt(6 / states)
        self.q_SA = nn.Parameter(self.FIRST + torch.empty(states, num_actions).uniform_(-bound, bound))

    def forward(self, observation: Tensor) -> Tensor:
        return observation.flatten(1).to(self.q_SA.dtype) @ self.q_SA

    def numpy_forward(self) -> Callable[[Array], Array]:
        """The same function in NumPy, on the same memory."""
        q_SA: Array = self.q_SA.detach().numpy()

        def forward(observation: Array) -> Array:
            return np.asarray(q_SA[observation.reshape(len(observation), -1).argmax(1)])

        return forward


def _shared(layer: nn.Module) -> tuple[Array, Array]:
    """Weight and bias of a linear layer as arrays on the same memory."""
    assert isinstance(layer, nn.Linear)
    return layer.weight.detach().numpy(), layer.bias.detach().numpy()


class DuelingCNN(nn.Module):
    """The paper's network for Atari (App. E.1): Wang et al. (2016) with a zero padding of 2 at the input.

    Channels × 105 × 80 bytes in, three convolutions, 64×10×7 = 4480 features, two streams of 512. The weights
    lie channels last, which is faster on CPU and GPU alike.
    """

    KERNELS = ((8, 4, 2), (4, 2, 0), (3, 1, 0))
    """Size, stride and padding of each convolution."""
    BLOCK_STRIDES = (1, 2, 1)
    """Strides when the first is done over blocks of pixels."""

    def __init__(
        self,
        observation_shape: Sequence[int],
        num_actions: int,
        dueling: bool = True,
        width: int = 512,
        channels: Sequence[int] = (32, 64, 64),
    ) -> None:
        super().__init__()
        inputs, height, width_pixels = observation_shape
        self.fast = True
        """On a CPU leave rows without a gradient out of the backward pass: shapes then depend on the data."""
        self.convolutions = nn.ModuleList(
            nn.Conv2d(a, b, kernel, stride, padding)
            for (a, b), (kernel, stride, padding) in zip(
                itertools.pairwise((inputs, *channels)), self.KERNELS, strict=True
            )
        )
        features = channels[-1] * math.prod(feature_size(n, self.KERNELS) for n in (height, width_pixels))
        self.head = Head(features, num_actions, width, dueling)
        he_initialize(self)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, observation: Tensor) -> Tensor:
        if self.fast and observation.device.type == "cpu":
            return self.head.streams(self._fast_hidden(observation))
        q_BA: Tensor = self.head(self.features(observation))
        return q_BA

    def features(self, observation: Tensor) -> Tensor:
        """What the head is given."""
        if self.fast and observation.device.type == "cpu":
            x, parameters = self._over_blocks(observation)
            for stride, weight, bias in zip(self.BLOCK_STRIDES, parameters[::2], parameters[1::2], strict=True):
                x = torch.relu(conv2d(x, weight, bias, stride))
            return x.flatten(1)
        x = observation.to(self.head.advantage.weight.dtype, memory_format=torch.channels_last) / 255
        for convolution in self.convolutions:
            x = torch.relu(convolution(x))
        return x.flatten(1)

    def _fast_hidden(self, observation: Tensor) -> Tensor:
        """The hidden layer, whose backward pass leaves out rows without a gradient."""
        blocks, parameters = self._over_blocks(observation)
        parameters += [self.head.hidden.weight, self.head.hidden.bias]
        hidden: Tensor = ConvolutionalBody.apply(self.BLOCK_STRIDES, blocks, *parameters)  # type: ignore[no-untyped-call]
        return hidden

    def _over_blocks(self, observation: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Input and parameters with the first convolution as one of 2×2 over blocks of 4×4 pixels: the same, faster.

        The weights are divided by 255 in place of the pixels, of which there are more.
        """
        size, stride, padding = self.KERNELS[0]
        blocks = pixel_blocks(observation, stride, size, padding).to(self.head.advantage.weight.dtype)
        layers: list[Any] = list(self.convolutions)
        parameters = [block_weight(layers[0].weight / 255, stride), layers[0].bias]
        for layer in layers[1:]:
            parameters += [layer.weight, layer.bias]
        return blocks, parameters


def pixel_blocks(frames: Tensor, block: int, size: int, padding: int) -> Tensor:
    """Bytes of shape (B, C, H, W) as (B, C·block², H′, W′), channels last: each block of pixels becomes one.

    H′ and W′ are what a convolution of `size` = 2·block, stride `block` and that zero padding looks at. Four bytes in a
    row are moved as one number: blocks of 4.
    """
    batch, channels, height, width = frames.shape
    rows, columns = ((n + 2 * padding - size) // block + 2 for n in (height, width))
    right, below = block * columns - width - padding, block * rows - height - padding
    padded = pad(frames, (padding, right, padding, below)).contiguous().view(torch.int32)
    blocks = padded.view(batch, channels, rows, block, columns).permute(0, 2, 4, 1, 3).contiguous()
    return blocks.view(torch.uint8).view(batch, rows, columns, -1).permute(0, 3, 1, 2)


def block_weight(weight: Tensor, block: int) -> Tensor:
    """The weight of a convolution of size 2·block and stride `block`, for `pixel_blocks`: size 2, stride 1."""
    outputs, channels, *_ = weight.shape
    split = weight.reshape(outputs, channels, 2, block, 2, block).permute(0, 2, 4, 1, 3, 5)
    return split.reshape(outputs, 2, 2, -1).permute(0, 3, 1, 2)


class BoardCNN(nn.Module):
    """For boards of height × width × channels, MinAtar's above all: one 3×3 convolution, one hidden layer.

    The shape of the network in Young & Tian (2019), 16 filters and 128 units, with a dueling head.
    """

    CODES, LARGEST_CODE, LARGEST_PIXEL = 16, 10, 255
    """Bytes are pixels, but on boards of fewer cells a side they are taken for codes of what is there: MiniGrid's."""

    def __init__(
        self,
        observation_shape: Sequence[int],
        num_actions: int,
        dueling: bool = True,
        filters: int = 16,
        width: int = 128,
    ) -> None:
        super().__init__()
        height, columns, channels = observation_shape
        self.largest_byte = self.LARGEST_CODE if max(height, columns) < self.CODES else self.LARGEST_PIXEL
        self.convolution = nn.Conv2d(channels, filters, 3)
        self.head = Head(filters * (height - 2) * (columns - 2), num_actions, width, dueling)
        he_initialize(self)

    def forward(self, observation: Tensor) -> Tensor:
        q_BA: Tensor = self.head(self.features(observation))
        return q_BA

    def features(self, observation: Tensor) -> Tensor:
        """What the head is given."""
        channels_first = observation.to(self.head.advantage.weight.dtype).permute(0, 3, 1, 2)
        if observation.dtype == torch.uint8:
            channels_first = channels_first / self.largest_byte
        return torch.relu(self.convolution(channels_first)).flatten(1)


def feature_size(pixels: int, kernels: Sequence[tuple[int, int, int]]) -> int:
    """Height or width after convolutions of these sizes, strides and paddings."""
    for size, stride, padding in kernels:
        pixels = (pixels + 2 * padding - size) // stride + 1
    return pixels


def parameter_count(module: nn.Module) -> int:
    """How many numbers are learned."""
    return sum(math.prod(p.shape) for p in module.parameters())


def make_network(
    observation_shape: Sequence[int],
    num_actions: int,
    hidden: Sequence[int] = (128, 128),
    dueling: bool = True,
    channels: Sequence[int] | None = None,
    initial_weights: str = "he",
    board: bool = False,
) -> nn.Module:
    """The network for vectors, for images of channels × height × width, or for boards of height × width × channels.

    Without hidden layers it is a table, for one-hot vectors.
    """
    network: nn.Module
    if not hidden:
        network = Table(observation_shape[0], num_actions)
    elif len(observation_shape) == 1:
        network = MLP(observation_shape[0], num_actions, hidden, dueling)
    elif board:
        network = BoardCNN(observation_shape, num_actions, dueling, width=hidden[-1])
    else:
        network = DuelingCNN(observation_shape, num_actions, dueling, hidden[-1], channels or (32, 64, 64))
    if initial_weights == "pytorch":
        pytorch_initialize(network)
    return network
