"""Ctrl-C is a request; twice it is an order."""

import os
import signal
import threading

import pytest

from jaxgpu.runs.interrupt import Interrupt


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM], ids=lambda which: which.name)
def heard(request):
    """A signal as a terminal or a scheduler sends it: shells let programs in the background ignore
    Ctrl-C."""
    before = signal.signal(request.param, signal.default_int_handler)
    yield request.param
    signal.signal(request.param, before)


def test_the_first_is_noted_and_the_second_stops(heard):
    before = signal.getsignal(heard)
    with Interrupt() as interrupt:
        assert not interrupt.asked
        os.kill(os.getpid(), heard)
        assert interrupt.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), heard)
    assert signal.getsignal(heard) is before


@pytest.mark.parametrize("times", [0, 1])
def test_afterwards_the_signals_do_what_they_did(heard, times):
    with Interrupt():
        for _ in range(times):
            os.kill(os.getpid(), heard)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), heard)


def test_outside_the_main_thread_it_does_nothing():
    def enter():
        with Interrupt() as interrupt:
            seen.append(interrupt.asked)

    seen, before = [], signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [False] and signal.getsignal(signal.SIGINT) is before
