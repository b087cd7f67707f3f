"""Signals become a wish to stop, once."""

import signal
import sys
import threading

import pytest

from cdqn.runs.stopping import stop_on_signal


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_signal_is_a_wish_to_stop_and_the_second_one_acts_as_ever(number):
    if signal.getsignal(number) == signal.SIG_IGN:  # as nohup does with SIGHUP
        signal.signal(number, signal.SIG_DFL)
    before = signal.getsignal(number)
    with stop_on_signal() as stop:
        assert not stop.requested()
        signal.raise_signal(number)
        assert stop.requested()
        assert signal.getsignal(number) == before
    assert signal.getsignal(number) == before


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
def test_run_started_with_nohup_outlives_its_terminal():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signal() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert not stop.requested()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_outside_the_main_thread_signals_are_left_alone():
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def elsewhere():
        with stop_on_signal() as stop:
            seen.append((stop.requested(), signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [(False, before)]
    assert signal.getsignal(signal.SIGINT) == before
