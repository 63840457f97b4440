"""Precision of a computation, independent of the caller's global settings."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxgpu.inputs import arguments

_MARK = "_reassociated"  # attribute of a marked function
_WIDE_DTYPES = {"float64", "complex128", "int64", "uint64"}

_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")

type Options = dict[str, bool | int | str | float]

# compiler options of a marked step, by platform
_OPTIONS: dict[str, Options] = {
    # sums may be reordered and thus vectorised; nan, inf, division and functions stay exact
    "cpu": {
        "xla_cpu_prefer_vector_width": 512,
        "xla_cpu_enable_fast_math": True,
        "xla_cpu_fast_math_honor_nans": True,
        "xla_cpu_fast_math_honor_infs": True,
        "xla_cpu_fast_math_honor_division": True,
        "xla_cpu_fast_math_honor_functions": True,
    },
    # one CUDA graph of all launches: its loops and branches are decided on the device, without a
    # host synchronisation per iteration; drivers without them (before CUDA 12.4) run as before
    "cuda": {
        "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,"
        "DYNAMIC_SLICE_FUSION,CONDITIONAL,WHILE",
    },
}


def with_float64[**P, R](f: Callable[P, R]) -> Callable[P, R]:
    """Make `f` compute with float64 enabled, without changing the global flag.

    Under `jax.enable_x64(True)` constants and NumPy arrays keep their 64 bits, so the result is
    bitwise identical whether the caller's flag is on or off, under jit, vmap and grad.

    >>> with_float64(lambda: jnp.asarray(1 / 3))().dtype
    dtype('float64')

    Raises:
        TypeError: `f` is not callable.
    """
    arguments.function("precision.with_float64: f", f)

    @functools.wraps(f)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return f(*args, **kwargs)

    return wrapped


def safe_tiny(dtype: Any) -> float:
    """Return the smallest positive number safe in guards of `dtype` on every device, >= 1e-38.

    On a TPU a float64 is a pair of float32 with their exponents: a smaller number is 0 there, and
    its reciprocal infinite.

    >>> safe_tiny(jnp.float32) == safe_tiny(jnp.float64) == float(jnp.finfo(jnp.float32).tiny)
    True

    Raises:
        TypeError: `dtype` is not a floating-point type.
    """
    try:
        return max(float(jnp.finfo(kind).tiny) for kind in (dtype, jnp.float32))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"precision.safe_tiny: dtype={arguments.format_value(dtype)}; it must be a "
            "floating-point type; give jnp.float32 or jnp.float64"
        ) from error


def scope(tree: Any) -> contextlib.AbstractContextManager:
    """Return a context that preserves the 64-bit leaves of `tree`; no change if it has none.

    >>> import numpy as np
    >>> with scope({"x": np.zeros(3, np.float64)}):
    ...     print(jnp.asarray(np.zeros(3)).dtype)
    float64
    """
    wide = any(
        leaf.dtype.name in _WIDE_DTYPES for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype")
    )
    return jax.enable_x64(True) if wide else contextlib.nullcontext()


def reassociation() -> Options:
    """Return the CPU options that let sums be vectorised; empty if they are unavailable.

    Never use them with compensated arithmetic in hi/lo pairs, which reordering destroys.

    >>> sorted(reassociation())[0]
    'xla_cpu_enable_fast_math'
    """
    return options("cpu") if platform() == "cpu" else {}


def platform() -> str:
    """Return the default platform of programs: "cpu", "cuda", "rocm" or "tpu"."""
    name = jax.default_backend()
    if name != "gpu":
        return name
    return "rocm" if "rocm" in jax.devices()[0].client.platform_version.lower() else "cuda"


@functools.cache
def options(where: str) -> Options:
    """Return compiler options for the `jax.jit` around a step marked by `allow_reassociation`.

    They are tested once on the default platform: its XLA must know the options, and `isnan(inf *
    0)` must still hold (for values known at run time; `x - x` and a literal `x * 0` may be folded
    to 0). If not, the result is empty.

    Args:
        where: a platform, "cpu", "cuda", "rocm" or "tpu", or the result of `platform`; options of
            another platform than the default are not tested.

    Raises:
        ValueError: an unknown platform.

    >>> sorted(options("cuda")), options("tpu")
    (['xla_gpu_enable_command_buffer'], {})
    """
    if where not in _PLATFORMS and where != platform():
        raise ValueError(f"precision.options: where={where!r}; it must be {', '.join(_PLATFORMS)}")
    wanted = _OPTIONS.get(where, {})
    if not wanted or where != platform():
        return wanted
    probe = jax.jit(lambda x, y: jnp.isnan(x * y), compiler_options=wanted)
    try:
        return wanted if probe(jnp.float32(jnp.inf), jnp.float32(0)) else {}
    except (ValueError, jax.errors.JaxRuntimeError):
        return {}


def allow_reassociation[**P, R](step: Callable[P, R]) -> Callable[P, R]:
    """Mark `step` so that `run` may compile it with faster options that change its rounding.

    On a CPU its sums may be reordered; on CUDA its loops become one graph.

    Raises:
        TypeError: `step` is not callable.
    """
    return arguments.mark_step("precision.allow_reassociation: step", step, _MARK)


def options_of(function: Any) -> Options | None:
    """Return the compiler options for a program around `function`; None if it is not marked.

    >>> options_of(allow_reassociation(jnp.sin)) == options(platform()), options_of(jnp.sin)
    (True, None)
    """
    return options(platform()) if getattr(function, _MARK, False) else None
