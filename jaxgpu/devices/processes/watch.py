"""A process that ends takes the others with it: soon, with one sentence, and so that a run resumes.

Nothing in a device's program notices that another process is gone: a collective waits for ever, or
fails in words of its own. So while processes advance a run together, a thread in each shows every
few seconds that it lives, and looks whether the others do. Whoever misses one leaves.
"""

import os
import sys
import threading
import time
from typing import Any

import jax

from . import group as groups
from .group import Group

ENDED = 75  # the exit code for "try again" of sysexits.h
PERIOD = 2.0  # s between two looks
SILENCE = 25.0  # s after which a process is given up
GRACE = 10.0  # s for the others to end by themselves of what has ended one of them
LAST = 3 * PERIOD  # s that process 0 stays longer: without its service the others are aborted

# what the errors of JAX say where another process, or the way to it, is gone
_LOST = "gloo", "nccl", "coordination", "barrier", "connection", "heartbeat", "peer", "socket"


class Watch:
    """While entered, this process shows that it lives, and leaves when another one is gone.

    It does nothing in a group of one. `hint` ends the sentence: how to go on.

    >>> from jaxgpu.devices.processes import ALONE
    >>> with Watch(ALONE, "resume it"):
    ...     pass
    """

    def __init__(self, group: Group, hint: str) -> None:
        self._group, self._hint = group, hint
        self._over = threading.Event()

    def __enter__(self) -> "Watch":
        if not self._group.alone:
            self._room = f"{self._group.name}/alive/{self._group.turn('watch')}/"
            self._thread = threading.Thread(target=self._keep_watch, name="watch", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._group.alone:
            return
        if isinstance(error, jax.errors.JaxRuntimeError) and _is_lost(error):
            self._leave("another process, or the way to it, is gone")
        self._over.set()
        self._thread.join()
        end = "left" if error is None else f"failed {' '.join(f'{kind.__name__}: {error}'.split())}"
        groups.tell(f"{self._room}{self._group.rank:06d}", end[:300])

    def _keep_watch(self) -> None:
        try:
            self._look()
        except jax.errors.JaxRuntimeError:
            self._leave("process 0 is gone")

    def _look(self) -> None:
        """Beat and listen, until the run is over here."""
        heard: dict[str, tuple[str, float]] = {}  # by process: what it said last, and since when
        looked, beat = time.monotonic(), 0
        while not self._over.is_set():
            groups.tell(f"{self._room}{self._group.rank:06d}", str(beat := beat + 1))
            now, said = time.monotonic(), groups.client().key_value_dir_get(self._room)
            if now - looked > 2 * PERIOD + 1:  # all were held up together, or this one was
                heard.clear()
            looked = now
            for key, text in said:
                before, since = heard.setdefault(key, (text, now))
                if before != text:
                    heard[key] = text, now
                elif text != "left":
                    self._judge(int(key.rpartition("/")[2]), text, now - since)
            self._over.wait(PERIOD)

    def _judge(self, rank: int, text: str, silence: float) -> None:
        number = self._group.members[rank]
        if text.startswith("failed") and silence > GRACE:
            self._leave(f"process {number} {text}")
        if silence > SILENCE:
            self._leave(f"process {number} has been silent for {silence:.0f} s")

    def _leave(self, why: str) -> None:
        """End this process at once: the way out of Python waits for the others."""
        print(f"jaxgpu: {why}; {self._hint}", file=sys.stderr, flush=True)
        if self._group.number == 0:
            time.sleep(LAST)
        os._exit(ENDED)


def _is_lost(error: Exception) -> bool:
    text = str(error).lower()
    return any(word in text for word in _LOST)
