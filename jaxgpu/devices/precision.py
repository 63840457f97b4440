"""Which precision a computation runs in, whatever the caller's global settings are."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxgpu.inputs import arguments

_MARK = "_reassociated"  # attribute of a marked function
_WIDE = {"float64", "complex128", "int64", "uint64"}

_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")

type Options = dict[str, bool | int | str | float]

# what a marked step is compiled with, by platform
_OPTIONS: dict[str, Options] = {
    # sums may be reordered and so vectorised; nan, inf, division and functions keep their meaning
    "cpu": {
        "xla_cpu_prefer_vector_width": 512,
        "xla_cpu_enable_fast_math": True,
        "xla_cpu_fast_math_honor_nans": True,
        "xla_cpu_fast_math_honor_infs": True,
        "xla_cpu_fast_math_honor_division": True,
        "xla_cpu_fast_math_honor_functions": True,
    },
    # one graph of all launches: loops and branches in it are decided on the device, where they
    # would ask the host in each turn; a driver that knows none (before CUDA 12.4) goes on as before
    "cuda": {
        "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,"
        "DYNAMIC_SLICE_FUSION,CONDITIONAL,WHILE",
    },
}


def in_float64[**P, R](f: Callable[P, R]) -> Callable[P, R]:
    """Make `f` compute with float64 enabled, and leave the global flag alone.

    Under `jax.enable_x64(True)` constants and NumPy arrays keep their 64 bits, so the result has
    the same bits whether the caller's flag is on or off, under jit, vmap and grad.

    >>> in_float64(lambda: jnp.asarray(1 / 3))().dtype
    dtype('float64')

    Raises:
        TypeError: `f` cannot be called.
    """
    arguments.function("precision.in_float64: f", f)

    @functools.wraps(f)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return f(*args, **kwargs)

    return wrapped


def smallest(dtype: Any) -> float:
    """The smallest number that guards in `dtype` may use on every device, 1e-38 or larger.

    A TPU's float64 is two float32 and has their exponents: what lies below is 0 there, and the
    reciprocal infinite.

    >>> smallest(jnp.float32) == smallest(jnp.float64) == float(jnp.finfo(jnp.float32).tiny)
    True

    Raises:
        TypeError: `dtype` is no type of floating numbers.
    """
    try:
        return max(float(jnp.finfo(kind).tiny) for kind in (dtype, jnp.float32))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"precision.smallest: dtype={arguments.shown(dtype)}; it must be a type of floating "
            "numbers; give jnp.float32 or jnp.float64"
        ) from error


def scope(tree: Any) -> contextlib.AbstractContextManager:
    """The context that keeps the 64-bit leaves of `tree` as they are; no change if it has none.

    >>> import numpy as np
    >>> with scope({"x": np.zeros(3, np.float64)}):
    ...     print(jnp.asarray(np.zeros(3)).dtype)
    float64
    """
    wide = any(leaf.dtype.name in _WIDE for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype"))
    return jax.enable_x64(True) if wide else contextlib.nullcontext()


def reassociation() -> Options:
    """Compiler options of the CPU that let sums be vectorised; empty where they cannot be had.

    They must never meet arithmetic in hi/lo pairs, which reordering destroys.

    >>> sorted(reassociation())[0]
    'xla_cpu_enable_fast_math'
    """
    return options("cpu") if platform() == "cpu" else {}


def platform() -> str:
    """Where programs run by default: "cpu", "cuda", "rocm" or "tpu"."""
    name = jax.default_backend()
    if name != "gpu":
        return name
    return "rocm" if "rocm" in jax.devices()[0].client.platform_version.lower() else "cuda"


@functools.cache
def options(where: str) -> Options:
    """Compiler options of a step marked by `reassociated`, for an outermost `jax.jit` alone.

    Probed once on the platform that programs run on: its XLA must know the options, and
    `isnan(inf * 0)` must still hold (of values known at run time; `x - x` and a literal `x * 0` may
    be folded to 0); empty where this is not so.

    Args:
        where: a platform, "cpu", "cuda", "rocm" or "tpu", or what `platform` gives; what is for
            another than this one is not probed.

    Raises:
        ValueError: a platform that is not known.

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


def reassociated[**P, R](step: Callable[P, R]) -> Callable[P, R]:
    """Mark `step` so that `jaxgpu.runs.run` compiles it with the `options` of its platform.

    On a CPU its sums may be reordered; on CUDA its loops are one graph.

    Raises:
        TypeError: `step` cannot be called.
    """
    return arguments.marked("precision.reassociated: step", step, _MARK)


def options_of(function: Any) -> Options | None:
    """Compiler options that a program around `function` is to have: those of a marked one.

    >>> options_of(reassociated(jnp.sin)) == options(platform()), options_of(jnp.sin)
    (True, None)
    """
    return options(platform()) if getattr(function, _MARK, False) else None
