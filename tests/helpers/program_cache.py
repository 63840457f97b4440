"""A compilation cache for the tests, stored between runs in the user's cache folder.

The folder is named after the versions, the processor and the XLA flags, so that no process loads a
program that was compiled for another machine. `JAXGPU_TEST_CACHE` names another folder; an empty
value disables the cache.
"""

import hashlib
import os
import platform
import shutil
from pathlib import Path

import jax
import jaxlib

BOUND = 4 << 30  # bytes; a complete run of the tests writes less than half of it


def processor() -> str:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _processor_features() -> str:
    """Return the features of the processor, as Linux lists them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def folder() -> Path | None:
    """Return the cache folder of this machine, or None if the cache is disabled."""
    chosen = os.environ.get("JAXGPU_TEST_CACHE")
    if chosen == "":
        return None
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    root = Path(chosen) if chosen else Path(caches, "jaxgpu", "tests")
    facts = jax.__version__, jaxlib.__version__, processor(), _processor_features()
    key = hashlib.sha256(repr((*facts, os.environ.get("XLA_FLAGS", ""))).encode())
    return root / key.hexdigest()[:16]


def enable() -> None:
    """Let this process and its children read and write the cache."""
    path = folder()
    if path is None:
        return
    path.mkdir(parents=True, exist_ok=True)
    settings = {
        "jax_compilation_cache_dir": str(path),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    for name, value in settings.items():
        os.environ[name.upper()] = str(value)
        jax.config.update(name, value)


def trim(bound: int = BOUND) -> None:
    """Delete folders of other machines and versions, then the oldest programs over the bound."""
    path = folder()
    if path is None or not path.exists():
        return
    for other in path.parent.iterdir():
        if other != path:
            shutil.rmtree(other, ignore_errors=True)
    stats = [(file, file.stat()) for file in path.iterdir()]
    stats.sort(key=lambda pair: max(pair[1].st_atime, pair[1].st_mtime))
    total = sum(stat.st_size for _, stat in stats)
    for file, stat in stats:
        if total <= bound:
            break
        file.unlink(missing_ok=True)
        total -= stat.st_size
