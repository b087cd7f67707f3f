"""The learner: online networks θ, target networks θ̃, slow copies θ̄, optimizer; `update(batch)` is one step of Adam.

It knows no algorithm by name: what is learned, and from which loss, is the algorithm's to say (`cdqn.algorithms`).
The parameters of all online networks live in one flat vector (`cdqn.nn.flat`), and so do those of the target
networks and both moments of Adam.

The same functions are run in one of two ways (`backend`): "eager" through autograd, or "compiled", the
gradient and the optimizer traced and built into one program by Inductor. For small networks the latter
spends a fifth to a third of the time (docs/benchmarks.md).
"""

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad

from cdqn.algorithms import Algorithm, Assessment, Network, TensorBatch
from cdqn.algorithms.base import Forward, Networks
from cdqn.config import Config
from cdqn.errors import CheckpointError
from cdqn.nn.adam import (
    adam_step_,
    clip_gradients_,
    clip_parts,
    fused_adam_step_,
    parts_of,
    step_sizes,
    total_norm,
)
from cdqn.nn.features import Features, HasFeatures
from cdqn.nn.flat import flat_of, flatten_, point_, views
from cdqn.nn.networks import DuelingCNN, parameter_count
from cdqn.replay import Batch
from cdqn.training.compiler import compile_for, compiler_found
from cdqn.training.seeding import derived_seed

Backend = Literal["eager", "compiled"]

MAX_COMPILED_PARAMETERS = 1_000_000
"""Above this the matrix products outweigh the call overhead that compilation removes."""
MIN_COMPILED_UPDATES = 5_000
"""Below this a run is over before compilation (10 to 20 s at first, 2 s when cached) has paid."""
SLOW_COPY_PERIOD = 10
"""Updates from one move of a slow copy to the next: moved at each, Atari's would take a tenth of an update's time."""


class UpdateResult(NamedTuple):
    """What one update has to say, to the replay memory and to the metrics."""

    td_error_abs: NDArray[np.float32]
    """|δ| of each sample, in units of Q: for C-DQN the larger of the two."""
    statistics: dict[str, float]
    """What the algorithm reports, by name, and "gradient_norm", the ℓ2 norm of the gradient before clipping.

    Always there: "loss", the importance-weighted mean squared error of the branch taken (Eq. 31, 32), and "q_mean",
    the batch mean of max Q(s) of the online network in units of Q, which cannot be right beyond r_max/(1−γ).
    """


class Learner:
    """θ, θ̃ and Adam for the algorithm of a configuration."""

    def __init__(self, networks: Mapping[str, Network], config: Config, algorithm: Algorithm | None = None) -> None:
        """`algorithm` is the one that made the networks; by default a new one of the configuration."""
        self.config = config = config.resolved()
        self.algorithm = algorithm or config.algorithm_class(config)
        self.networks = nn.ModuleDict({name: network.module for name, network in networks.items()}).eval()
        self.theta = flatten_(self.networks)
        self._lengths = [parameter_count(network) for network in self.networks.values()]
        self.target = self.theta.clone()
        self.target_networks = copy.deepcopy(self.networks).requires_grad_(False)
        point_(self.target_networks, self.target)
        self._slow_rates = {
            name: min(1.0, SLOW_COPY_PERIOD / n)
            for name, network in networks.items()
            if (n := network.slow_copy_updates)
        }
        self.slow_networks = copy.deepcopy(self.target_networks) if self._slow_rates else nn.ModuleDict()
        self.slow = self.theta.clone() if self._slow_rates else self.theta.new_empty(0)
        """θ̄, the slow copies; empty where no network has one."""
        point_(self.slow_networks, self.slow)
        self._factors = {name: network.learning_rate_factor for name, network in networks.items()}
        self._features = {
            f"{name}_features": Features(network)
            for name, network in self.networks.items()
            if isinstance(network, HasFeatures)
        }
        self._online: Networks = {**self.networks, **self._features}
        self._frozen: Networks = {
            name: self.target_networks[name] for name, network in networks.items() if network.has_target
        } | {f"{name}_slow": self.slow_networks[name] for name in self._slow_rates}
        self.first_moment = torch.zeros_like(self.theta)
        self.second_moment = torch.zeros_like(self.theta)
        self.learning_rate = config.learning_rate
        self.gamma = config.gamma
        """γ; None while it is yet to be found (App. E.3), and then no update is possible."""
        self.updates = 0
        self.backend: Backend = "eager"
        self.while_compiling: Callable[[], AbstractContextManager[None]] = nullcontext
        """Surrounds the building of a program, which takes seconds: whoever wants to say so puts a function here."""
        self._changes_by_mode = _changes_by_mode(self.networks)
        self._with_moments = self._parameters_with_moments()
        self._sizes = torch.zeros(3, dtype=self.theta.dtype, device=self.theta.device)
        self._compiled: dict[int, Callable[..., tuple[Tensor, Tensor]]] = {}
        self._statistics: tuple[str, ...] = ()

    def choose_backend(self, planned_updates: int) -> Backend:
        """Settle how updates are run, once, before the first: it changes the last bits of the result."""
        wanted = self.config.compile
        pays = (
            planned_updates >= MIN_COMPILED_UPDATES
            and parameter_count(self.networks) <= MAX_COMPILED_PARAMETERS
            and self.theta.device.type == "cpu"
        )
        self._set_backend("compiled" if wanted == "on" or (wanted == "auto" and pays) else "eager")
        return self.backend

    def _set_backend(self, backend: Backend) -> None:
        self.backend = backend if compiler_found() and not self._changes_by_mode else "eager"
        for network in self.networks.values():
            if isinstance(network, DuelingCNN):
                network.fast = self.backend == "eager"  # a program's shapes must not depend on the data

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
            self._copy_buffers(self.target_networks)
        self.updates += 1
        if self._slow_rates and self.updates % SLOW_COPY_PERIOD == 0:
            self._move_slow_copies()
        names = (*self._statistics, "gradient_norm")
        return UpdateResult(td_error_abs_B.cpu().numpy(), dict(zip(names, stats.tolist(), strict=True)))

    def _move_slow_copies(self) -> None:
        """θ̄ ← θ̄ + (θ − θ̄) k/n after every k-th update, for each network that has a slow copy."""
        slow_parts, theta_parts = (torch.split(vector, self._lengths) for vector in (self.slow, self.theta))
        for name, slow, theta in zip(self.networks, slow_parts, theta_parts, strict=True):
            if rate := self._slow_rates.get(name):
                slow.lerp_(theta, rate)
        self._copy_buffers(self.slow_networks)

    def _copy_buffers(self, copies: nn.Module) -> None:
        for copied, buffer in zip(copies.buffers(), self.networks.buffers(), strict=True):
            copied.copy_(buffer)

    def _places(self) -> dict[str, nn.Module]:
        return {"online": self.networks, "target": self.target_networks, "slow": self.slow_networks}

    def q_values(self, observation: Tensor) -> Tensor:
        """Q of the online network, in units of Q."""
        return self.algorithm.q_values(self._online, observation)

    def assess(self, batch: TensorBatch) -> Assessment:
        """A batch under the present parameters."""
        return self._assess(batch, self._online, self._frozen)

    def policy_state(self) -> dict[str, NDArray[Any]]:
        """A copy of what the greedy policy is made of, by name: "theta", and the buffers of the online networks."""
        tensors = {"theta": self.theta} | {f"buffer.{name}": buffer for name, buffer in self.networks.named_buffers()}
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in tensors.items()}

    def load_policy_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Play with this policy; what else there is to learning stays as it is."""
        tensors = {"theta": self.theta} | {f"buffer.{name}": buffer for name, buffer in self.networks.named_buffers()}
        if {name: array.shape for name, array in state.items()} != {n: tuple(t.shape) for n, t in tensors.items()}:
            raise CheckpointError("the saved policy is of another network: it was made with other settings")
        for name, tensor in tensors.items():
            tensor.copy_(torch.from_numpy(state[name]))

    def state_dict(self) -> dict[str, Any]:
        """A copy of all that changes during training."""
        buffers = {
            f"{place}_buffers": {name: buffer.clone() for name, buffer in networks.named_buffers()}
            for place, networks in self._places().items()
        }
        return {
            "theta": self.theta.clone(),
            "target": self.target.clone(),
            **({"slow": self.slow.clone()} if self._slow_rates else {}),
            "first_moment": self.first_moment.clone(),
            "second_moment": self.second_moment.clone(),
            "learning_rate": self.learning_rate,
            "gamma": self.gamma,
            "updates": self.updates,
            "backend": self.backend,
            **{name: values for name, values in buffers.items() if values},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        slow = ("slow",) if self._slow_rates else ()
        for name in ("theta", "target", *slow, "first_moment", "second_moment"):
            mine, saved = getattr(self, name), torch.as_tensor(state[name])
            if mine.shape != saved.shape:
                raise CheckpointError(
                    f"the checkpoint holds {saved.numel()} parameters, this network has {mine.numel()}: "
                    "it belongs to another network or environment"
                )
            mine.copy_(saved)
        for place, networks in self._places().items():
            for name, buffer in networks.named_buffers():
                buffer.copy_(torch.as_tensor(state[f"{place}_buffers"][name]))
        self.learning_rate = float(state["learning_rate"])
        self.gamma = state["gamma"]
        self.updates = int(state["updates"])
        self._set_backend(state["backend"])

    def _assess(self, batch: TensorBatch, online: Networks, target: Networks) -> Assessment:
        assert self.gamma is not None
        return self.algorithm.assess(batch, online, target, self.gamma**self.config.n_step)

    def _objective(
        self, batch: TensorBatch, online: Networks, target: Networks
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The mean loss to minimise; beside it |δ| and the statistics, whose names are kept."""
        assessment = self._assess(batch, online, target)
        self._statistics = tuple(assessment.statistics)
        statistics = torch.stack([value.detach() for value in assessment.statistics.values()])
        return assessment.loss.mean(), (assessment.td_error_abs, statistics)

    def _eager_step(self, batch: TensorBatch) -> tuple[Tensor, Tensor]:
        for parameter in self.networks.parameters():
            parameter.grad = None
        with self._training_mode() if self._changes_by_mode else nullcontext():
            loss, (td_error_abs_B, stats) = self._objective(batch, self._online, self._frozen)
        loss.backward()  # type: ignore[no-untyped-call]
        norms = []
        for name, triples in self._with_moments.items():
            norms.append(clip_gradients_(self.networks[name].parameters(), self.config.gradient_clip_norm))
            rate = self.learning_rate * self._factors[name]
            fused_adam_step_(triples, self.updates + 1, rate, self.config.adam_epsilon)
        return td_error_abs_B, torch.cat([stats, total_norm(norms).unsqueeze(0)])

    @contextmanager
    def _training_mode(self) -> Iterator[None]:
        """For networks that differ between training and acting; what is random in them is a function of the update."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derived_seed(self.config.seed, (self.updates,)))
            self.networks.train()
            yield
            self.networks.eval()

    def _parameters_with_moments(self) -> dict[str, list[tuple[nn.Parameter, Tensor, Tensor]]]:
        """The parameters of each network beside their two moments, which are views of ours."""
        moments = (views(self.networks, self.first_moment), views(self.networks, self.second_moment))
        triples: dict[str, list[tuple[nn.Parameter, Tensor, Tensor]]] = {name: [] for name in self.networks}
        for name, parameter in self.networks.named_parameters():
            triples[name.partition(".")[0]].append((parameter, moments[0][name], moments[1][name]))
        return triples

    def _compiled_step(self, batch: TensorBatch) -> tuple[Tensor, Tensor]:
        sizes = step_sizes(self.updates + 1, self.learning_rate, self.config.adam_epsilon)
        self._sizes.copy_(torch.tensor(sizes, dtype=self._sizes.dtype))
        inputs = (self.theta, self.target, self.slow, self.first_moment, self.second_moment, self._sizes, *batch)
        step = self._compiled.get(len(batch.action))
        if step is None:
            try:
                with self.while_compiling():
                    step = compile_for(self._functional_step, inputs)
            except Exception as error:  # whatever a compiler that is there but does not work may raise
                reason = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"
                warnings.warn(f"the update cannot be compiled and runs eagerly, more slowly: {reason}", stacklevel=2)
                self._set_backend("eager")
                return self._eager_step(batch)
            self._compiled[len(batch.action)] = step
        return step(*inputs)

    def _functional_step(
        self, theta: Tensor, target: Tensor, slow: Tensor, first: Tensor, second: Tensor, sizes: Tensor, *batch: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The update as a function of its tensors, for `compile_for`."""

        def objective(parameters: dict[str, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
            return self._objective(TensorBatch(*batch), self._functions(parameters), frozen)

        functions = self._functions(views(self.networks, target))
        if self._slow_rates:
            slow_functions = self._functions(views(self.networks, slow))
            functions |= {f"{name}_slow": slow_functions[name] for name in self._slow_rates}
        frozen = {name: functions[name] for name in self._frozen}
        gradients, (td_error_abs_B, stats) = grad(objective, has_aux=True)(views(self.networks, theta))
        pairs = zip(gradients.values(), self.networks.parameters(), strict=True)
        flat_gradient = torch.cat([flat_of(gradient, parameter) for gradient, parameter in pairs])
        gradient, norm = clip_parts(flat_gradient, self._lengths, self.config.gradient_clip_norm)
        # One step for all networks: steps on parts of a vector would be built as copies of the whole.
        adam_step_(theta, first, second, gradient, sizes, parts_of(self._lengths, list(self._factors.values()), theta))
        return td_error_abs_B, torch.cat([stats, norm.unsqueeze(0)])

    def _functions(self, parameters: Mapping[str, Tensor]) -> dict[str, Forward]:
        """The networks, and what they give to their heads, as functions of observations, with these parameters."""
        functions: dict[str, Forward] = {}
        for name, network in self.networks.items():
            part = _part(parameters, name)
            functions[name] = partial(functional_call, network, part)
            if features := self._features.get(f"{name}_features"):
                theirs = {f"network.{key}": value for key, value in part.items()}
                functions[f"{name}_features"] = partial(functional_call, features, theirs)
        return functions


def _part(parameters: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """Those of one of the networks, by their names in it."""
    prefix = f"{name}."
    return {key.removeprefix(prefix): value for key, value in parameters.items() if key.startswith(prefix)}


def _changes_by_mode(networks: nn.Module) -> bool:
    """Whether training differs from acting, as with batch normalisation and dropout."""
    kinds = (nn.modules.batchnorm._NormBase, nn.modules.dropout._DropoutNd)
    return any(True for _ in networks.buffers()) or any(isinstance(module, kinds) for module in networks.modules())


def _to_tensors(batch: Batch, device: torch.device) -> TensorBatch:
    """A batch on the device; to a GPU of CUDA's from pinned memory, so that the copy does not wait."""
    tensors = [torch.from_numpy(array) for array in batch[:6]]
    if device.type == "cuda":
        tensors = [tensor.pin_memory().to(device, non_blocking=True) for tensor in tensors]
    elif device.type != "cpu":
        tensors = [tensor.to(device) for tensor in tensors]
    return TensorBatch(*tensors)
