"""Fitted Q iteration of several repeats at once: R networks of one shape, each with a data set of its own.

The parameters of all repeats are stacked, so that each layer is one batched product, and one step of Adam moves
them all. The gradient is written out, because that lets it leave out what is zero and write into memory that is
there already; a test ties each update to autograd on `losses.py`. At 128 units the products run at the speed of
large ones (benchmarks/wet_chicken_speed.py).

The target network θ̃ is the θ of an epoch's start, and it is needed at the fixed states s′ alone: it exists only as
the vector of its values there, computed once per epoch. So are the values of DC-DQN's slow copy θ̄.

Suffixes: R repeats, N samples of a data set, B of a batch, A actions, K rows of s′ kept, M rows of s and s′.
"""

import copy
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cdqn.algorithms import DCDQN
from cdqn.errors import ConfigError
from cdqn.nn.adam import fused_adam_step_

_CHUNK = 400
"""Rows of a forward pass without gradient: its activations stay in the cache."""


class Data(NamedTuple):
    """The transitions of every repeat, one row each; they never terminate."""

    state_RN: Tensor
    action_RN: Tensor
    reward_RN: Tensor
    next_state_RN: Tensor


def draw_parameters(rng: np.random.Generator, widths: Sequence[int]) -> list[NDArray[np.float64]]:
    """Weights (out, in) and biases of one network: He uniform, and U(±1/√fan_in) [code of the authors]."""
    parameters = []
    for fan_in, fan_out in itertools.pairwise(widths):
        parameters.append(rng.uniform(-1, 1, (fan_out, fan_in)) * np.sqrt(6 / fan_in))
        parameters.append(rng.uniform(-1, 1, fan_out) / np.sqrt(fan_in))
    return parameters


class StackedMLP:
    """R networks with ReLU between their layers; θ of all is one vector, and so is its gradient."""

    def __init__(self, parameters: Sequence[Sequence[NDArray[np.float64]]], dtype: torch.dtype = torch.float32) -> None:
        """`parameters` holds what `draw_parameters` gave for each repeat."""
        stacked = [torch.from_numpy(np.stack(layer)).to(dtype) for layer in zip(*parameters, strict=True)]
        shapes = [block.shape for block in stacked]
        self.repeats = len(parameters)
        self.theta = torch.cat([block.flatten() for block in stacked])
        self.gradient = torch.zeros_like(self.theta)
        self.weights, self.biases = _cut(self.theta, shapes)
        self.depth = len(self.weights)
        self._weights, self._biases = _by_repeat(self.weights), _by_repeat(self.biases)
        self._weight_gradients, self._bias_gradients = map(_by_repeat, _cut(self.gradient, shapes))
        self._rooms: dict[int, Tensor] = {}

    def forward(self, x_RN1: Tensor) -> list[Tensor]:
        """The output of each layer, the last of them Q; valid until the next forward pass."""
        outputs = [self._room(layer, layer, x_RN1.shape[1]) for layer in range(self.depth)]
        # Repeat by repeat, so that what a layer has written is still in the core's own cache for the next.
        for weights, biases, below, *rooms in zip(self._weights, self._biases, x_RN1, *outputs, strict=True):
            for layer, room in enumerate(rooms):
                below = torch.addmm(biases[layer], below, weights[layer].t(), out=room)
                if layer < self.depth - 1:
                    below.relu_()
        return outputs

    def q_values(self, x_RN: Tensor) -> Tensor:
        """Q at many states, in pieces."""
        return torch.cat([self.forward(x.unsqueeze(2))[-1].clone() for x in torch.split(x_RN, _CHUNK, 1)], 1)

    def backward(self, x_RN1: Tensor, hidden: Sequence[Tensor], gradient_RNA: Tensor) -> None:
        """The gradient of θ from that of Q.

        `hidden` are the outputs of the layers below Q on the same rows, and are overwritten.
        """
        spare = self._room(self.depth, 0, x_RN1.shape[1])[0]
        parameters = zip(self._weights, self._weight_gradients, self._bias_gradients, strict=True)
        for (weights, weight_gradients, bias_gradients), above, *inputs in zip(
            parameters, gradient_RNA, x_RN1, *hidden, strict=True
        ):
            for layer in reversed(range(self.depth)):
                weight, bias, below = weight_gradients[layer], bias_gradients[layer], inputs[layer]
                torch.mm(above.t(), below, out=weight)
                torch.sum(above, 0, out=bias)
                if layer:
                    torch.mm(above, weights[layer], out=spare)
                    above = torch.ops.aten.threshold_backward.grad_input(spare, below, 0, grad_input=below)

    def take(self, hidden: Sequence[Tensor], rows_RK: Tensor) -> list[Tensor]:
        """The chosen rows of each layer's output, for `backward`."""
        taken = []
        flat_rows = (rows_RK + hidden[0].shape[1] * torch.arange(self.repeats).unsqueeze(1)).flatten()
        for layer, output in enumerate(hidden):
            room = self._room(self.depth + 1 + layer, layer, rows_RK.shape[1])
            torch.index_select(output.flatten(0, 1), 0, flat_rows, out=room.flatten(0, 1))
            taken.append(room)
        return taken

    def _room(self, number: int, layer: int, rows: int) -> Tensor:
        """Memory for the output of a layer, allocated once: fresh pages cost as much as a pass over them."""
        width = self.biases[layer].shape[1]
        size = self.repeats * rows * width
        if number not in self._rooms or len(self._rooms[number]) < size:
            self._rooms[number] = self.theta.new_empty(size)
        return self._rooms[number][:size].view(self.repeats, rows, width)


class FittedQ:
    """The algorithms on fixed data, an epoch at a time; they differ in `_step`, and DC-DQN in its rewards.

    The loss is ½δ². DC-DQN (docs/denoised.md) has a second network, `mean_network`, which learns the slow copy's target
    on average; the loss takes it from an average of its parameters.
    """

    def __init__(
        self,
        algorithm: str,
        network: StackedMLP,
        data: Data,
        gamma: float,
        batch_size: int,
        adam_epsilon: float = 1e-8,
        mean_network: StackedMLP | None = None,
    ) -> None:
        self.samples = data.state_RN.shape[1]
        if self.samples % batch_size:
            raise ConfigError(f"{self.samples} transitions are no whole number of batches of {batch_size}")
        if (algorithm == "dcdqn") != (mean_network is not None):
            raise ConfigError(f"algorithm {algorithm} with mean_network {mean_network}: DC-DQN has one, no other does")
        self.algorithm = algorithm
        self.network = network
        self.mean_network = mean_network
        self.data = data
        self.gamma = gamma
        self.batch_size = batch_size
        self._adam_epsilon = adam_epsilon
        self._learned = {"": network} | ({} if mean_network is None else {"mean_": mean_network})
        self._moments = {"step": torch.zeros(())}
        for prefix, learned in self._learned.items():
            learned.theta.grad = learned.gradient
            self._moments[f"{prefix}exp_avg"] = torch.zeros_like(learned.theta)
            self._moments[f"{prefix}exp_avg_sq"] = torch.zeros_like(learned.theta)
        self._next_value_RN = self._next_values()
        self._slow = None if mean_network is None else copy.deepcopy(network)
        self._average = copy.deepcopy(mean_network)

    def epoch(self, order_RN: Tensor, learning_rate: float) -> None:
        """Every sample once, in batches, in the given order.

        θ̃ becomes the θ of the epoch's start, and does so after the first batch, so that it never equals θ [code]:
        the first batch still has the target of the epoch before.
        """
        size = self.batch_size
        with_moments = [
            (learned.theta, self._moments[f"{prefix}exp_avg"], self._moments[f"{prefix}exp_avg_sq"])
            for prefix, learned in self._learned.items()
        ]
        state_RN, action_RN, reward_RN, next_state_RN = (column.gather(1, order_RN) for column in self.data)
        next_value_RN = reward_RN  # RG has no use for it
        if self.algorithm != "rg":
            fresh_RN = self._next_values()
            next_value_RN = fresh_RN.gather(1, order_RN)
            next_value_RN[:, :size] = self._next_value_RN.gather(1, order_RN[:, :size])
            self._next_value_RN = fresh_RN
        slow_target_RN = reward_RN
        if self._slow is not None:
            slow_value_RN = self._slow.q_values(self.data.next_state_RN).amax(2).gather(1, order_RN)
            slow_target_RN = reward_RN + self.gamma * slow_value_RN
        columns = (state_RN, action_RN, reward_RN, next_value_RN, slow_target_RN)
        batches = [self._batches(column) for column in columns]
        if self.algorithm != "dqn":  # one pass for s and s′: the gradient flows through both
            batches[0] = torch.cat([batches[0], self._batches(next_state_RN)], 2)
        for x_RB, action_RB, reward_RB, next_value_RB, slow_target_RB in zip(*batches, strict=True):
            x_RB1 = x_RB.unsqueeze(2)
            if self.mean_network is not None:  # as losses.denoised_reward
                reward_RB = reward_RB + self._learn_mean(x_RB1[:, :size], action_RB, slow_target_RB) - slow_target_RB
            self._step(x_RB1, action_RB, reward_RB, next_value_RB)
            self._moments["step"] += 1
            update = int(self._moments["step"])
            for tensors, factor in zip(with_moments, (1.0, DCDQN.v_step_size), strict=False):
                fused_adam_step_([tensors], update, factor * learning_rate, self._adam_epsilon)
            if self._average is not None and self.mean_network is not None:
                self._average.theta.lerp_(self.mean_network.theta, 1 / DCDQN.v_average_updates)
        if self._slow is not None:  # it values the next states once an epoch, and so it moves once an epoch
            self._slow.theta.lerp_(self.network.theta, min(1.0, len(batches[0]) / DCDQN.slow_copy_updates))

    def state_dict(self) -> dict[str, Any]:
        """A copy of all that changes during training."""
        return {name: tensor.clone() for name, tensor in self._state().items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        for name, tensor in self._state().items():
            tensor.copy_(torch.as_tensor(state[name]))

    def _state(self) -> dict[str, Tensor]:
        networks = {**self._learned, "slow_": self._slow, "average_": self._average}
        thetas = {f"{prefix}theta": network.theta for prefix, network in networks.items() if network is not None}
        return thetas | {"next_value": self._next_value_RN} | self._moments

    def _next_values(self) -> Tensor:
        """max Q(s′) under the present θ."""
        if self.algorithm == "rg":
            return self.data.reward_RN.new_empty(0)
        return self.network.q_values(self.data.next_state_RN).amax(2)

    def _batches(self, column_RN: Tensor) -> Tensor:
        """(batches, R, B), each batch in one piece of memory."""
        return column_RN.view(len(column_RN), -1, self.batch_size).transpose(0, 1).contiguous()

    def _step(self, x_RB1: Tensor, action_RB: Tensor, reward_RB: Tensor, frozen_value_RB: Tensor) -> None:
        """The gradient of the mean of ½δ² over a batch: δ by ∂Q(s, a), and −γδ by ∂max Q(s′) where it flows there."""
        size = self.batch_size
        *hidden, q_RBA = self.network.forward(x_RB1)
        q_RB = q_RBA[:, :size].gather(2, action_RB.unsqueeze(2)).squeeze(2)
        target_RB = reward_RB + self.gamma * frozen_value_RB  # as the other one, so that ties are ties
        if self.algorithm == "dqn":
            delta_RB = (q_RB - target_RB) / size
            self.network.backward(x_RB1, hidden, _at(action_RB, delta_RB, q_RBA))
            return
        next_value_RB, next_action_RB = q_RBA[:, size:].max(2)
        msbe_target_RB = reward_RB + self.gamma * next_value_RB
        delta_RB = q_RB - msbe_target_RB
        if self.algorithm == "rg":
            delta_RB = torch.cat([delta_RB, -self.gamma * delta_RB], 1) / size
            self.network.backward(x_RB1, hidden, _at(torch.cat([action_RB, next_action_RB], 1), delta_RB, q_RBA))
            return
        dqn_delta_RB = q_RB - target_RB
        on_dqn_branch_RB = dqn_delta_RB.abs() >= delta_RB.abs()  # Eq. 12, as losses.cdqn_loss
        delta_RB = torch.where(on_dqn_branch_RB, dqn_delta_RB, delta_RB) / size
        # At s′ only the samples of the other branch have a gradient: as many rows as the fullest repeat needs.
        most = int((~on_dqn_branch_RB).sum(1).max())
        kept_RK = on_dqn_branch_RB.to(torch.uint8).argsort(dim=1, stable=True)[:, :most]
        next_delta_RK = torch.where(on_dqn_branch_RB, 0, -self.gamma * delta_RB).gather(1, kept_RK)
        rows_RM = torch.cat([torch.arange(size).expand(len(kept_RK), -1), size + kept_RK], 1)
        action_RM = torch.cat([action_RB, next_action_RB.gather(1, kept_RK)], 1)
        gradient_RMA = _at(action_RM, torch.cat([delta_RB, next_delta_RK], 1), q_RBA)
        x_RM1 = x_RB1.gather(1, rows_RM.unsqueeze(2))
        self.network.backward(x_RM1, self.network.take(hidden, rows_RM), gradient_RMA)

    def _learn_mean(self, x_RB1: Tensor, action_RB: Tensor, target_RB: Tensor) -> Tensor:
        """V(s, a) by its average, and the gradient of ½(V − y)² for its next step."""
        assert self.mean_network is not None
        assert self._average is not None
        *hidden, v_RBA = self.mean_network.forward(x_RB1)
        v_RB = v_RBA.gather(2, action_RB.unsqueeze(2)).squeeze(2)
        gradient_RBA = _at(action_RB, (v_RB - target_RB) / self.batch_size, v_RBA)
        self.mean_network.backward(x_RB1, hidden, gradient_RBA)
        return self._average.forward(x_RB1)[-1].gather(2, action_RB.unsqueeze(2)).squeeze(2)


def _at(action_RB: Tensor, value_RB: Tensor, q_RBA: Tensor) -> Tensor:
    """The values at the given actions, and 0 at the others."""
    spread_RBA = q_RBA.new_zeros(*action_RB.shape, q_RBA.shape[2])
    return spread_RBA.scatter_(2, action_RB.unsqueeze(2), value_RB.unsqueeze(2))


def _cut(flat: Tensor, shapes: Sequence[torch.Size]) -> tuple[list[Tensor], list[Tensor]]:
    """Views of one vector: the weights (R, out, in) and the biases (R, out) of each layer."""
    pieces = torch.split(flat, [shape.numel() for shape in shapes])
    views = [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)]
    return views[::2], views[1::2]


def _by_repeat(layers: Sequence[Tensor]) -> list[tuple[Tensor, ...]]:
    """For each repeat the views of its layers, made once: a view costs as much as a small operation."""
    return list(zip(*(layer.unbind() for layer in layers), strict=True))
