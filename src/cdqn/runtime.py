"""Process-wide settings of PyTorch, for programs that are ours to tune: the command line and its workers.

The library itself never touches them: a process may belong to somebody else.
"""

import torch


def tune_process() -> None:
    """One thread: the products of small networks are over before a second thread has woken up.

    Denormal numbers become zero: ReLU networks make many of them, and the CPU is slow with each.
    """
    torch.set_flush_denormal(True)
    torch.set_num_threads(1)
