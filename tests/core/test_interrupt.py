"""Interrupts: one Ctrl-C requests a stop, a second one forces it."""

import os
import signal
import threading

import pytest

from jaxgpu.runs.interrupt import Interrupt


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM], ids=lambda which: which.name)
def stop_signal(request):
    """Yield a signal with Python's handler; shells let background programs ignore Ctrl-C."""
    before = signal.signal(request.param, signal.default_int_handler)
    yield request.param
    signal.signal(request.param, before)


def test_the_first_is_noted_and_the_second_stops(stop_signal):
    before = signal.getsignal(stop_signal)
    with Interrupt() as interrupt:
        assert not interrupt.asked
        os.kill(os.getpid(), stop_signal)
        assert interrupt.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), stop_signal)
    assert signal.getsignal(stop_signal) is before


@pytest.mark.parametrize("times", [0, 1])
def test_afterwards_the_signals_do_what_they_did(stop_signal, times):
    with Interrupt():
        for _ in range(times):
            os.kill(os.getpid(), stop_signal)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), stop_signal)


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM], ids=lambda which: which.name)
def test_an_ignored_signal_stays_ignored_during_the_run_and_after_it(which):
    """This holds after `nohup`, and for a job that a script starts in the background."""
    before = signal.signal(which, signal.SIG_IGN)
    try:
        with Interrupt() as interrupt:
            os.kill(os.getpid(), which)
            assert signal.getsignal(which) is signal.SIG_IGN and not interrupt.asked
        assert signal.getsignal(which) is signal.SIG_IGN
    finally:
        signal.signal(which, before)


def test_a_handler_that_is_not_of_python_stays(monkeypatch):
    """Python cannot install it again, since `getsignal` returns None for it."""
    monkeypatch.setattr(signal, "getsignal", lambda which: None)
    monkeypatch.setattr(signal, "signal", lambda *_: pytest.fail("a handler was replaced"))
    with Interrupt() as interrupt:
        assert not interrupt.asked


def test_outside_the_main_thread_it_does_nothing():
    def enter():
        with Interrupt() as interrupt:
            seen.append(interrupt.asked)

    seen, before = [], signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [False] and signal.getsignal(signal.SIGINT) is before
