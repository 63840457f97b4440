"""A copy of the tree that can contain a fault, and tests that run in it, each in a fork.

The process that forks has imported JAX and the libraries of the tests, but nothing of the package
and no backend. A fork imports the changed package and runs its tests without JAX's import time.
"""

import importlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

LIBRARIES = """jax jax.numpy jax.experimental.pallas jax.scipy.special flax.linen optax scipy.stats
scipy.optimize numpy.testing pytest mpmath nbformat nbclient""".split()


@dataclass(frozen=True)
class Outcome:
    """Result of tests: `passed`, `failed`, `ended by a signal`, `out of time` or `no test`."""

    how: str
    by: str  # the first test that failed
    seconds: float


class Sandbox:
    """A copy of the files below `root` that git tracks or would track, in the folder `at`."""

    def __init__(self, root: Path, at: Path):
        self.at = at
        self.known: dict[str, bool] = {}
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
        for name in listed.stdout.splitlines():
            if (source := root / name).is_symlink() or source.exists():
                (at / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, at / name, follow_symlinks=False)
        for library in LIBRARIES:
            importlib.import_module(library)

    def write(self, file: str, source: bytes, stamp: int) -> None:
        """Write other text into a file; a new time stamp invalidates its compiled form."""
        (self.at / file).write_bytes(source)
        os.utime(self.at / file, (stamp, stamp))

    def test(
        self, chosen: list[str], seconds: int, marks: str, entries: list[str] | None = None
    ) -> Outcome:
        """Run files or single tests until one fails, for at most `seconds` of CPU time.

        Only tests with the marks run; of parametrised tests only those whose names match one of the
        patterns `entries`, if given.
        """
        report = self.at / "outcome.json"
        report.unlink(missing_ok=True)
        began = time.perf_counter()
        child = os.fork()
        if not child:
            self._child(chosen, seconds, marks, entries, report)
        status = _wait_status(child, 4 * seconds)
        spent = time.perf_counter() - began
        failed = json.loads(report.read_text()) if report.exists() else []
        by = failed[0] if failed else ""
        if status is None or os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
            return Outcome("out of time", by, spent)
        if os.WIFSIGNALED(status):
            return Outcome("ended by a signal", str(os.WTERMSIG(status)), spent)
        how = {0: "passed", 5: "no test"}.get(os.WEXITSTATUS(status), "failed")
        return Outcome(how, by, spent)

    def passes(self, chosen: list[str], seconds: int, marks: str) -> bool:
        """Return whether tests pass in the current copy; the answer is cached.

        A test that also fails, or is as slow, without a fault has not detected it.
        """
        if (name := " ".join([marks, *chosen])) not in self.known:
            self.known[name] = self.test(chosen, seconds, marks).how == "passed"
        return self.known[name]

    def _child(self, chosen, seconds, marks, entries, report):
        """Run the tests and exit, so that they leave nothing behind in the process that forks."""
        code = 70
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
            _redirect_output(self.at / "output.txt")
            _import_from(self.at)
            import pytest

            given = ["-q", "-x", "-p", "no:cacheprovider", "--rootdir", str(self.at)]
            given += ["-m", marks, "-W", "ignore::pytest.PytestAssertRewriteWarning"]
            code = int(pytest.main([*given, *chosen], plugins=[_FailureRecorder(report, entries)]))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


class _FailureRecorder:
    """Pytest plugin that selects tests by name and writes the failed ones to a file."""

    def __init__(self, report: Path, entries: list[str] | None):
        self.report = report
        self.entries = entries
        self.names: list[str] = []

    def pytest_collection_modifyitems(self, items):
        if self.entries is not None:
            named = re.compile("|".join(self.entries) or "$^")
            items[:] = [i for i in items if hasattr(i, "callspec") and named.search(i.callspec.id)]

    def pytest_runtest_logreport(self, report):
        self._note(report)

    def pytest_collectreport(self, report):
        self._note(report)

    def _note(self, report):
        if report.failed:
            self.names.append(report.nodeid)
            self.report.write_text(json.dumps(self.names))


def _redirect_output(file: Path) -> None:
    out = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)


def _import_from(root: Path) -> None:
    """Make a process find the package and the tests only below `root`."""
    os.chdir(root)
    os.environ["PYTHONPATH"] = str(root)
    ours = str(Path(__file__).parents[2])
    sys.path[:] = [str(root), *(p for p in sys.path if p not in ("", ours, os.path.realpath(ours)))]
    tops = ("tests", "jaxgpu")
    for name in [name for name in sys.modules if name.partition(".")[0] in tops]:
        del sys.modules[name]


def _wait_status(child: int, seconds: float) -> int | None:
    """Return the status of a process that ends in time, or kill its group and return None."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
