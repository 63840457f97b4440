"""Strict JAX for every test: shapes never promote in silence, and neither do dtypes."""

import collections
import re
import sys
from pathlib import Path, PurePosixPath

import jax
import pytest

# from the repository root a bare `import physics` would make a second copy of every class
for _name in ("physics", "numerics", "rl"):
    sys.modules[_name] = None

# robots that share their class with `hopper` and `reacher`, and take a quarter to half a minute
# to compile: every rule holds them before a release, their steps beside gymnasium's the pusher and
# the ant in the long tests too
OF_A_RELEASE = re.compile(
    r"\[(rl\.)?(half-cheetah|walker2d|swimmer|ant|pusher|humanoid|inverted-double-pendulum)\b"
)

_LISTED = Path(__file__).with_name("release.txt").read_text().splitlines()
LISTED = re.compile(
    "|".join(re.escape(x).replace(r"\*", ".*") for x in _LISTED if x and not x.startswith("#"))
)

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_legacy_prng_key", "error")
jax.config.update("jax_num_cpu_devices", 8)


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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave to a release what holds big robots, and what `release.txt` lists."""
    for item in items:
        if item.get_closest_marker("slow") and LISTED.fullmatch(item.nodeid):
            item.add_marker(pytest.mark.release)
        in_turn = item.name.startswith("test_random_steps") and item.name[-5:] in ("[ant]", "sher]")
        if item.get_closest_marker("slow") and OF_A_RELEASE.search(item.name) and not in_turn:
            item.add_marker(pytest.mark.release)


def pytest_terminal_summary(terminalreporter):
    """Print what each part of the tests took: new tests pay for their seconds."""
    seconds, tests = collections.Counter(), collections.Counter()
    for report in [r for group in terminalreporter.stats.values() for r in group]:
        if hasattr(report, "duration") and hasattr(report, "when"):
            folders = PurePosixPath(report.nodeid.partition("::")[0]).parts[1:-1]
            part = "/".join(folders[:2] if folders[:1] == ("physics",) else folders[:1])
            seconds[part] += report.duration
            tests[part] += report.when == "call"
    terminalreporter.section("seconds")
    for part, spent in seconds.most_common():
        terminalreporter.write_line(f"{part:20s} {spent:8.1f} s {tests[part]:6d} tests")
