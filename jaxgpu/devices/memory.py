"""Memory that a compiled program needs, estimated before it is launched."""

import functools
import math
import re
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import psutil

from jaxgpu.inputs import arguments, ranges

try:
    import resource  # not on Windows, which has no such limits
except ImportError:
    resource = None

# cached by program: XLA's analysis of a large one takes 0.1 CPU-seconds at each call
_estimates: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

_SORT = re.compile(r"= (.*) sort\(.*dimensions={(\d+)}")  # types of the sorted arrays, and the axis
_SHAPE = re.compile(r"\w+\[([\d,]*)\]")
# a call of the library YNNPACK, the computation that it runs, and the steps of that computation
_LIBRARY_CALL = re.compile(r"calls=%([\w.-]+), .*__ynn_fusion")
_COMPUTATION = re.compile(r"^%([\w.-]+) \(.*\{\n((?:  .*\n)+)\}", re.MULTILINE)
_COMPUTATION_STEP = re.compile(
    r"^  (?:ROOT )?%[\w.-]+ = (\w+)\[([\d,]*)\]\S* ([\w-]+)\(", re.MULTILINE
)
_UNALLOCATED = {
    "parameter",
    "constant",
    "bitcast",
    "broadcast",
}  # operations that allocate no memory
_TOP_K = re.compile(r'custom-call\((%[\w.-]+)\), custom_call_target="TopK"')
SORT_BYTES = 16  # scratch bytes of the CPU's sort per number, of any type
_TOP_K_BYTES = 4  # scratch bytes of the CPU's `top_k` per number
_BYTES = ranges.Range(least=0, whole=True, one=True)
_NEGLIGIBLE_BYTES = 1 << 16  # bytes; smaller requests are not checked
_USABLE_FRACTION = 0.9  # usable fraction of the free memory; the rest is a margin for unknown needs

# files of a control group, version 2 and 1: the limit, the usage, and in `memory.stat` the key of
# the reclaimable file pages, which include those of the groups below
_GROUPS = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def estimate_peak(compiled: Any) -> int:
    """Return the peak bytes of a compiled program: arguments + results + temporaries.

    `compiled` is the result of `jax.jit(f).lower(...).compile()`; donated buffers count once. On
    the CPU XLA does not count the scratch memory of a sort, so 16 bytes per array and per number
    along the axis are added for the largest sort. The measured peaks for 1e7 numbers are 160 MB for
    `sort`, 640 MB for `lexsort` of three keys (four arrays), and 80 MB, where 320 are added, for
    `argsort`. `lax.top_k` takes 4 bytes per number along the axis, 80 MB for 2e7 numbers, which are
    added too. Computations that XLA delegates to a CPU library (YNNPACK), mainly matrix products,
    allocate memory for their steps: the largest step of one such computation is added.

    Raises:
        TypeError: `compiled` is not a compiled program.

    >>> import jax.numpy as jnp
    >>> program = jax.jit(lambda x: x + 1).lower(jnp.zeros(1000, jnp.float32)).compile()
    >>> estimate_peak(program)
    8000
    """
    if not hasattr(compiled, "memory_analysis"):
        raise TypeError(
            f"memory.estimate_peak: compiled={arguments.format_value(compiled)}; it must be a "
            "program; compile it by jax.jit(f).lower(...).compile()"
        )
    if compiled not in _estimates:
        need = compiled.memory_analysis()
        _estimates[compiled] = (
            need.argument_size_in_bytes
            + need.output_size_in_bytes
            + need.temp_size_in_bytes
            - need.alias_size_in_bytes
            + _scratch_bytes(compiled)
        )
    return _estimates[compiled]


def _scratch_bytes(compiled: Any) -> int:
    """Return the scratch bytes of the largest sort or library call in a program for the CPU."""
    places = jax.tree.leaves(compiled.output_shardings)
    if not any(device.platform == "cpu" for place in places for device in place.device_set):
        return 0
    largest, text = 0, compiled.as_text() or ""
    for kinds, axis in _SORT.findall(text):
        shapes = [shape.split(",") for shape in _SHAPE.findall(kinds)]
        largest = max(largest, SORT_BYTES * sum(int(shape[int(axis)]) for shape in shapes))
    for ranked in _TOP_K.findall(text):
        if found := re.search(rf"{re.escape(ranked)} = \w+\[([\d,]+)\]", text):
            largest = max(largest, _TOP_K_BYTES * int(found[1].split(",")[-1]))
    return max(largest, _max_computation_bytes(text))


def _max_computation_bytes(text: str) -> int:
    """Return the bytes of the largest step of the library's computations, without results.

    The library computes in tiles: if several steps are alive at a time, the measured memory is
    about that of one.
    """
    called = set(_LIBRARY_CALL.findall(text))
    bodies = (body for name, body in _COMPUTATION.findall(text) if name in called) if called else ()
    return max((_max_step_bytes(_COMPUTATION_STEP.findall(body)) for body in bodies), default=0)


def _max_step_bytes(steps: list[tuple[str, str, str]]) -> int:
    """Return the bytes of the largest step of a computation except its last."""
    own = (
        _array_bytes(kind, shape) for kind, shape, what in steps[:-1] if what not in _UNALLOCATED
    )
    return max(own, default=0)


def _array_bytes(kind: str, shape: str) -> int:
    """Return the bytes of an array from XLA's name of its type, such as f32; 0 for other names."""
    bits = re.fullmatch(r"pred|[a-z]+(\d+)\w*", kind)
    return (
        math.prod(map(int, filter(None, shape.split(",")))) * int(bits[1] or 8) // 8 if bits else 0
    )


def free_bytes(device: Any = None) -> int:
    """Return the free bytes of `device` (default: the first device of this process).

    On the CPU it is the minimum of the free memory of the machine and of the remainder of each
    limit: those of the control group of this process and its parents, as set by containers and
    batch systems (version 1 and 2, reclaimable file pages count as free), and `ulimit -v` and `-d`.

    Raises:
        TypeError: `device` is not one of `jax.local_devices()`.

    >>> free_bytes() > 10**6
    True
    """
    device = jax.local_devices()[0] if device is None else device
    if not hasattr(device, "memory_stats"):
        found = arguments.format_value(device)
        raise TypeError(
            f"memory.free_bytes: device={found}; it must be a device; take one of jax.devices()"
        )
    stats = device.memory_stats()
    if stats is None:  # the CPU backend has no statistics
        return min(psutil.virtual_memory().available, *_remaining_bytes(Path("/")))
    return stats["bytes_limit"] - stats["bytes_in_use"]


def _remaining_bytes(root: Path) -> Iterator[int]:
    """Yield the remaining bytes of each limit of this process, from files below `root`."""
    for folder, version in _control_groups(_read_text(f"{root}/proc/self/cgroup"), root):
        yield from _remaining_in_group(folder, version)
    if resource is not None:
        for limit, held in ((resource.RLIMIT_AS, "vms"), (resource.RLIMIT_DATA, "data")):
            most, _ = resource.getrlimit(limit)
            if most != resource.RLIM_INFINITY:
                yield max(0, most - getattr(psutil.Process().memory_info(), held, 0))


@functools.lru_cache(maxsize=8)  # building the paths took half of the time of `free_bytes`
def _control_groups(text: str, root: Path) -> list[tuple[str, int]]:
    """Return the folder and the version of each control group of a process and its parents."""
    found = []
    for line in text.splitlines():
        _, controllers, group = line.split(":", 2)
        if "memory" in controllers.split(",") or not controllers:
            version = 1 if controllers else 2
            top = root / "sys/fs/cgroup" / ("memory" if controllers else "")
            folder = top / group.strip("/")
            # a container may see its own group as the root, but its path as on the host
            above = [up for up in folder.parents if up.is_relative_to(top)]
            found += [(str(at), version) for at in {folder, top, *above}]
    return found


def _remaining_in_group(folder: str, version: int) -> Iterator[int]:
    """Yield the remaining bytes of a control group, if it has a limit."""
    limit, use, cached = _GROUPS[version]
    most = _read_text(f"{folder}/{limit}").strip()
    used = _read_text(f"{folder}/{use}").strip() if most.isdecimal() else ""
    if most.isdecimal() and used.isdecimal():
        counts = dict(line.split() for line in _read_text(f"{folder}/memory.stat").splitlines())
        yield max(0, int(most) - int(used) + int(counts.get(cached, 0)))


def _read_text(file: str) -> str:
    try:
        with open(file) as text:
            return text.read()
    except OSError:  # this limit does not exist here
        return ""


def check(compiled: Any, name: str, held: int = 0) -> None:
    """Raise if launching `compiled` would take more than 90 % of the free memory.

    The margin covers memory that the estimate does not include: the allocator's and that of other
    parts of the process.

    Args:
        compiled: the program.
        name: what the message begins with.
        held: bytes of its arguments that are on the device already, and so not free.

    Raises:
        MemoryError: with both sizes, before anything is allocated.

    >>> double = jax.jit(lambda x: 2 * x)
    >>> check(double.lower(jax.ShapeDtypeStruct((10,), "float32")).compile(), "double")
    """
    check_size(name, max(0, estimate_peak(compiled) - held))


def check_size(name: str, size: int, advice: str = "") -> None:
    """Raise if `size` bytes are more than 90 % of the free memory.

    Args:
        name: what needs the memory; the message begins with it.
        size: bytes.
        advice: the remedy, instead of "make the problem smaller or use a larger device".

    Raises:
        MemoryError: with both sizes.
        TypeError: `size` is not an integer, or `name` is not a string.

    >>> check_size("a map of the sky", 10**18)
    Traceback (most recent call last):
    MemoryError: a map of the sky: needs 1000000000.00 GB, and ... GB are free; make the problem...
    """
    arguments.word("memory.check_size: name", name)
    ranges.refuse("memory.check_size: size", size, _BYTES)
    if size < _NEGLIGIBLE_BYTES:
        return
    free = free_bytes()
    if size > _USABLE_FRACTION * free:
        raise MemoryError(
            f"{name}: needs {size / 1e9:.2f} GB, and {free / 1e9:.2f} GB are free; "
            f"{advice or 'make the problem smaller or use a larger device'}"
        )


def size(tree: Any) -> int:
    """Return the bytes of the arrays of a pytree; its leaves may be shapes instead.

    >>> size({"x": jax.ShapeDtypeStruct((10, 3), "float32"), "count": 2})
    128
    """
    arguments.arrays("memory.size: tree", tree)
    leaves = [x if hasattr(x, "dtype") else np.asarray(x) for x in jax.tree.leaves(tree)]
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)
