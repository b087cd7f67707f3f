"""Process-wide settings of PyTorch, for programs that are ours to tune: the command line and its workers.

The library itself never touches them: a process may belong to somebody else.
"""

import os

import torch

from cdqn.envs import EnvSpec


def tune_process(spec: EnvSpec | None = None) -> None:
    """One thread, except for frames: the products of small networks are over before a second one has woken up.

    OMP_NUM_THREADS, where it is set, is obeyed. Denormal numbers become zero: ReLU networks make many of them,
    and the CPU is slow with each.
    """
    torch.set_flush_denormal(True)
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(os.cpu_count() or 1 if spec is not None and spec.kind == "atari" else 1)
