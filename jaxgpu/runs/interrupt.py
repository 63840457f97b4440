"""Interrupts: Ctrl-C or SIGTERM as a request to stop at the next safe point."""

import signal
import threading
from typing import Any

# from a user, and from a scheduler that needs the machine
_STOP_SIGNALS = signal.SIGINT, signal.SIGTERM
_FOREIGN_HANDLERS = (
    signal.SIG_IGN,
    None,
)  # None: a handler that Python has not set and cannot set again


class Interrupt:
    """Context in which the first Ctrl-C or SIGTERM only sets `asked`; a second one stops at once.

    An ignored signal stays ignored: a shell starts background jobs like this, so that Ctrl-C does
    not end them. A handler set outside of Python stays as well. Outside of the main thread, where
    Python delivers no signals, this context does nothing.

    >>> import os
    >>> with Interrupt() as interrupt:
    ...     os.kill(os.getpid(), signal.SIGTERM)
    ...     print(interrupt.asked)
    True
    """

    asked = False

    def __enter__(self) -> "Interrupt":
        self._previous: dict[signal.Signals, Any] = {}
        if threading.current_thread() is threading.main_thread():
            heard = [
                which for which in _STOP_SIGNALS if signal.getsignal(which) not in _FOREIGN_HANDLERS
            ]
            self._previous = {which: signal.signal(which, self._request_stop) for which in heard}
        return self

    def __exit__(self, *error: Any) -> None:
        self._restore_handlers()

    def _request_stop(self, *_: Any) -> None:
        self.asked = True
        self._restore_handlers()

    def _restore_handlers(self) -> None:
        for which, handler in self._previous.items():
            signal.signal(which, handler)
