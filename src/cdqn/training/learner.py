"""The learner: online network θ, target network θ̃, optimizer; `update(batch)` is one step of Adam.

All parameters of the online network live in one flat vector, and so do those of the target network and
both moments of Adam: a copy to the target is one line, the optimizer one expression, a checkpoint four
tensors. The networks' own parameters are views of these vectors.

The same functions are run in one of two ways (`backend`): "eager" through autograd, or "compiled", the
gradient and the optimizer traced and built into one program by Inductor. For small networks the latter
spends a fifth to a third of the time (docs/benchmarks.md).
"""

import copy
import os
import shutil
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad

from cdqn import losses
from cdqn.config import Config
from cdqn.envs import EnvSpec
from cdqn.errors import CheckpointError, ConfigError
from cdqn.nn.adam import adam_step_, clip_gradients_, clip_norm, fused_adam_step_, step_sizes
from cdqn.nn.networks import DuelingCNN, make_network, parameter_count
from cdqn.replay import Batch
from cdqn.value_transform import unsquash

Backend = Literal["eager", "compiled"]
Forward = Callable[[Tensor], Tensor]

MAX_COMPILED_PARAMETERS = 1_000_000
"""Above this the matrix products outweigh the call overhead that compilation removes."""
MIN_COMPILED_UPDATES = 5_000
"""Below this a run is over before compilation (some 3 s when cached, 10 to 20 s at first) has paid."""


class UpdateResult(NamedTuple):
    """What one update has to say, to the replay memory and to the metrics."""

    td_error_abs: NDArray[np.float32]
    """|δ| of each sample, in units of Q: for C-DQN the larger of the two."""
    loss: float
    """Importance-weighted mean squared error of the branch taken (Eq. 31, 32)."""
    dqn_share: float
    """Share of samples whose gradient is that of the DQN loss."""
    q_mean: float
    """Batch mean of max Q(s′), in units of Q: beyond r_max/(1−γ) it cannot be right."""
    gradient_norm: float
    """ℓ2 norm of the gradient before clipping."""


class Tensors(NamedTuple):
    """A batch as the loss sees it."""

    observation: Tensor
    action: Tensor
    reward: Tensor
    next_observation: Tensor
    terminated: Tensor
    weight: Tensor


class Assessment(NamedTuple):
    """A batch under the present θ and θ̃, sample by sample."""

    terms: losses.LossTerms
    td_error_abs: Tensor
    """|δ| in units of Q: that of `terms`, unless the value transform is on."""
    next_value: Tensor
    """max Q(s′) in units of Q."""


class Learner:
    """θ, θ̃ and Adam for one of the three algorithms, which differ in `assess` alone."""

    def __init__(self, network: nn.Module, config: Config) -> None:
        config = config.resolved()
        self.config = config
        self.network = network
        self.theta = _flatten_(network)
        self.target = self.theta.clone()
        self.target_network = copy.deepcopy(network).requires_grad_(False)
        _point_(self.target_network, self.target)
        self.first_moment = torch.zeros_like(self.theta)
        self.second_moment = torch.zeros_like(self.theta)
        self.learning_rate = config.learning_rate
        self.gamma = config.gamma
        """γ; None while it is yet to be found (App. E.3), and then no update is possible."""
        self.updates = 0
        self.backend: Backend = "eager"
        moments = (_views(network, moment).values() for moment in (self.first_moment, self.second_moment))
        self._with_moments = list(zip(network.parameters(), *moments, strict=True))
        self._sizes = torch.zeros(3, dtype=self.theta.dtype, device=self.theta.device)
        self._compiled: dict[int, Callable[..., tuple[Tensor, Tensor]]] = {}

    def choose_backend(self, planned_updates: int) -> Backend:
        """Settle how updates are run, once, before the first: it changes the last bits of the result."""
        wanted = self.config.compile
        pays = (
            planned_updates >= MIN_COMPILED_UPDATES
            and parameter_count(self.network) <= MAX_COMPILED_PARAMETERS
            and self.theta.device.type == "cpu"
        )
        self._set_backend("compiled" if wanted == "on" or (wanted == "auto" and pays) else "eager")
        return self.backend

    def _set_backend(self, backend: Backend) -> None:
        self.backend = backend if compiler_found() else "eager"
        if isinstance(self.network, DuelingCNN):
            self.network.fast = self.backend == "eager"  # a program's shapes must not depend on the data

    def update(self, batch: Batch) -> UpdateResult:
        """One step of Adam on the loss of the algorithm; every `target_period_updates`-th also moves θ̃."""
        period = self.config.target_period_updates
        copy_due = period is not None and (self.updates + 1) % period == 0
        theta_before = self.theta.clone() if copy_due and self.config.target_copy == "previous" else self.theta
        tensors = _to_tensors(batch, self.theta.device)
        step = self._eager_step if self.backend == "eager" else self._compiled_step
        td_error_abs_B, stats = step(tensors)
        if copy_due:
            self.target.copy_(theta_before)  # θ̃ ← θ from before this step, so that θ̃ ≠ θ (App. E.1)
        self.updates += 1
        return UpdateResult(td_error_abs_B.cpu().numpy(), *stats.tolist())

    def q_values(self, observation: Tensor) -> Tensor:
        """Q of the online network, in units of Q."""
        q_BA: Tensor = self.network(observation)
        return unsquash(q_BA) if self.config.value_transform else q_BA

    def state_dict(self) -> dict[str, Any]:
        """A copy of all that changes during training."""
        return {
            "theta": self.theta.clone(),
            "target": self.target.clone(),
            "first_moment": self.first_moment.clone(),
            "second_moment": self.second_moment.clone(),
            "learning_rate": self.learning_rate,
            "gamma": self.gamma,
            "updates": self.updates,
            "backend": self.backend,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        for name in ("theta", "target", "first_moment", "second_moment"):
            mine, saved = getattr(self, name), torch.as_tensor(state[name])
            if mine.shape != saved.shape:
                raise CheckpointError(
                    f"the checkpoint holds {saved.numel()} parameters, this network has {mine.numel()}: "
                    "it belongs to another network or environment"
                )
            mine.copy_(saved)
        self.learning_rate = float(state["learning_rate"])
        self.gamma = state["gamma"]
        self.updates = int(state["updates"])
        self._set_backend(state["backend"])

    def assess(self, batch: Tensors, online: Forward | None = None, target: Forward | None = None) -> Assessment:
        """The loss of each sample: the one place where C-DQN, DQN and RG differ."""
        online, target = online or self.network, target or self.target_network
        config = self.config
        use_huber, transform = config.loss == "huber", config.value_transform
        assert self.gamma is not None
        facts = (batch.reward, batch.terminated, self.gamma**config.n_step)
        targets: tuple[Tensor, ...]
        if config.algorithm == "dqn":
            q_B = losses.action_value(online(batch.observation), batch.action)
            next_q_BA = target(batch.next_observation)
            chooser_BA = online(batch.next_observation).detach() if config.double_q else None
            targets = (losses.dqn_target(*facts, next_q_BA, chooser_BA, transform),)
            terms = losses.dqn_loss(q_B, *targets, batch.weight, use_huber)
        else:
            # One pass for s and s′: the gradient flows through both.
            q_BA, next_q_BA = online(torch.cat([batch.observation, batch.next_observation])).chunk(2)
            q_B = losses.action_value(q_BA, batch.action)
            y_msbe_B = losses.msbe_target(*facts, next_q_BA, transform)
            if config.algorithm == "rg":
                targets = (y_msbe_B,)
                terms = losses.msbe_loss(q_B, *targets, batch.weight, use_huber)
            else:
                chooser_BA = next_q_BA.detach() if config.double_q else None
                y_dqn_B = losses.dqn_target(*facts, target(batch.next_observation), chooser_BA, transform)
                targets = (y_dqn_B, y_msbe_B)
                terms = losses.cdqn_loss(q_B, *targets, batch.weight, use_huber)
        next_value_B = next_q_BA.detach().amax(1)
        if not transform:
            return Assessment(terms, terms.td_error_abs, next_value_B)
        errors = [losses.untransformed_td_error(q_B, y_B) for y_B in targets]
        return Assessment(terms, torch.stack(errors).amax(0), unsquash(next_value_B))

    def _objective(self, batch: Tensors, online: Forward, target: Forward) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The mean loss to minimise; beside it |δ| and (logged loss, share of DQN's branch, mean max Q(s′))."""
        terms, td_error_abs_B, next_value_B = self.assess(batch, online, target)
        stats = [
            losses.logged_loss(terms.td_error_abs, batch.weight),
            terms.on_dqn_branch.to(next_value_B.dtype).mean(),
            next_value_B.mean(),
        ]
        return terms.loss.mean(), (td_error_abs_B, torch.stack(stats))

    def _eager_step(self, batch: Tensors) -> tuple[Tensor, Tensor]:
        for parameter in self.network.parameters():
            parameter.grad = None
        loss, (td_error_abs_B, stats) = self._objective(batch, self.network, self.target_network)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = clip_gradients_(self.network.parameters(), self.config.gradient_clip_norm)
        fused_adam_step_(self._with_moments, self.updates + 1, self.learning_rate, self.config.adam_epsilon)
        return td_error_abs_B, torch.cat([stats, norm.unsqueeze(0)])

    def _compiled_step(self, batch: Tensors) -> tuple[Tensor, Tensor]:
        sizes = step_sizes(self.updates + 1, self.learning_rate, self.config.adam_epsilon)
        self._sizes.copy_(torch.tensor(sizes, dtype=self._sizes.dtype))
        inputs = (self.theta, self.target, self.first_moment, self.second_moment, self._sizes, *batch)
        step = self._compiled.get(len(batch.action))
        if step is None:
            try:
                step = _compile(self._functional_step, inputs)
            except Exception:  # whatever a compiler that is there but does not work may raise
                self._set_backend("eager")
                return self._eager_step(batch)
            self._compiled[len(batch.action)] = step
        return step(*inputs)

    def _call(self, parameters: dict[str, Tensor], observation: Tensor) -> Tensor:
        q_BA: Tensor = functional_call(self.network, parameters, (observation,))
        return q_BA

    def _functional_step(
        self, theta: Tensor, target: Tensor, first: Tensor, second: Tensor, sizes: Tensor, *batch: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The update as a function of its tensors, for `_compile`."""

        def objective(parameters: dict[str, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
            def online(observation: Tensor) -> Tensor:
                return self._call(parameters, observation)

            def frozen(observation: Tensor) -> Tensor:
                return self._call(target_parameters, observation)

            return self._objective(Tensors(*batch), online, frozen)

        target_parameters = _views(self.network, target)
        gradients, (td_error_abs_B, stats) = grad(objective, has_aux=True)(_views(self.network, theta))
        pairs = zip(gradients.values(), self.network.parameters(), strict=True)
        flat_gradient = torch.cat([_flat(gradient, parameter) for gradient, parameter in pairs])
        gradient, norm = clip_norm(flat_gradient, self.config.gradient_clip_norm)
        adam_step_(theta, first, second, gradient, sizes)
        return td_error_abs_B, torch.cat([stats, norm.unsqueeze(0)])


def _compile(function: Callable[..., Any], inputs: Sequence[Tensor]) -> Callable[..., Any]:
    """`function` as one program for tensors of exactly these shapes.

    Traced with make_fx and built by Inductor without Dynamo between them: there are no guards to check on every
    call, since shapes never change, and no cache in which one learner could find another's program.
    """
    import torch._inductor
    from torch.fx.experimental.proxy_tensor import make_fx

    examples: list[Any] = [tensor.clone() for tensor in inputs]
    graph = make_fx(function)(*examples)
    program: Callable[..., Any] = torch._inductor.compile(
        graph, examples, options={"cpp.threads": 1, "size_asserts": False}
    )
    program(*examples)  # the first call may still build something: better here, where failing is allowed
    return program


def compiler_found() -> bool:
    """Whether torch.compile can build for the CPU here: it needs a C++ compiler."""
    candidates: Sequence[str] = [os.environ["CXX"]] if os.environ.get("CXX") else ("g++", "clang++", "c++")
    return any(shutil.which(name) for name in candidates)


def _views(network: nn.Module, flat: Tensor) -> dict[str, Tensor]:
    """The flat vector cut into the network's parameters, by name."""
    named = dict(network.named_parameters())
    pieces = torch.split(flat, [parameter.numel() for parameter in named.values()])
    return {name: _shaped(piece, p) for (name, p), piece in zip(named.items(), pieces, strict=True)}


def _shaped(piece: Tensor, parameter: Tensor) -> Tensor:
    """A piece of the flat vector as a view with the shape, and the order in memory, of the parameter."""
    if not _is_channels_last(parameter):
        return piece.view(parameter.shape)
    outputs, inputs, height, width = parameter.shape
    return piece.view(outputs, height, width, inputs).permute(0, 3, 1, 2)


def _flat(tensor: Tensor, parameter: Tensor) -> Tensor:
    """The inverse of `_shaped`, for a tensor of the parameter's shape."""
    return (tensor.permute(0, 2, 3, 1) if _is_channels_last(parameter) else tensor).reshape(-1)


def _is_channels_last(parameter: Tensor) -> bool:
    return not parameter.is_contiguous() and parameter.is_contiguous(memory_format=torch.channels_last)


def _point_(network: nn.Module, flat: Tensor) -> None:
    """Make the network's parameters views of `flat`."""
    for parameter, view in zip(network.parameters(), _views(network, flat).values(), strict=True):
        parameter.data = view


def _flatten_(network: nn.Module) -> Tensor:
    """Move the network's parameters into one vector, of which they become views."""
    flat = torch.cat([_flat(parameter.detach(), parameter) for parameter in network.parameters()])
    _point_(network, flat)
    return flat


def _to_tensors(batch: Batch, device: torch.device) -> Tensors:
    """A batch on the device; to a GPU from pinned memory, so that the copy does not wait."""
    tensors = [torch.from_numpy(array) for array in batch[:6]]
    if device.type != "cpu":
        tensors = [tensor.pin_memory().to(device, non_blocking=True) for tensor in tensors]
    return Tensors(*tensors)


def first_network(spec: EnvSpec, config: Config) -> nn.Module:
    """The network with which a run begins: a function of its configuration, the seed included."""
    with torch.random.fork_rng(devices=[]):  # the caller's random numbers are none of our business
        torch.manual_seed(config.seed)
        return make_network(
            spec.observation_shape,
            spec.num_actions,
            config.hidden,
            config.dueling,
            config.channels,
            config.initial_weights,
        )


def choose_device(wanted: str, large_network: bool) -> torch.device:
    """The device that a configuration asks for, or an error that says what is missing."""
    found = torch.cuda.is_available()
    if wanted == "cuda" and not found:
        raise ConfigError("device is 'cuda', but PyTorch finds no GPU: use --device cpu, or install PyTorch for CUDA")
    return torch.device("cuda" if wanted == "cuda" or (wanted == "auto" and found and large_network) else "cpu")
