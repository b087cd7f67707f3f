"""Process-wide settings, for programs that are ours to tune: the command line and its workers.

The library itself never touches them: a process may belong to somebody else.
"""

import ctypes
import os

import torch

from cdqn.envs import EnvSpec

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Of glibc's malloc.h."""


def tune_process(spec: EnvSpec | None = None) -> None:
    """One thread, except for frames: the products of small networks are over before a second one has woken up.

    OMP_NUM_THREADS, where it is set, is obeyed. Denormal numbers become zero: ReLU networks make many of them,
    and the CPU is slow with each. Freed memory is kept.
    """
    torch.set_flush_denormal(True)
    keep_freed_memory()
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(os.cpu_count() or 1 if spec is not None and spec.has_frames else 1)


def keep_freed_memory() -> bool:
    """Have glibc keep freed blocks below 32 MiB; whether there is a glibc to ask.

    An update frees and takes the same megabytes of frames and activations again and again. Given back to the kernel,
    each page is cleared and mapped anew: 939 faults, 3 of 4.8 ms, for a batch of 32 pairs of Atari states.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, 32 << 20) and mallopt(_M_TRIM_THRESHOLD, 1 << 30))
