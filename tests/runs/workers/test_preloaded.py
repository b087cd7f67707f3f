"""What the server of workers has done for them before they begin."""

import sys

from cdqn.replay import kernels
from cdqn.runs.workers.local import LocalPool
from cdqn.runs.workers.tasks import perform_all


def what_is_ready(task, say, stop):
    return "torch" in sys.modules, "cdqn.agent" in sys.modules, len(kernels.first_outside.signatures)


def test_a_worker_finds_pytorch_the_agent_and_a_kernel_loaded():
    (ready,) = [value for _, kind, value in perform_all({"a": 1}, what_is_ready, LocalPool(1)) if kind == "returned"]
    assert ready == (True, True, 1)
