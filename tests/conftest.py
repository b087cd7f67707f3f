"""One thread, no waiting for the disk: the tests' tensors are tiny, and two of the tests run beside each other.

Also for PyTorch: results must not depend on the machine's cores, and threads that wait for a core that another
process has at the moment take many times longer than one.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy and PyTorch are imported, and for the processes that tests start

# Else Ray's processes give way to all other tests, and a worker waits for them; and it starts some that nobody needs.
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  its own name
os.environ["RAY_prestart_worker_first_driver"] = "0"  # noqa: SIM112

import pytest  # noqa: E402
import torch  # noqa: E402


def pytest_collection_modifyitems(config, items):
    """Slow tests first in the share of each worker: none is left for the end, when others have nothing to do.

    A worker begins with its part of the list, and takes over from others when it is through (--dist worksteal). Tests
    of Ray go to the first, one after the other, so that it is begun once.
    """
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    of_ray = [item for item in items if "small_ray" in item.fixturenames]
    others = [item for item in items if "small_ray" not in item.fixturenames]
    slow = [item for item in others if item.get_closest_marker("slow")]
    rest = [item for item in others if not item.get_closest_marker("slow")]
    items[:] = []
    for worker in range(workers):
        begin, end = (len(rest) * number // workers for number in (worker, worker + 1))
        items += [*(of_ray if worker == 0 else ()), *slow[worker::workers], *rest[begin:end]]


@pytest.fixture(autouse=True)
def _one_torch_thread():
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    """Checkpoints are flushed, some milliseconds each: a matter of power cuts, of which no test dies."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def quick_compile(monkeypatch):
    """The traced graph itself, without the C++ that Inductor makes of it: a second instead of ten."""

    from torch.fx.experimental.proxy_tensor import make_fx

    def trace(function, inputs):
        return make_fx(function)(*(tensor.clone() for tensor in inputs))

    monkeypatch.setattr("cdqn.training.learner.compile_for", trace)


@pytest.fixture
def small_ray():
    """Ray on this machine; the next test that asks for it finds it there, for it takes long to begin."""
    import ray

    if not ray.is_initialized():
        ray.init(num_cpus=4, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    return ray


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory):
    """A complete run of `cdqn train`, to be read and copied, never changed."""
    from run_files import train

    run = tmp_path_factory.mktemp("cli") / "run"
    assert train(run) == 0
    return run
