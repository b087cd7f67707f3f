"""Ray: find a cluster, and keep objects in processes of it."""

import logging
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from cdqn.errors import ConfigError
from cdqn.integrations.optional import missing

FOUND = "ray"
"""In place of an address: the cluster of RAY_ADDRESS, or the one that runs on this machine."""
CONNECT_SECONDS = 5.0
THREADS = 4
"""Of a remote object: what it does must not keep it from answering."""


class ProcessDied(Exception):  # noqa: N818
    """The process of a remote object is gone, and its answer with it."""


def connect(address: str = FOUND) -> None:
    """To the cluster at host:port or ray://host:port; whoever is connected already stays where they are."""
    ray = _ray()
    if ray.is_initialized():
        return
    if address != FOUND:
        _require_reachable(address)
    try:
        ray.init("auto" if address == FOUND else address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, ImportError) as error:
        if address == FOUND:
            raise ConfigError(
                "no Ray cluster was found: start one with `ray start --head`, set RAY_ADDRESS, or give its address, "
                "host:port, in place of ray"
            ) from error
        raise ConfigError(f"the Ray cluster at {address} does not let us in: {_last_line(error)}") from error


def _require_reachable(address: str) -> None:
    """Ray itself would try for minutes."""
    try:
        place = urlsplit(address if "://" in address else f"//{address}")
        if not (place.hostname and place.port):
            raise ValueError
    except ValueError:
        raise ConfigError(
            f"{address!r} is not the address of a Ray cluster: give host:port, ray://host:port, or ray alone for the "
            "one that is found"
        ) from None
    try:
        socket.create_connection((place.hostname, place.port), CONNECT_SECONDS).close()
    except OSError as error:
        raise ConfigError(f"no Ray cluster answers at {address} ({error}): is it running, and reachable?") from error


def resources() -> dict[str, float]:
    """All CPUs, GPUs, … of the cluster."""
    found: dict[str, float] = _ray().cluster_resources()
    return found


class RemoteObject:
    """An object of class `kind` in a process of its own, somewhere in the cluster."""

    def __init__(self, kind: type, arguments: tuple[Any, ...], cpus: float, gpus: float) -> None:
        options = {"num_cpus": cpus, "num_gpus": gpus, "max_restarts": 0, "max_concurrency": THREADS}
        self._actor = _ray().remote(**options)(kind).remote(*arguments)

    def call(self, method: str, *arguments: Any) -> Any:
        """The promise of an answer: `wait` for it, `fetch` it."""
        return getattr(self._actor, method).remote(*arguments)

    def kill(self) -> None:
        _ray().kill(self._actor)


def wait(answers: Sequence[Any], seconds: float) -> list[Any]:
    """Those that are there, at the latest after so many seconds."""
    ready: list[Any] = _ray().wait(list(answers), timeout=seconds)[0]
    return ready


def fetch(answer: Any) -> Any:
    """An answer; ProcessDied if there will be none."""
    ray = _ray()
    try:
        return ray.get(answer)
    except ray.exceptions.RayActorError as error:
        raise ProcessDied(f"its process on the Ray cluster died: {_last_line(error)}") from error


def _last_line(error: Exception) -> str:
    """Ray's errors say in their last line what happened; the first sentence of it is enough."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise missing("a Ray cluster needs ray", "ray") from error
    return ray
