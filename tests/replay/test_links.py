"""Predecessors: found in the same stream and episode, and void once their slot is overwritten."""

import numpy as np
import pytest

from cdqn.errors import CheckpointError, ConfigError
from cdqn.replay.kernels import PREDECESSOR_SERIAL, PREDECESSOR_SLOT, SERIAL
from cdqn.replay.links import PredecessorLinks


def linked(slots, streams=None, firsts=None, capacity=6):
    links = PredecessorLinks(capacity)
    add(links, slots, streams, firsts)
    return links


def add(links, slots, streams=None, firsts=None):
    streams = np.zeros(len(slots), np.int64) if streams is None else np.array(streams)
    firsts = np.zeros(len(slots), bool) if firsts is None else np.array(firsts)
    links.make_room(streams)
    links.add(np.array(slots), streams, firsts)


def predecessor(links, slot):
    """Its slot, or None where there is none in memory."""
    before = links.table[slot, PREDECESSOR_SLOT]
    if before < 0 or links.table[before, SERIAL] != links.table[slot, PREDECESSOR_SERIAL]:
        return None
    return before


def test_each_row_follows_the_one_before_it_in_its_stream():
    links = linked([0, 1, 2, 3], streams=[0, 1, 0, 1])
    assert [predecessor(links, slot) for slot in range(4)] == [None, None, 0, 1]


def test_first_row_of_an_episode_and_one_after_a_discarded_row_have_none():
    links = linked([0, 1, -1, 2, 3], firsts=[False, True, False, False, False])
    assert [predecessor(links, slot) for slot in range(4)] == [None, None, None, 2]


def test_link_is_void_once_its_slot_is_overwritten():
    links = linked([0, 1])
    assert predecessor(links, 1) == 0
    add(links, [0], streams=[1])
    assert predecessor(links, 1) is None


def test_streams_go_on_after_a_checkpoint():
    links, other = linked([0, 1], streams=[0, 2]), PredecessorLinks(6)
    state = links.state_dict(2)
    other.check_state(state, 2)
    other.load_state_dict(state, 2)
    for each in (links, other):
        add(each, [2, 3], streams=[2, 0])
    np.testing.assert_array_equal(links.table, other.table)
    assert (predecessor(other, 2), predecessor(other, 3)) == (1, 0)


@pytest.mark.parametrize("stream", [-1, 1_000_000])
def test_stream_that_is_no_number_of_an_environment_is_refused(stream):
    with pytest.raises(ConfigError, match="number the environments from 0"):
        PredecessorLinks(4).make_room(np.array([0, stream]))


def test_link_that_leaves_the_memory_is_refused():
    state = linked([0, 1]).state_dict(2)
    state["table"][1, PREDECESSOR_SLOT] = 2
    with pytest.raises(CheckpointError, match="leaves the 2 saved slots"):
        PredecessorLinks(6).check_state(state, 2)
