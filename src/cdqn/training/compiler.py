"""Functions of tensors as compiled programs."""

import os
import shutil
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor


def compile_for(function: Callable[..., Any], inputs: Sequence[Tensor]) -> Callable[..., Any]:
    """`function` as one program for tensors of exactly these shapes.

    Traced with make_fx and built by Inductor without Dynamo between them: there are no guards to check on every
    call, since shapes never change, and no cache in which one learner could find another's program.
    """
    import torch._inductor
    from torch._guards import TracingContext, tracing
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    examples: list[Any] = [tensor.clone() for tensor in inputs]
    graph = make_fx(function, tracing_mode="fake")(*examples)  # without values: branching on them is an error
    mode = FakeTensorMode(shape_env=ShapeEnv())  # without an environment of shapes Inductor's cache is not used
    shapes: list[Any] = [mode.from_tensor(tensor, static_shapes=True) for tensor in examples]
    with tracing(TracingContext(mode)):
        program: Callable[..., Any] = torch._inductor.compile(
            graph, shapes, options={"cpp.threads": 1, "size_asserts": False}
        )
    program(*examples)  # the first call may still build something: better here, where failing is allowed
    return program


def compiler_found() -> bool:
    """Whether torch.compile can build for the CPU here: it needs a C++ compiler."""
    candidates: Sequence[str] = [os.environ["CXX"]] if os.environ.get("CXX") else ("g++", "clang++", "c++")
    return any(shutil.which(name) for name in candidates)
