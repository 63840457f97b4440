"""The memory a compiled program will need, known before it is launched."""

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

# by the program: XLA's analysis of a large one takes 0.1 CPU-seconds, as often as it is asked
_forecasts: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

_SORT = re.compile(r"= (.*) sort\(.*dimensions={(\d+)}")  # types of what is sorted, and the axis
_SHAPE = re.compile(r"\w+\[([\d,]*)\]")
# what the library YNNPACK computes in one call, and the steps of such a computation
_CALLED = re.compile(r"calls=%([\w.-]+), .*__ynn_fusion")
_BODY = re.compile(r"^%([\w.-]+) \(.*\{\n((?:  .*\n)+)\}", re.MULTILINE)
_INNER = re.compile(r"^  (?:ROOT )?%[\w.-]+ = (\w+)\[([\d,]*)\]\S* ([\w-]+)\(", re.MULTILINE)
_PLACED = {"parameter", "constant", "bitcast", "broadcast"}  # which have no memory of their own
_TOP = re.compile(r'custom-call\((%[\w.-]+)\), custom_call_target="TopK"')
SORTED = 16  # bytes that the CPU's sort takes for a number, of whatever type
_RANKED = 4  # and its search for the largest
_BYTES = ranges.Range(least=0, whole=True, one=True)
_LITTLE = 1 << 16  # bytes for which nobody asks
_SHARE = 0.9  # of the free memory; the rest is for what no forecast sees

# of a control group, version 2 and 1: the limit, what is in use, and in `memory.stat` the pages of
# files that the system can take back, counted with those of the groups below
_GROUPS = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def forecast(compiled: Any) -> int:
    """Bytes that a compiled program holds at its peak: arguments + results + temporaries.

    `compiled` is what `jax.jit(f).lower(...).compile()` returns; donated buffers count once. XLA
    does not count the scratch of a sort on the CPU: 16 bytes for each array and each number along
    the axis are added, for the largest sort. So much was measured for 1e7 numbers, by the peak of
    the process: 160 MB for `sort`, 640 MB for `lexsort` of three keys (four arrays), and 80 MB,
    where 320 are added, for `argsort`. `lax.top_k` takes 4 bytes for each number along the axis
    there, 80 MB for 2e7 of them, which are added too. What XLA hands to a library of the CPU's
    (YNNPACK), sums of products above all, has memory for its steps there: that of the largest step
    of one such computation is added.

    Raises:
        TypeError: `compiled` is no compiled program.

    >>> import jax.numpy as jnp
    >>> program = jax.jit(lambda x: x + 1).lower(jnp.zeros(1000, jnp.float32)).compile()
    >>> forecast(program)
    8000
    """
    if not hasattr(compiled, "memory_analysis"):
        raise TypeError(
            f"memory.forecast: compiled={arguments.shown(compiled)}; it must be a program; "
            "compile it by jax.jit(f).lower(...).compile()"
        )
    if compiled not in _forecasts:
        need = compiled.memory_analysis()
        _forecasts[compiled] = (
            need.argument_size_in_bytes
            + need.output_size_in_bytes
            + need.temp_size_in_bytes
            - need.alias_size_in_bytes
            + _scratch(compiled)
        )
    return _forecasts[compiled]


def _scratch(compiled: Any) -> int:
    """Bytes that the largest sort of a program for the CPU takes beside its arrays."""
    places = jax.tree.leaves(compiled.output_shardings)
    if not any(device.platform == "cpu" for place in places for device in place.device_set):
        return 0
    largest, text = 0, compiled.as_text() or ""
    for kinds, axis in _SORT.findall(text):
        shapes = [shape.split(",") for shape in _SHAPE.findall(kinds)]
        largest = max(largest, SORTED * sum(int(shape[int(axis)]) for shape in shapes))
    for ranked in _TOP.findall(text):
        if found := re.search(rf"{re.escape(ranked)} = \w+\[([\d,]+)\]", text):
            largest = max(largest, _RANKED * int(found[1].split(",")[-1]))
    return max(largest, _stepwise(text))


def _stepwise(text: str) -> int:
    """Bytes of the largest step of the computations of a library, but for their results.

    The library computes in tiles: of several steps that are held at a time it was seen to take
    memory for about one.
    """
    called = set(_CALLED.findall(text))
    bodies = (body for name, body in _BODY.findall(text) if name in called) if called else ()
    return max((_largest(_INNER.findall(body)) for body in bodies), default=0)


def _largest(steps: list[tuple[str, str, str]]) -> int:
    """Bytes of the largest step of a computation but for the last."""
    own = (_bytes(kind, shape) for kind, shape, what in steps[:-1] if what not in _PLACED)
    return max(own, default=0)


def _bytes(kind: str, shape: str) -> int:
    """Bytes of an array by XLA's name of its type, such as f32; none of what has no such name."""
    bits = re.fullmatch(r"pred|[a-z]+(\d+)\w*", kind)
    return (
        math.prod(map(int, filter(None, shape.split(",")))) * int(bits[1] or 8) // 8 if bits else 0
    )


def available(device: Any = None) -> int:
    """Bytes that are free on `device` (default: the first device of this process).

    On the CPU it is the least of what the machine has free, what the limits of the process's
    control group and of those above it leave (containers and batch systems set them; version 1 and
    2, pages of files that can be taken back counted as free), and what `ulimit -v` and `-d` leave.

    Raises:
        TypeError: `device` is none of `jax.local_devices()`.

    >>> available() > 10**6
    True
    """
    device = jax.local_devices()[0] if device is None else device
    if not hasattr(device, "memory_stats"):
        found = arguments.shown(device)
        raise TypeError(
            f"memory.available: device={found}; it must be a device; take one of jax.devices()"
        )
    stats = device.memory_stats()
    if stats is None:  # the CPU backend keeps no account
        return min(psutil.virtual_memory().available, *_left(Path("/")))
    return stats["bytes_limit"] - stats["bytes_in_use"]


def _left(root: Path) -> Iterator[int]:
    """Bytes that each limit of this process leaves; the system's files are read below `root`."""
    for folder, version in _groups(_text(f"{root}/proc/self/cgroup"), root):
        yield from _left_of_group(folder, version)
    if resource is not None:
        for limit, held in ((resource.RLIMIT_AS, "vms"), (resource.RLIMIT_DATA, "data")):
            most, _ = resource.getrlimit(limit)
            if most != resource.RLIM_INFINITY:
                yield max(0, most - getattr(psutil.Process().memory_info(), held, 0))


@functools.lru_cache(maxsize=8)  # building the paths took half of the time
def _groups(text: str, root: Path) -> list[tuple[str, int]]:
    """Return folder and version of each control group of a process, parents included."""
    found = []
    for line in text.splitlines():
        _, controllers, group = line.split(":", 2)
        if "memory" in controllers.split(",") or not controllers:
            version = 1 if controllers else 2
            top = root / "sys/fs/cgroup" / ("memory" if controllers else "")
            folder = top / group.strip("/")
            # a container may see its own group as the top, and its path as that of the host
            above = [up for up in folder.parents if up.is_relative_to(top)]
            found += [(str(at), version) for at in {folder, top, *above}]
    return found


def _left_of_group(folder: str, version: int) -> Iterator[int]:
    """Bytes that a control group leaves, where it has a limit."""
    limit, use, cached = _GROUPS[version]
    most = _text(f"{folder}/{limit}").strip()
    used = _text(f"{folder}/{use}").strip() if most.isdecimal() else ""
    if most.isdecimal() and used.isdecimal():
        counts = dict(line.split() for line in _text(f"{folder}/memory.stat").splitlines())
        yield max(0, int(most) - int(used) + int(counts.get(cached, 0)))


def _text(file: str) -> str:
    try:
        with open(file) as text:
            return text.read()
    except OSError:  # no such limit here
        return ""


def check(compiled: Any, name: str, held: int = 0) -> None:
    """Refuse to launch `compiled` where it would take more than 90 % of the free memory.

    The margin is for what the forecast cannot see: the allocator and the rest of the process.

    Args:
        compiled: what is to be launched.
        name: what begins the sentence.
        held: bytes of its arguments that are on the device already, and not free any more.

    Raises:
        MemoryError: with both figures, before anything is allocated.

    >>> double = jax.jit(lambda x: 2 * x)
    >>> check(double.lower(jax.ShapeDtypeStruct((10,), "float32")).compile(), "double")
    """
    room(name, max(0, forecast(compiled) - held))


def room(name: str, size: int, advice: str = "") -> None:
    """Refuse to go on where `size` bytes are more than 90 % of the free memory.

    Args:
        name: what begins the sentence: who needs them.
        size: bytes.
        advice: what to do, said in place of "make the problem smaller or use a larger device".

    Raises:
        MemoryError: with both figures.
        TypeError: a size that is no whole number, a name that is no word.

    >>> room("a map of the sky", 10**18)
    Traceback (most recent call last):
    MemoryError: a map of the sky: needs 1000000000.00 GB, and ... GB are free; make the problem...
    """
    arguments.word("memory.room: name", name)
    ranges.refuse("memory.room: size", size, _BYTES)
    if size < _LITTLE:
        return
    free = available()
    if size > _SHARE * free:
        raise MemoryError(
            f"{name}: needs {size / 1e9:.2f} GB, and {free / 1e9:.2f} GB are free; "
            f"{advice or 'make the problem smaller or use a larger device'}"
        )


def size(tree: Any) -> int:
    """Bytes of the arrays of a pytree, or of arrays of these shapes.

    >>> size({"x": jax.ShapeDtypeStruct((10, 3), "float32"), "count": 2})
    128
    """
    arguments.arrays("memory.size: tree", tree)
    leaves = [x if hasattr(x, "dtype") else np.asarray(x) for x in jax.tree.leaves(tree)]
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)
