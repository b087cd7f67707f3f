"""The policy of an agent for use elsewhere: one module from observations to Q, and files of it."""

import copy
import math
import warnings
from pathlib import Path

import numpy as np
import torch
from gymnasium.spaces import Box
from torch import Tensor, nn

from cdqn.calibration import denormalize
from cdqn.envs import EnvSpec
from cdqn.envs.observations import Adapter
from cdqn.errors import ConfigError
from cdqn.integrations.onnx import write_onnx
from cdqn.nn.networks import DuelingCNN
from cdqn.storage.files import writing
from cdqn.training.normalizer import CLIP
from cdqn.training.trainer import Trainer

EXAMPLE_SIZE, OTHER_SIZE = 2, 3
"""Of the batch that is traced, and of another that must do as well."""


class QModule(nn.Module):
    """Q of each action, in units of the rewards, for a batch of observations: the greedy action is its argmax.

    Observations are arrays as the environment returns them, of `shape` and `dtype`; where those are no arrays, a number
    or a Dict, they are the vectors that the agent sees. All that the agent does with them is in here.
    """

    order: Tensor | None
    mean: Tensor | None
    factor: Tensor | None

    def __init__(self, trainer: Trainer, adapter: Adapter | None = None) -> None:
        super().__init__()
        learner, normalizer, found = trainer.learner, trainer.normalizer, trainer.calibrator.found
        networks, self._algorithm = copy.deepcopy((learner.networks, learner.algorithm))
        self.networks = networks.cpu()
        for network in self.networks.values():
            if isinstance(network, DuelingCNN):
                network.fast = False  # it is a program of its own, which no format has a word for
        self.seen_shape = trainer.spec.observation_shape
        self.shape, order = _arrangement(trainer.spec, adapter)
        self.dtype = torch.from_numpy(np.zeros(0, trainer.spec.observation_dtype)).dtype
        self.register_buffer("order", order)
        self.register_buffer("mean", None if normalizer is None else torch.tensor(normalizer.mean_F))
        self.register_buffer("factor", None if normalizer is None else torch.tensor(normalizer.factor_F))
        self._normalization = None if found is None else found.normalization
        self.requires_grad_(False).eval()

    def forward(self, observation: Tensor) -> Tensor:
        if self.order is not None:
            observation = observation.flatten(1)[:, self.order].reshape(-1, *self.seen_shape)
        if self.mean is not None and self.factor is not None:
            observation = ((observation.to(torch.float32) - self.mean) * self.factor).clamp(-CLIP, CLIP)
        q_BA = self._algorithm.q_values(dict(self.networks.items()), observation)
        return q_BA if self._normalization is None else denormalize(q_BA, self._normalization)

    def example(self, size: int) -> Tensor:
        """A batch of observations without meaning."""
        return torch.zeros((size, *self.shape), dtype=self.dtype)


def _arrangement(spec: EnvSpec, adapter: Adapter | None) -> tuple[tuple[int, ...], Tensor | None]:
    """The shape of the environment's arrays, and for each number that the agent sees its place in one."""
    if adapter is None or not isinstance(adapter.source, Box):
        return spec.observation_shape, None
    shape = adapter.source.shape
    places = adapter.convert(np.arange(math.prod(shape)).reshape(shape))
    return shape, torch.tensor(places.ravel())


def export(module: QModule, path: Path) -> Path:
    """Write the module to a file; the suffix says how: .onnx, or .pt for TorchScript."""
    write = {".onnx": write_onnx, ".pt": _write_torchscript}.get(path.suffix)
    if write is None:
        raise ConfigError(f"a policy cannot be exported as {path.name!r}: name it .onnx, or .pt for TorchScript")
    draft = path.with_name(f".{path.name}.writing")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write(draft, module, module.example(EXAMPLE_SIZE))
        draft.rename(path)
    return path


def _write_torchscript(path: Path, module: QModule, example: Tensor) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # torch deprecates TorchScript, which is asked for here
            script = torch.jit.trace(module, example)  # type: ignore[no-untyped-call]
        script(module.example(OTHER_SIZE))
    except Exception as error:  # whatever a network or an algorithm of the user's does
        reason = str(error).strip().partition("\n")[0]
        raise ConfigError(
            f"the policy cannot be traced for batches of any size ({type(error).__name__}: {reason}): "
            "in a network or q_values of your own, use x.shape[0] in place of len(x), and tensors in place of numbers"
        ) from error
    script.save(str(path))
