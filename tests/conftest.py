"""Settings of JAX for every test: no rank or dtype promotes implicitly."""

import collections
import gc
import itertools
import os
import sys
from pathlib import Path, PurePosixPath

import jax
import program_cache
import pytest

# From the repository root, a bare `import physics` would create a second copy of every class.
for _name in ("physics", "numerics", "rl"):
    sys.modules[_name] = None

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_legacy_prng_key", "error")
jax.config.update("jax_num_cpu_devices", 8)
program_cache.enable()
# Collecting the long-lived objects of programs took a tenth of the time.
gc.set_threshold(100_000, 20, 100)


def cpu_seconds():
    """Return the CPU seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Record the CPU seconds of each phase, which hardly depend on other load of the machine."""
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


@pytest.fixture(autouse=True)
def few_programs():
    """Clear JAX's caches before the process reaches its limit of memory maps.

    Every program takes a few maps. Linux allows 65,530 and ends a process that requests more.
    """
    yield
    maps = Path("/proc/self/maps")
    if next(_TESTS) % 8 == 0 and maps.exists() and maps.read_bytes().count(b"\n") > 20_000:
        jax.clear_caches()


_TESTS = itertools.count()  # counting the maps takes milliseconds


def pytest_terminal_summary(terminalreporter):
    """Print the CPU seconds of each part of the tests, so that the cost of new tests is visible."""
    parts, tests = collections.Counter(), collections.Counter()
    for report in [r for group in terminalreporter.stats.values() for r in group]:
        if hasattr(report, "cpu_seconds") and hasattr(report, "when"):
            folders = PurePosixPath(report.nodeid.partition("::")[0]).parts[1:-1]
            part = "/".join(folders[:2] if folders[:1] == ("physics",) else folders[:1])
            parts[part] += report.cpu_seconds
            tests[part] += report.when == "call"
    terminalreporter.section(f"CPU seconds on {program_cache.processor()}")
    for part, spent in parts.most_common():
        terminalreporter.write_line(f"{part:20s} {spent:8.1f} s {tests[part]:6d} tests")
