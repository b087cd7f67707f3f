"""Workers on a Ray cluster: the same tasks, on machines that share the folder and have cdqn installed.

A worker is an actor, with the CPUs and the share of a GPU that a run needs. If the parent is gone, Ray ends its
workers at once: their runs go on from their checkpoints when somebody asks for them again.
"""

import platform
import queue
import sys
from collections.abc import Sequence
from typing import Any

from cdqn.errors import ConfigError
from cdqn.integrations import ray
from cdqn.runs.stopping import Stop
from cdqn.runs.workers.tasks import Kind, Perform, carry_out
from cdqn.storage.files import VERSION
from cdqn.storage.plain_values import COUNT, require_number


class RayPool:
    """Processes of a Ray cluster, at most `jobs` of them; unset: as many as it has room for.

    `address`: "ray" for the cluster that Ray finds by itself, or host:port, or ray://host:port.
    """

    def __init__(self, address: str = "ray", jobs: int | None = None, cpus: float = 1.0, gpus: float = 0.0) -> None:
        require_number("jobs", jobs, COUNT)
        for name, value in (("cpus_per_run", cpus), ("gpus_per_run", gpus)):
            if not value >= 0:
                raise ConfigError(f"{name} is {value}: it must be at least 0")
        ray.connect(address)
        self.jobs = jobs or _room(cpus, gpus)
        self._needs = cpus, gpus

    def hire(self, perform: Perform, heeds_stop: bool) -> "_Worker":
        return _Worker(ray.RemoteObject(Desk, (perform, VERSION, sys.path), *self._needs), heeds_stop)

    def wait(self, workers: Sequence["_Worker"], seconds: float) -> list["_Worker"]:
        by_answer = {worker.answer: worker for worker in workers}
        return [by_answer[ready] for ready in ray.wait(list(by_answer), seconds)]


def _room(cpus: float, gpus: float) -> int:
    """How many runs the cluster can take at a time."""
    there = ray.resources()
    rooms = [int(there.get(kind, 0.0) // need) for kind, need in (("CPU", cpus), ("GPU", gpus)) if need]
    if not (room := min(rooms, default=1)):
        raise ConfigError(
            f"a run asks for {cpus:g} CPUs and {gpus:g} GPUs, and the Ray cluster has {there.get('CPU', 0):g} and "
            f"{there.get('GPU', 0):g}: lower --cpus-per-run or --gpus-per-run"
        )
    return room


class _Worker:
    """A process of the cluster, as its parent sees it."""

    def __init__(self, desk: ray.RemoteObject, heeds_stop: bool) -> None:
        self._desk, self._heeds_stop = desk, heeds_stop
        self._is_busy = False
        self.answer = desk.call("next_event")

    def send(self, task: Any) -> None:
        if task is None:
            self._desk.call("stop")
        else:
            self._is_busy = True
            self._desk.call("do", task)

    def receive(self) -> tuple[Kind, Any]:
        try:
            kind, value = ray.fetch(self.answer)
        except ray.ProcessDied as error:
            kind, value = "died", str(error)
        else:
            self.answer = self._desk.call("next_event")
        self._is_busy = kind == "said"
        return kind, value

    def dismiss(self) -> None:
        if self._heeds_stop:
            self._desk.call("stop")

    def join(self) -> None:
        while self._is_busy and self._heeds_stop:
            self.receive()
        self._desk.kill()


class Desk:
    """In a process of the cluster: does one task at a time, in one thread, and answers in others."""

    def __init__(self, perform: Perform, version: str, path: Sequence[str]) -> None:
        sys.path += [folder for folder in path if folder not in sys.path]  # of environments and other code of the user
        self._perform, self._version = perform, version
        self._stop = Stop()
        self._events: queue.SimpleQueue[tuple[Kind, Any]] = queue.SimpleQueue()

    def do(self, task: Any) -> None:
        if self._version != VERSION:
            text = f"cdqn is of version {VERSION} on {platform.node()} and {self._version} here: install the same"
            self._tell("failed", text)
        else:
            carry_out(self._perform, task, self._tell, self._stop)

    def stop(self) -> None:
        self._stop.request()

    def next_event(self) -> tuple[Kind, Any]:
        """Waits for it."""
        return self._events.get()

    def _tell(self, kind: Kind, value: Any) -> None:
        self._events.put((kind, value))
