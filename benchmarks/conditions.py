"""Conditions of a measurement that a row of the results states in addition to the environment."""

import functools
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

# packages of the contenders
PEERS = (
    "brax",
    "evosax",
    "gymnasium",
    "gymnax",
    "logbesselk",
    "moocore",
    "mujoco",
    "mujoco-mjx",
    "pymoo",
    "rebound",
    "scipy",
    "taichi",
    "tfp-nightly",
    "warp-lang",
)
_ROOT = Path(__file__).parents[1]


def describe() -> dict[str, object]:
    """Return commit, processor, cores, and versions of the installed peers."""
    versions = {name: _version(name) for name in PEERS}
    return {
        "commit": _commit(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "peers": {name: version for name, version in versions.items() if version},
    }


@functools.cache
def _commit() -> str:
    """Return the commit that is checked out, with a + if a source differs from it."""
    git = lambda *args: subprocess.run(
        ["git", *args], cwd=_ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    changed = git("status", "--porcelain", "--untracked-files=no", "--", "*.py", "*.c")
    return git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")


def _processor() -> str:
    """Return the processor's name from Linux, or else from Python."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
