"""Hardware and software of this host: versions, devices, processor and compiler flags."""

import functools
import os
import platform
from importlib import metadata
from pathlib import Path

import jax

import jaxgpu

_FLAG_VARIABLES = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
# flags that set the number of devices and threads, and the paths of files
_IGNORED_FLAGS = ("--xla_force_host_platform", "--xla_cpu_multi_thread", "--xla_dump", "--xla_log")
# instruction sets for which XLA compiles different programs, the largest first
_INSTRUCTION_SETS = {"AVX512": "avx512f", "AVX2": "avx2", "AVX": "avx", "SSE4.2": "sse4_2"}


def describe() -> dict[str, str]:
    """Return versions, device, processor, instruction set, cores and compiler flags.

    >>> describe()["jax"] == jax.__version__
    True
    """
    device = jax.devices()[0]
    return {
        "jaxgpu": jaxgpu.__version__,
        "jax": jax.__version__,
        "jaxlib": metadata.version("jaxlib"),
        "python": platform.python_version(),
        "device": f"{device.device_kind} ({device.platform})",
        "processor": processor(),
        "instructions": _instruction_set(),
        "cores": str(cores()),
        "compiler flags": " ".join(compiler_flags()) or "none",
    }


def compiler_flags() -> list[str]:
    """Return the sorted flags of XLA, except flags of devices, threads and files.

    >>> isinstance(compiler_flags(), list)
    True
    """
    given = " ".join(os.environ.get(name, "") for name in _FLAG_VARIABLES).split()
    return sorted(flag for flag in given if not flag.startswith(_IGNORED_FLAGS))


def cores() -> int:
    """Return the number of processor cores that this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """Return the name of the host's processor.

    >>> processor() != ""
    True
    """
    return _processor_facts().get("model name", platform.processor() or platform.machine())


def _instruction_set() -> str:
    has = _processor_facts().get("flags", "").split()
    return next(
        (level for level, flag in _INSTRUCTION_SETS.items() if flag in has), platform.machine()
    )


@functools.cache
def _processor_facts() -> dict[str, str]:
    """Return the fields of the first processor in `/proc/cpuinfo`."""
    listed = Path("/proc/cpuinfo")
    lines = listed.read_text().splitlines() if listed.exists() else []
    rows = [line.partition(":") for line in reversed(lines)]
    return {name.strip(): value.strip() for name, _, value in rows}
