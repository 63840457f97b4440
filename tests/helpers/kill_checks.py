"""A command in a separate process that is ended at a random moment, and its remaining files."""

import json
import re
import signal
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import numpy as np

from jaxgpu.runs import checkpoint


def join_process(process: ForkServerProcess, seconds: float = 300) -> None:
    """Wait for the end of a process, which must be successful."""
    process.join(seconds)
    process.kill()  # it may be late
    assert process.exitcode == 0, f"after at most {seconds} s it ended with {process.exitcode}"


def newest(out: Path) -> Path | None:
    """Return the newest checkpoint in a run's folder or below it."""
    return max(out.rglob("step-*.npz"), default=None)


def kill_at_random(
    process: ForkServerProcess, out: Path, longest: float, saved: bool, how=signal.SIGKILL
) -> bool:
    """Send a signal within `longest` s (if `saved`, after its next save); return if it ended it.

    A process that catches the signal then saves its state and ends by itself.
    """
    before = newest(out)
    while saved and process.is_alive() and newest(out) == before:
        time.sleep(0.01)
    process.join(longest)
    sent = process.is_alive()
    if sent and process.pid and how == signal.SIGTERM:
        process.terminate()
        process.join(60)
    process.kill()
    process.join()
    return sent and process.exitcode != 0


def last_checkpoints(out: Path) -> dict[Path, Path]:
    """Return the last file of every folder of a run; names before it depend on the chunks."""
    files = sorted(file.relative_to(out) for file in out.rglob("step-*.npz"))
    return {file.parent: file for file in files}


def assert_same_bits(out: Path, whole: Path) -> int:
    """Assert that last checkpoints and reports of two runs are equal; return their number."""
    last = last_checkpoints(whole)
    assert last == last_checkpoints(out)
    for file in last.values():
        (want, want_meta), (got, got_meta) = (checkpoint.read(at / file) for at in (whole, out))
        assert want_meta == got_meta and want.keys() == got.keys()
        for name in want:
            np.testing.assert_array_equal(want[name], got[name], strict=True)
    one, other = (json.loads((at / "report.json").read_text())["report"] for at in (whole, out))
    assert drop_times(one["tables"]) == drop_times(other["tables"])
    assert one["findings"] == other["findings"]
    return len(last)


def drop_times(tables: list[dict]) -> list[dict]:
    """Return tables without their columns of seconds, which differ between runs."""
    kept = []
    for table in tables:
        columns = [
            i for i, name in enumerate(table["columns"]) if not re.search("seconds|s/", name)
        ]
        kept.append({**table, "rows": [[row[i] for i in columns] for row in table["rows"]]})
    return kept
