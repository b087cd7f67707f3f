"""The compiled loops on trees that are small enough to look at."""

import numpy as np
import pytest

from cdqn.replay import kernels

STARTS = np.array([0, 64, 72])
"""64 leaves, 8 nodes above them, and the root."""


def tree():
    return np.zeros(73)


@pytest.mark.parametrize(("set_leaves", "reduce"), [(kernels.set_sums, np.sum), (kernels.set_maxima, np.max)])
def test_nodes_are_the_reduction_of_their_eight_children(set_leaves, reduce):
    nodes = tree()
    slots = np.array([0, 9, 63, 9])
    set_leaves(nodes, STARTS, slots, np.array([1.0, 2.0, 4.0, 3.0]))
    leaves = nodes[:64].reshape(8, 8)
    assert (leaves[0, 0], leaves[1, 1], leaves[7, 7]) == (1, 3, 4), "of a slot given twice the later value stays"
    np.testing.assert_array_equal(nodes[64:72], reduce(leaves, axis=1))
    assert nodes[72] == reduce(leaves)


@pytest.mark.parametrize("maximum", [False, True])
def test_rebuilt_tree_is_the_one_that_was_kept_up(maximum):
    kept, rebuilt = tree(), tree()
    values = np.random.default_rng(0).random(50)
    (kernels.set_maxima if maximum else kernels.set_sums)(kept, STARTS, np.arange(50), values)
    rebuilt[:50] = values
    kernels.rebuild(rebuilt, STARTS, 50, maximum)
    assert kept.tobytes() == rebuilt.tobytes()


def test_prefix_finds_the_leaf_in_whose_share_it_lies():
    nodes = tree()
    kernels.set_sums(nodes, STARTS, np.array([3, 20, 40]), np.array([1.0, 2.0, 4.0]))
    prefixes = np.array([0.0, 0.99, 1.0, 2.99, 3.0, 6.99, 7.0, 100.0])
    slots, values = np.zeros(8, np.int64), np.zeros(8)
    kernels.find(nodes, STARTS, prefixes, slots, values)
    assert slots.tolist() == [3, 3, 20, 20, 40, 40, 40, 40]
    assert values.tolist() == [1, 1, 2, 2, 4, 4, 4, 4]


@pytest.mark.parametrize(("slots", "place"), [([0, 4], -1), ([0, 5, 9], 1), ([-1], 0), ([], -1)])
def test_first_slot_outside_is_found(slots, place):
    assert kernels.first_outside(np.array(slots, np.int64), 5) == place


def test_new_rows_have_their_priority_and_none_that_was_computed():
    sums, maxima = tree(), tree()
    kernels.set_maxima(maxima, STARTS, np.array([1]), np.array([9.0]))
    kernels.enter(sums, maxima, STARTS, np.array([1, -1, 2]), 0.5)
    assert (sums[1], sums[2], sums[72], maxima[72]) == (0.5, 0.5, 1.0, 0.0)


def test_predecessor_is_raised_to_its_bound_and_never_lowered():
    sums, maxima = tree(), tree()
    links = np.zeros((64, 3), np.int64)
    kernels.link_rows(
        links, np.full((1, 2), -1), 1, np.arange(4), np.zeros(4, np.int64), np.array([True, False, True, False])
    )
    kernels.enter(sums, maxima, STARTS, np.arange(4), 1.0)
    kernels.reprioritize(
        sums, maxima, STARTS, links, np.array([1, 2, 3]), np.array([8.0, 0.1, 0.2]), np.array([4.0, 4.0, 0.05])
    )
    assert sums[:4].tolist() == [4.0, 8.0, 0.1, 0.2], (
        "0 is raised; 1 begins no raise of another episode; 2 is not lowered"
    )
    assert maxima[:4].tolist() == [0.0, 8.0, 0.1, 0.2], "what was raised was never computed"
    assert (sums[72], maxima[72]) == (pytest.approx(12.3), 8.0)
