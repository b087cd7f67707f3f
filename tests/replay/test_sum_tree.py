"""The trees against loops, and the promises that sampling and exact resume rest on."""

import numpy as np
import pytest
from replay_twins import slow_find, slow_node_sum

from cdqn.errors import CheckpointError, ConfigError, NonFiniteError
from cdqn.replay import MaxTree, SumTree

CAPACITIES = [1, 2, 7, 8, 9, 63, 64, 65, 513, 4097]


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_trees_agree_with_their_slow_twins(capacity):
    rng = np.random.default_rng(capacity)
    sums, maxima, leaves = SumTree(capacity), MaxTree(capacity), np.zeros(capacity)
    for _ in range(40):
        slots = rng.integers(capacity, size=rng.integers(1, 50))
        values = rng.lognormal(sigma=4, size=len(slots)) * (rng.random(len(slots)) < 0.7)
        sums.set(slots, values)
        maxima.set(slots, values)
        for slot, value in zip(slots, values, strict=True):
            leaves[slot] = value
        assert sums.total == slow_node_sum(leaves)
        assert maxima.maximum == leaves.max()
        np.testing.assert_array_equal(sums.get(slots), leaves[slots])
        if sums.total > 0:
            prefixes = rng.random(8) * sums.total
            assert sums.find(prefixes).tolist() == [slow_find(leaves, prefix) for prefix in prefixes]


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_find_never_returns_a_slot_without_priority(capacity):
    rng = np.random.default_rng(capacity)
    for _ in range(30):
        filled = rng.integers(1, capacity + 1)
        leaves = 10.0 ** rng.uniform(-18, 18, size=filled) * (rng.random(filled) < 0.3)
        leaves[rng.integers(filled)] = 1.0
        tree = SumTree(capacity)
        tree.set(np.arange(filled), leaves)
        boundaries = np.cumsum(leaves)
        total = tree.total
        edges = np.array([-1.0, -0.0, 0.0, total, np.nextafter(total, 0), np.nextafter(total, np.inf), 2 * total])
        around = np.concatenate([boundaries, np.nextafter(boundaries, 0), np.nextafter(boundaries, np.inf)])
        found = tree.find(np.concatenate([edges, around]))
        assert found.min() >= 0
        assert found.max() < filled
        assert (leaves[found] > 0).all()


def test_prefix_on_a_boundary_belongs_to_the_next_slot():
    tree = SumTree(20)
    tree.set(np.arange(12), np.array([1, 0, 2, 0, 0, 1, 1, 1, 0, 4, 1, 0], float))
    assert tree.find(np.array([0.0, 1.0, 2.5, 3.0, 4.0, 5.0, 6.0, 9.999, 10.0, 11.0])).tolist() == [
        0, 2, 2, 5, 6, 7, 9, 9, 10, 10,
    ]  # fmt: skip


@pytest.mark.parametrize("tree_class", [SumTree, MaxTree])
def test_tree_rebuilt_from_its_leaves_is_the_same_to_the_last_bit(tree_class):
    rng = np.random.default_rng(3)
    tree = tree_class(1000)
    for _ in range(300):
        tree.set(rng.integers(700, size=32), rng.lognormal(sigma=5, size=32))
    again = tree_class(1000)
    again.set(np.arange(1000), np.ones(1000))  # a past that must leave no trace
    again.load(tree.leaves(700))
    np.testing.assert_array_equal(again.nodes, tree.nodes)


def test_children_of_a_node_share_a_cache_line():
    for capacity in (1, 100, 12345):
        tree = SumTree(capacity)
        assert tree.nodes.ctypes.data % 64 == 0
        assert (tree.starts % 8 == 0).all()


def test_later_value_of_a_slot_set_twice_stays():
    tree = SumTree(10)
    tree.set(np.array([4, 4, 5, 4]), np.array([1.0, 2.0, 1.0, 3.0]))
    assert tree.get(np.array([4, 5])).tolist() == [3.0, 1.0]
    assert tree.total == 4.0


def test_maximum_goes_down_with_its_leaf():
    tree = MaxTree(100)
    tree.set(np.array([3, 90]), np.array([5.0, 7.0]))
    tree.set(np.array([90]), np.array([1.0]))
    assert tree.maximum == 5.0


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_bad_value_leaves_the_tree_unchanged(value):
    tree = SumTree(10)
    tree.set(np.arange(3), np.ones(3))
    with pytest.raises(NonFiniteError, match="slot 2"):
        tree.set(np.array([1, 2]), np.array([5.0, value]))
    assert tree.total == 3.0
    assert tree.leaves(4).tolist() == [1, 1, 1, 0]


def test_slots_outside_the_tree_are_an_error_not_a_crash():
    tree = SumTree(10)
    for slot in (-1, 10, 10**12):
        with pytest.raises(ConfigError, match=str(slot)):
            tree.set(np.array([0, slot]), np.ones(2))
        with pytest.raises(ConfigError, match=str(slot)):
            tree.get(np.array([slot]))
    assert tree.total == 0


def test_useless_requests_are_refused():
    with pytest.raises(ConfigError, match="capacity is 0"):
        SumTree(0)
    with pytest.raises(ConfigError, match="no priority"):
        SumTree(5).find(np.array([0.0]))
    with pytest.raises(ConfigError, match="one value per slot"):
        SumTree(5).set(np.arange(2), np.ones(3))
    with pytest.raises(CheckpointError, match="5 slots"):
        SumTree(5).load(np.ones(6))
    with pytest.raises(CheckpointError, match="slot 1 is nan"):
        SumTree(5).load(np.array([1.0, np.nan]))


def test_sampled_frequencies_follow_the_priorities():
    """Chi-square of 200 000 independent draws over 300 slots: 299 degrees of freedom, bound at 5 sigma."""
    rng = np.random.default_rng(11)
    leaves = rng.lognormal(sigma=1, size=300)
    tree = SumTree(1000)
    tree.set(np.arange(300), leaves)
    counts = np.bincount(tree.find(rng.random(200_000) * tree.total), minlength=1000)
    assert counts[300:].sum() == 0
    expected = 200_000 * leaves / leaves.sum()
    chi_square = ((counts[:300] - expected) ** 2 / expected).sum()
    assert chi_square < 299 + 5 * np.sqrt(2 * 299)
