"""The whole prioritized memory against its slow twin, through thousands of random adds, samples and updates."""

import numpy as np
import pytest
from replay_twins import SlowPrioritizedReplay, ids_in, make_replay, make_rows, sample_and_update_both

SETTINGS = [
    {},
    {"eviction": "random"},
    {"discard_fraction": 0.5},
    {"eviction": "random", "discard_fraction": 0.3, "alpha": 0.9},
    {"raise_predecessor": False, "initial_priority": 3.0},
    {"scheme": "original", "priority_epsilon": 1e-4},
]


def assert_same(fast, slow):
    state = fast.state_dict()
    assert len(fast) == len(slow.rows)
    assert ids_in(fast) == [row.id for row in slow.rows]
    np.testing.assert_allclose(state["priorities"], [row.priority for row in slow.rows], rtol=1e-12)
    assert state["computed"].tolist() == [row.computed for row in slow.rows]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(map(str, s.values())) or "defaults")
@pytest.mark.parametrize(("capacity", "most_rows"), [(1, 3), (6, 9), (40, 7), (200, 30)])
def test_prioritized_replay_agrees_with_its_slow_twin(capacity, most_rows, settings):
    chooser = np.random.default_rng(100 + capacity)
    fast = make_replay(capacity, seed=5, **settings)
    slow = SlowPrioritizedReplay(capacity, seed=5, **settings)
    added = 0
    for _ in range(250):
        if chooser.random() < 0.4 or len(fast) == 0:
            count = int(chooser.integers(0, most_rows + 1))
            streams, firsts = chooser.integers(4, size=count), chooser.random(count) < 0.15
            rows = make_rows(added + np.arange(count), streams, firsts)
            added += count
            fast.add(rows)
            slow.add(rows)
        else:
            sample_and_update_both(fast, slow, chooser, 8, beta=0.7)
        assert_same(fast, slow)
    assert added > 2 * capacity
