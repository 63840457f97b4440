"""Watchdog of a job: when one process ends, the others end soon, so that the run can be resumed.

A program on a device does not notice that another process has ended: a collective operation waits
forever or fails with an obscure message. While processes advance a run together, a thread in each
therefore sends heartbeats and checks those of the others. If one stops, the others exit.
"""

import os
import sys
import threading
import time
from typing import Any

import jax

from . import group as groups
from .group import Group

EXIT_CODE = 75  # the exit code for "try again" of sysexits.h
PERIOD = 2.0  # s between two checks
SILENCE = 25.0  # s without a heartbeat after which a process counts as lost
GRACE = 10.0  # s for the others to fail by themselves of the same cause
EXIT_DELAY = 3 * PERIOD  # s that process 0 exits later: without its service the others are aborted

# words in JAX's errors when another process, or the connection to it, is lost
_CONNECTION_WORDS = (
    "gloo",
    "nccl",
    "coordination",
    "barrier",
    "connection",
    "heartbeat",
    "peer",
    "socket",
)


class Watchdog:
    """Context in which this process sends heartbeats, and exits when another process is gone.

    It does nothing in a group of one. `hint` ends the message: how to resume.

    >>> from jaxgpu.devices.processes import ALONE
    >>> with Watchdog(ALONE, "resume it"):
    ...     pass
    """

    def __init__(self, group: Group, hint: str) -> None:
        self._group, self._hint = group, hint
        self._offset_from_box = threading.Event()

    def __enter__(self) -> "Watchdog":
        if not self._group.alone:
            self._chunk_capacity = f"{self._group.name}/alive/{self._group.turn('watch')}/"
            self._thread = threading.Thread(target=self._run_thread, name="watch", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._group.alone:
            return
        if isinstance(error, jax.errors.JaxRuntimeError) and _is_connection_error(error):
            self._exit_process("another process, or the connection to it, is lost")
        self._offset_from_box.set()
        self._thread.join()
        end = "left" if error is None else f"failed {' '.join(f'{kind.__name__}: {error}'.split())}"
        groups.publish(f"{self._chunk_capacity}{self._group.rank:06d}", end[:300])

    def _run_thread(self) -> None:
        try:
            self._exchange_heartbeats()
        except jax.errors.JaxRuntimeError:
            self._exit_process("process 0 is lost")

    def _exchange_heartbeats(self) -> None:
        """Send and check heartbeats until the run is over in this process."""
        heard: dict[str, tuple[str, float]] = {}  # by process: its last message and the time of it
        looked, beat = time.monotonic(), 0
        while not self._offset_from_box.is_set():
            groups.publish(f"{self._chunk_capacity}{self._group.rank:06d}", str(beat := beat + 1))
            now, said = time.monotonic(), groups.client().key_value_dir_get(self._chunk_capacity)
            if now - looked > 2 * PERIOD + 1:  # this process, or all of them, were suspended
                heard.clear()
            looked = now
            for key, text in said:
                before, since = heard.setdefault(key, (text, now))
                if before != text:
                    heard[key] = text, now
                elif text != "left":
                    self._check_process(int(key.rpartition("/")[2]), text, now - since)
            self._offset_from_box.wait(PERIOD)

    def _check_process(self, rank: int, text: str, silence: float) -> None:
        number = self._group.members[rank]
        if text.startswith("failed") and silence > GRACE:
            self._exit_process(f"process {number} {text}")
        if silence > SILENCE:
            self._exit_process(f"process {number} has been silent for {silence:.0f} s")

    def _exit_process(self, why: str) -> None:
        """Exit immediately: a normal exit of Python would wait for the other processes."""
        print(f"jaxgpu: {why}; {self._hint}", file=sys.stderr, flush=True)
        if self._group.number == 0:
            time.sleep(EXIT_DELAY)
        os._exit(EXIT_CODE)


def _is_connection_error(error: Exception) -> bool:
    text = str(error).lower()
    return any(word in text for word in _CONNECTION_WORDS)
