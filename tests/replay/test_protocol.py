"""Our memories have the methods that the trainer asks of any, with the arguments it gives."""

import inspect

import pytest

from cdqn.replay import PrioritizedReplay, UniformReplay
from cdqn.replay.protocol import Replay

METHODS = ("__len__", "add", "sample", "update_priorities", "state_dict", "load_state_dict")


def test_protocol_names_these_methods_and_no_other():
    own = {name for name in vars(Replay) if inspect.isfunction(vars(Replay)[name])}
    assert own - {"__init__", "__subclasshook__"} == set(METHODS)


@pytest.mark.parametrize("memory", [UniformReplay, PrioritizedReplay])
@pytest.mark.parametrize("method", METHODS)
def test_memory_takes_what_the_protocol_gives(memory, method):
    asked = inspect.signature(getattr(Replay, method))
    inspect.signature(getattr(memory, method)).bind(*asked.parameters)
