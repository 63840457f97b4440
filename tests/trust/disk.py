"""A full disk, a read-only disk, and two writers of one folder.

If the system permits a mount (as root, on Linux) the disk is a small file system in memory;
otherwise it is a limit on file sizes and a folder without write permission.
"""

import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from fork_server import fork_process
from kill_checks import join_process

from jaxgpu.cli import main
from jaxgpu.runs.checkpoint import CheckpointError
from jaxgpu.runs.loop import run
from tests.trust import run_forms


def measure() -> dict:
    """Try each case, and return the results to record."""
    began, checks = time.perf_counter(), {}
    with tempfile.TemporaryDirectory() as at:
        for name, check in (
            ("full", full_disk),
            ("read-only", read_only_disk),
            ("two writers", two_writers),
        ):
            (Path(at) / name).mkdir()
            checks[name] = check(Path(at) / name)
            print(name, checks[name], flush=True)
    failed = sum(not good for check in checks.values() for good in check.values())
    counts = {"checks": sum(map(len, checks.values())), "failed": failed, "mounted": _can_mount()}
    seconds = round(time.perf_counter() - began)
    return {"counts": counts, "checks": checks, "failed": failed, "seconds": seconds}


@jax.jit
def _step(x):
    return jax.numpy.sin(x) + 0.5 * x


def _run_steps(out: Path | None, **given):
    start = np.linspace(0, 1, 100_000, dtype=np.float32)
    return run(_step, start, 40, chunk=4, measure=lambda x: x[:20_000], out=out, **given)


def _to_bytes(done) -> tuple[bytes, bytes]:
    return np.asarray(done.state).tobytes(), np.asarray(done.history).tobytes()


def full_disk(at: Path) -> dict[str, bool]:
    """Check that a full disk is reported, and that a resume with space ends with the same bits."""
    whole = _to_bytes(_run_steps(None))
    with _small_disk(at, 1_500_000) as grow:
        out, said = at / "run", ""
        try:
            _run_steps(out)
        except OSError as error:
            said = str(error)
        left = list(out.glob("step-*.npz"))
        scratch = list(out.glob(".*.tmp"))
        grow()
        same = _to_bytes(_run_steps(out, resume=True)) == whole
    return {"said": bool(said), "a good one left": bool(left), "no scratch": not scratch} | {
        "same bits": same
    }


def read_only_disk(at: Path) -> dict[str, bool]:
    """Check that `run` and the command line report a read-only disk before they start."""
    with _small_disk(at, 3_000_000, writable=False):
        try:
            fail_if_traced = lambda x: (_ for _ in ()).throw(AssertionError("traced"))
            run(fail_if_traced, np.zeros(3), 5, out=at / "run")
            refused = False
        except OSError:
            refused = True
        code = main(["run", "double-pendulum", "--out", str(at / "study")])
    return {"refused": refused, "command line says so": code == 2}


def two_writers(at: Path) -> dict[str, bool]:
    """Check that one of two simultaneous writers is rejected and the other ends correctly."""
    cache, out = at / "cache", at / "both"
    join_process(fork_process(cache, run_forms.resume_form, "run", at / "whole"), 300)
    codes = []
    for _ in range(5):
        pair = [fork_process(cache, _run_writer, out) for _ in range(2)]
        for process in pair:
            process.join(120)
        codes.append(sorted(process.exitcode for process in pair))
    want, got = (dict(np.load(path.with_suffix(".npz"))) for path in (at / "whole", out))
    same = all(np.array_equal(want[name], got[name]) for name in want)
    # the second may start after the first has ended, and finds its work finished
    good = all(pair in ([0, 2], [0, 0]) for pair in codes) and [0, 2] in codes
    return {"one is refused": good, "same bits": same}


def _run_writer(out: Path) -> int:
    try:
        return run_forms.resume_form("run", out)
    except CheckpointError as error:
        return 2 if "another process uses it" in str(error) else 1


@contextlib.contextmanager
def _small_disk(at: Path, size: int, writable: bool = True) -> Iterator:
    """Make `at` a disk of this many bytes, and yield a function that enlarges it."""
    if _can_mount():
        _mount("-t", "tmpfs", "-o", f"size={size}", "none", at)
        try:
            if not writable:
                _mount("-o", "remount,ro", at)
            yield lambda: _mount("-o", "remount,size=100000000", at)
        finally:
            subprocess.run(["umount", at], check=True)
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    grow = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    if writable:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 3, hard))
    else:
        at.chmod(0o555)
    try:
        yield grow
    finally:
        grow()
        at.chmod(0o755)


def _mount(*given) -> None:
    subprocess.run(["mount", *given], check=True, capture_output=True)


def _can_mount() -> bool:
    """Return whether this process may mount a file system."""
    if os.name != "posix" or os.geteuid() or sys.platform != "linux":
        return False
    with tempfile.TemporaryDirectory() as at:
        tried = ["mount", "-t", "tmpfs", "-o", "size=4096", "none", at]
        if subprocess.run(tried, capture_output=True).returncode:
            return False
        subprocess.run(["umount", at], check=True)
    return True
