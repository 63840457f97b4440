"""Strict JAX for every test: shapes never promote in silence, and neither do dtypes."""

import collections
import os
import re
import sys
from pathlib import Path, PurePosixPath

import jax
import program_cache
import pytest

# from the repository root a bare `import physics` would make a second copy of every class
for _name in ("physics", "numerics", "rl"):
    sys.modules[_name] = None

# a test that took longer is not run by `make test`, and one that took longer still is left to
# `make release`, unless `make_test.txt` or `every_change.txt` names it
SHORT, LONG = 2.0, 7.0


def listed(name):
    """The lines of a file beside this one without its comments."""
    lines = Path(__file__).with_name(name).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


SECONDS = {name: float(t) for t, name in (x.split(" ", 1) for x in listed("seconds.txt"))}
EVERY_CHANGE, MAKE_TEST = (
    re.compile("|".join(re.escape(x).replace(r"\*", ".*") for x in listed(name)))
    for name in ("every_change.txt", "make_test.txt")
)

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_legacy_prng_key", "error")
jax.config.update("jax_num_cpu_devices", 8)
program_cache.use()


def cpu_seconds():
    """Return the CPU seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Note the CPU seconds of each phase: they hardly depend on what else the machine does."""
    report = yield
    now = cpu_seconds()
    report.cpu_seconds = now - item.config.stash.get(_MARK, now)
    item.config.stash[_MARK] = now
    return report


_MARK = pytest.StashKey[float]()


def pytest_sessionfinish(session):
    if not hasattr(session.config, "workerinput"):
        program_cache.trim()


@pytest.fixture
def x64():
    """Run a test with float64 as the default dtype."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True, scope="module")
def few_programs():
    """Drop what JAX has compiled before a process has more pieces of memory than it may have.

    Every program takes a few maps; Linux allows 65,530, and ends the process that asks for more.
    """
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > 25_000:
        jax.clear_caches()


def pytest_addoption(parser):
    parser.addoption("--seconds", action="store_true", help="write what long tests took")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark as slow, and leave to a release, what took long when it was measured."""
    for item in items:
        took = SECONDS.get(item.nodeid, 0.0)
        if MAKE_TEST.fullmatch(item.nodeid):
            item.own_markers = [mark for mark in item.own_markers if mark.name != "slow"]
            continue
        if took > SHORT:
            item.add_marker(pytest.mark.slow)
        if took > LONG and not EVERY_CHANGE.fullmatch(item.nodeid):
            item.add_marker(pytest.mark.release)


def pytest_terminal_summary(terminalreporter, config):
    """Print what each part of the tests took: new tests pay for their seconds."""
    parts, tests, names = collections.Counter(), collections.Counter(), collections.Counter()
    for report in [r for group in terminalreporter.stats.values() for r in group]:
        if hasattr(report, "cpu_seconds") and hasattr(report, "when"):
            folders = PurePosixPath(report.nodeid.partition("::")[0]).parts[1:-1]
            part = "/".join(folders[:2] if folders[:1] == ("physics",) else folders[:1])
            parts[part] += report.cpu_seconds
            tests[part] += report.when == "call"
            names[report.nodeid] += report.cpu_seconds
    terminalreporter.section(f"CPU seconds on {program_cache.processor()}")
    for part, spent in parts.most_common():
        terminalreporter.write_line(f"{part:20s} {spent:8.1f} s {tests[part]:6d} tests")
    if config.option.seconds:
        write_seconds(names)


def write_seconds(measured):
    """Renew the lines of the table whose tests were run; the others keep theirs."""
    long = {name: t for name, t in (SECONDS | measured).items() if t > SHORT}
    table = Path(__file__).with_name("seconds.txt")
    head = [line for line in table.read_text().splitlines() if line.startswith("#")]
    lines = [f"{t:.1f} {name}" for name, t in sorted(long.items())]
    table.write_text("\n".join([*head, *lines]) + "\n")
