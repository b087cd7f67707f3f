"""ONNX files of policies, where the packages for it are installed."""

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
