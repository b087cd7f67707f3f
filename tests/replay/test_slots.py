"""A memory without content: the order of drawing alone."""

import numpy as np

from cdqn.replay import PrioritizedReplay
from cdqn.replay.slots import SlotsOnly, rows_without_content


def test_slots_are_given_in_order_and_round_again():
    memory = PrioritizedReplay(SlotsOnly(4), rng=np.random.default_rng(0))
    for _ in range(3):
        memory.add(rows_without_content(np.arange(2), np.zeros(2, np.bool_)))
    assert len(memory) == 4
    batch = memory.sample(8, 1.0)
    assert set(batch.slots.tolist()) == {0, 1, 2, 3}
    assert batch.weight.tolist() == [1.0] * 8


def test_state_is_taken_over():
    memory, other = (PrioritizedReplay(SlotsOnly(4), rng=np.random.default_rng(seed)) for seed in (0, 1))
    memory.add(rows_without_content(np.arange(3), np.ones(3, np.bool_)))
    memory.update_priorities(np.arange(3), np.array([1.0, 5.0, 9.0]))
    other.load_state_dict(memory.state_dict())
    assert other.sample(6).slots.tolist() == memory.sample(6).slots.tolist()
