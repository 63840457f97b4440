"""Which precision a computation runs in, whatever the caller's global settings are."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxgpu import arguments

_MARK = "_reassociated"  # attribute of a marked function
_WIDE = {"float64", "complex128", "int64", "uint64"}

# sums may be reordered and so vectorised; nan, inf, division and functions keep their meaning
_REASSOCIATION: dict[str, bool | int | str | float] = {
    "xla_cpu_prefer_vector_width": 512,
    "xla_cpu_enable_fast_math": True,
    "xla_cpu_fast_math_honor_nans": True,
    "xla_cpu_fast_math_honor_infs": True,
    "xla_cpu_fast_math_honor_division": True,
    "xla_cpu_fast_math_honor_functions": True,
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
    """
    return max(float(jnp.finfo(kind).tiny) for kind in (dtype, jnp.float32))


def scope(tree: Any) -> contextlib.AbstractContextManager:
    """The context that keeps the 64-bit leaves of `tree` as they are; no change if it has none."""
    wide = any(leaf.dtype.name in _WIDE for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype"))
    return jax.enable_x64(True) if wide else contextlib.nullcontext()


@functools.cache
def reassociation() -> dict[str, bool | int | str | float]:
    """Compiler options of the CPU that let sums be vectorised; empty where they cannot be had.

    Probed once: the options must be known to this XLA, and `isnan(inf * 0)` must still hold (of
    values known at run time; `x - x` and a literal `x * 0` may be folded to 0). They are accepted
    by an outermost `jax.jit` only, and must never meet arithmetic in hi/lo pairs, which reordering
    destroys.
    """
    if jax.default_backend() != "cpu":
        return {}
    probe = jax.jit(lambda x, y: jnp.isnan(x * y), compiler_options=_REASSOCIATION)
    try:
        return _REASSOCIATION if probe(jnp.float32(jnp.inf), jnp.float32(0)) else {}
    except (ValueError, jax.errors.JaxRuntimeError):
        return {}


def reassociated[**P, R](step: Callable[P, R]) -> Callable[P, R]:
    """Mark `step` so that `jaxgpu.run.run` compiles it with the options of `reassociation`.

    Raises:
        TypeError: `step` cannot be called.
    """
    arguments.function("precision.reassociated: step", step)

    @functools.wraps(step)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        return step(*args, **kwargs)

    vars(wrapped)[_MARK] = True
    return wrapped


def options_of(function: Any) -> dict[str, bool | int | str | float] | None:
    """Compiler options that a program around `function` is to have: those of a marked one.

    >>> options_of(reassociated(jnp.sin)) == reassociation(), options_of(jnp.sin)
    (True, None)
    """
    return reassociation() if getattr(function, _MARK, False) else None
