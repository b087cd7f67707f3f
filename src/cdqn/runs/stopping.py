"""A wish to stop, and the signals that make it: heeded between two steps, so that what is done can be saved."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Ctrl-C, `kill`, and the end of a terminal; Windows has no SIGHUP."""


class Stop:
    """Whether somebody wants this to end; safe to request from a signal handler or another thread."""

    def __init__(self) -> None:
        self._requested = False

    def request(self) -> None:
        self._requested = True

    def requested(self) -> bool:
        return self._requested


@contextmanager
def stop_on_signal() -> Iterator[Stop]:
    """Signals become a request to stop while the block lasts; a second one acts as it always does."""
    stop = Stop()

    def handle(number: int, _: FrameType | None) -> None:
        stop.request()
        signal.signal(number, previous[number])

    previous: dict[int, Any] = {}
    try:
        for caught in SIGNALS:
            if caught.name == "SIGHUP" and signal.getsignal(caught) == signal.SIG_IGN:
                continue  # started with nohup, to outlive its terminal
            previous[caught] = signal.signal(caught, handle)
    except ValueError:  # not in the main thread: signals are somebody else's
        previous = {}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
