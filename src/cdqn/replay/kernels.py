"""The compiled loops of the priority trees and of the predecessor links.

Tree layout: all levels in one float64 array, leaves first, root last; `starts[level]` is where a level begins.
Node i of a level is the reduction of nodes 8i … 8i+7 of the level below: 8 float64 are one cache line, so one
step of a descent or of an update costs one line. Loops run level by level over the whole batch, because the
misses of different rows are independent and the processor then waits for many of them at once.

Every compiled function lives in this file: numba's cache notices a change of the file a function is written
in, not of the files it calls into.
"""

import numpy as np
from numba import njit

from cdqn.replay.transitions import Bools, Floats, Ints

FAN_OUT = 8

SERIAL, PREDECESSOR_SLOT, PREDECESSOR_SERIAL = 0, 1, 2
"""Columns of the links. Serial 0 is a slot that was never written; predecessor slot −1 is 'none'."""


@njit(cache=True)
def sum_of_children(nodes: Floats, at: int) -> float:
    """Left to right, always: the order of the additions is part of the value."""
    total: float = nodes[at]
    for k in range(1, FAN_OUT):
        total += nodes[at + k]
    return total


@njit(cache=True)
def max_of_children(nodes: Floats, at: int) -> float:
    largest: float = nodes[at]
    for k in range(1, FAN_OUT):
        largest = max(largest, nodes[at + k])
    return largest


@njit(cache=True)
def refresh_sums(nodes: Floats, starts: Ints, slots: Ints) -> None:
    """Recompute every ancestor of these leaves from its children, so that no rounding error accumulates."""
    above = slots // FAN_OUT
    for level in range(1, starts.size):
        below, here = starts[level - 1], starts[level]
        previous = -1
        for i in range(above.size):
            node = above[i]
            if node != previous:
                nodes[here + node] = sum_of_children(nodes, below + node * FAN_OUT)
            previous = node
            above[i] = node // FAN_OUT


@njit(cache=True)
def refresh_maxima(nodes: Floats, starts: Ints, slots: Ints) -> None:
    """As `refresh_sums`, with the maximum."""
    above = slots // FAN_OUT
    for level in range(1, starts.size):
        below, here = starts[level - 1], starts[level]
        previous = -1
        for i in range(above.size):
            node = above[i]
            if node != previous:
                nodes[here + node] = max_of_children(nodes, below + node * FAN_OUT)
            previous = node
            above[i] = node // FAN_OUT


@njit(cache=True)
def rebuild(nodes: Floats, starts: Ints, size: int, maximum: bool) -> None:
    """All ancestors of the first `size` leaves."""
    count = size
    for level in range(1, starts.size):
        below, here = starts[level - 1], starts[level]
        count = (count + FAN_OUT - 1) // FAN_OUT
        for node in range(count):
            at = below + node * FAN_OUT
            nodes[here + node] = max_of_children(nodes, at) if maximum else sum_of_children(nodes, at)


@njit(cache=True)
def first_outside(slots: Ints, bound: int) -> int:
    """Where the first slot outside [0, bound) stands, or −1: compiled code does not check its indices."""
    for i in range(slots.size):
        if slots[i] < 0 or slots[i] >= bound:
            return i
    return -1


@njit(cache=True)
def set_sums(nodes: Floats, starts: Ints, slots: Ints, values: Floats) -> None:
    """Leaves, then their ancestors; of a slot given twice the later value stays."""
    for i in range(slots.size):
        nodes[slots[i]] = values[i]
    refresh_sums(nodes, starts, slots)


@njit(cache=True)
def set_maxima(nodes: Floats, starts: Ints, slots: Ints, values: Floats) -> None:
    for i in range(slots.size):
        nodes[slots[i]] = values[i]
    refresh_maxima(nodes, starts, slots)


@njit(cache=True)
def find(nodes: Floats, starts: Ints, prefixes: Floats, slots: Ints, values: Floats) -> None:
    """For each prefix the leaf in whose share of the total it lies, and the value of that leaf.

    A child of zero never wins: its running sum equals the one before it. Where rounding leaves a prefix at or
    beyond the sum of a node, the last child that is not zero takes it; there is one, as the node is not zero.
    """
    rest = np.maximum(prefixes, 0.0)
    for i in range(slots.size):
        slots[i] = 0
    for level in range(starts.size - 2, -1, -1):
        start = starts[level]
        for i in range(slots.size):
            at = start + slots[i] * FAN_OUT
            running, passed, child = 0.0, 0.0, 0
            for k in range(FAN_OUT):  # no early exit: a branch that cannot be predicted costs more
                running += nodes[at + k]
                beyond = rest[i] >= running
                passed = running if beyond else passed
                child += beyond
            if child == FAN_OUT:
                child -= 1
                while child > 0 and nodes[at + child] == 0.0:
                    child -= 1
                passed = -np.inf  # and on the levels below it stays at the far end
            rest[i] -= passed
            slots[i] = slots[i] * FAN_OUT + child
    for i in range(slots.size):
        values[i] = nodes[slots[i]]


@njit(cache=True)
def link_rows(
    links: Ints, last_of_stream: Ints, next_serial: int, slots_N: Ints, stream_N: Ints, first_N: Bools
) -> int:
    """Give each stored row its serial number and its predecessor, in order; returns the next free serial.

    A slot of −1 is a row that was discarded: the row after it has no predecessor in memory.
    """
    for n in range(slots_N.size):
        slot, last = slots_N[n], last_of_stream[stream_N[n]]
        if slot < 0:
            last[0] = -1
            continue
        links[slot, SERIAL] = next_serial
        links[slot, PREDECESSOR_SLOT] = -1 if first_N[n] else last[0]
        links[slot, PREDECESSOR_SERIAL] = last[1]
        last[0], last[1] = slot, next_serial
        next_serial += 1
    return next_serial


@njit(cache=True)
def enter(sums: Floats, maxima: Floats, starts: Ints, slots_N: Ints, priority: float) -> None:
    """Rows just stored: all get this priority, none is computed from a TD error. Slot −1 was discarded."""
    stored = slots_N[slots_N >= 0]
    for i in range(stored.size):
        sums[stored[i]] = priority
        maxima[stored[i]] = 0.0
    refresh_sums(sums, starts, stored)
    refresh_maxima(maxima, starts, stored)


@njit(cache=True)
def reprioritize(
    sums: Floats, maxima: Floats, starts: Ints, links: Ints, slots_B: Ints, priority_B: Floats, bound_B: Floats
) -> None:
    """Set the priorities of a batch, then raise its predecessors to their bounds (empty: do not), App. E.2.

    `maxima` has the same leaves as `sums`, but zero where no TD error was ever computed: a raised leaf
    changes there only if it was computed before.
    """
    changed = np.empty(slots_B.size + bound_B.size, np.int64)
    for i in range(slots_B.size):
        changed[i] = slots_B[i]
        sums[slots_B[i]] = priority_B[i]
        maxima[slots_B[i]] = priority_B[i]
    count = slots_B.size
    for i in range(bound_B.size):
        before = links[slots_B[i], PREDECESSOR_SLOT]
        if before < 0 or links[before, SERIAL] != links[slots_B[i], PREDECESSOR_SERIAL]:
            continue  # an episode's start, or the predecessor has been overwritten
        if bound_B[i] > sums[before]:
            sums[before] = bound_B[i]
            if maxima[before] > 0.0:
                maxima[before] = bound_B[i]
            changed[count] = before
            count += 1
    refresh_sums(sums, starts, changed[:count])
    refresh_maxima(maxima, starts, changed[:count])
