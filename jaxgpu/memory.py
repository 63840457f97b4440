"""The memory a compiled program will need, known before it is launched."""

import weakref
from typing import Any

import jax
import psutil

from jaxgpu import arguments

# by the program: XLA's analysis of a large one takes 0.1 CPU-seconds, as often as it is asked
_forecasts: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def forecast(compiled: Any) -> int:
    """Bytes that a compiled program holds at its peak: arguments + results + temporaries.

    `compiled` is what `jax.jit(f).lower(...).compile()` returns; donated buffers count once. What
    a routine takes for itself while it runs (the scratch of a sort on the CPU) is not seen.

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
        )
    return _forecasts[compiled]


def available(device: Any = None) -> int:
    """Bytes that are free on `device` (default: the first device of this process).

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
        return psutil.virtual_memory().available
    return stats["bytes_limit"] - stats["bytes_in_use"]


def check(compiled: Any, name: str) -> None:
    """Refuse to launch `compiled` where it would take more than 90 % of the free memory.

    The margin is for what the forecast cannot see: the allocator and the rest of the process.

    Raises:
        MemoryError: with both figures, before anything is allocated.

    >>> double = jax.jit(lambda x: 2 * x)
    >>> check(double.lower(jax.ShapeDtypeStruct((10,), "float32")).compile(), "double")
    """
    need, free = forecast(compiled), available()
    if need > 0.9 * free:
        raise MemoryError(
            f"{name}: needs {need / 1e9:.2f} GB, and {free / 1e9:.2f} GB are free; "
            "make the problem smaller or use a larger device"
        )
