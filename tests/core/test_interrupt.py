"""Ctrl-C is a request; twice it is an order."""

import os
import signal
import threading

import pytest

from jaxgpu.interrupt import Interrupt


@pytest.fixture
def heard():
    """Ctrl-C as a terminal sends it: shells let programs in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_first_is_noted_and_the_second_stops(heard):
    before = signal.getsignal(signal.SIGINT)
    with Interrupt() as interrupt:
        assert not interrupt.asked
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupt.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_outside_the_main_thread_it_does_nothing():
    def enter():
        with Interrupt() as interrupt:
            seen.append(interrupt.asked)

    seen, before = [], signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [False] and signal.getsignal(signal.SIGINT) is before
