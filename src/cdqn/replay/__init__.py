"""Replay memory: how rows are stored (`arrays`), how they are chosen (`priorities`), both as one (`buffer`).

Before it, optionally, `multi_step`: rows over several steps.
"""

from cdqn.replay.arrays import ArrayStore, Store
from cdqn.replay.buffer import PrioritizedReplay, UniformReplay
from cdqn.replay.multi_step import MultiStep
from cdqn.replay.prefetch import Prefetcher
from cdqn.replay.protocol import Replay
from cdqn.replay.sum_tree import MaxTree, SumTree
from cdqn.replay.transitions import Batch, Fields, Transitions

__all__ = [
    "ArrayStore",
    "Batch",
    "Fields",
    "MaxTree",
    "MultiStep",
    "Prefetcher",
    "PrioritizedReplay",
    "Replay",
    "Store",
    "SumTree",
    "Transitions",
    "UniformReplay",
]
