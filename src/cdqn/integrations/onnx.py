"""ONNX files of policies, where the packages for it are installed."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from cdqn.errors import ConfigError
from cdqn.integrations.optional import missing


def write_onnx(path: Path, module: nn.Module, example: Tensor) -> None:
    """One input `observation`, one output `q_values`; the first axis of both, the batch, has any length."""
    try:
        import onnx  # noqa: F401  both are used by torch
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise missing("an .onnx file needs onnx and onnxscript", "export") from error
    try:
        with _silence():
            torch.onnx.export(
                module,
                (example,),
                path,
                input_names=["observation"],
                output_names=["q_values"],
                dynamic_shapes=({0: torch.export.Dim("batch")},),
                dynamo=True,
                external_data=False,
                verbose=False,
            )
    except Exception as error:  # whatever a network or an algorithm of the user's does
        reason = str(error).strip().partition("\n")[0]
        raise ConfigError(
            f"the policy cannot be exported to ONNX ({type(error).__name__}: {reason}): try TorchScript, .pt"
        ) from error


@contextmanager
def _silence() -> Iterator[None]:
    """Torch speaks here of packages that nobody needs, and of what is deprecated within itself."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        logger.setLevel(level)
