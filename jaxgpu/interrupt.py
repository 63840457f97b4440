"""Ctrl-C as a request to stop at the next safe point."""

import signal
import threading
from typing import Any


class Interrupt:
    """While entered, the first Ctrl-C only sets `asked`; a second one stops at once.

    Outside the main thread, where Python delivers no signals, it does nothing.
    """

    asked = False

    def __enter__(self) -> "Interrupt":
        self._ours = threading.current_thread() is threading.main_thread()
        if self._ours:
            self._previous = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, *error: Any) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, self._previous)

    def _ask(self, *_: Any) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, self._previous)
