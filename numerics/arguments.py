"""What a special function is given: one shape, one floating dtype, or a clear sentence."""

from math import inf

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from jaxgpu.precision import scope


def prepare(name: str, v: ArrayLike, x: ArrayLike) -> tuple[Array, Array, np.dtype]:
    """Broadcast `v` and `x` in the dtype they are computed in; the result's dtype comes third.

    Integers take the dtype of the other argument, or the default float. Half precisions are
    computed in float32. A float64 array stays float64 also where 64-bit JAX is switched off.

    >>> prepare("f", 1, jnp.float16(2))
    (Array(1., dtype=float32), Array(2., dtype=float32), dtype('float16'))
    """
    kinds = [np.dtype(getattr(a, "dtype", type(a))) for a in (v, x)]
    for letter, kind in zip("vx", kinds):
        if not (jnp.issubdtype(kind, jnp.floating) or jnp.issubdtype(kind, jnp.integer)):
            raise TypeError(
                f"{name}: {letter} is {kind}; it must be real numbers; pass floats or integers"
            )
    try:
        shape = np.broadcast_shapes(np.shape(v), np.shape(x))
    except ValueError:
        raise ValueError(
            f"{name}: v has shape {np.shape(v)}, x has shape {np.shape(x)}; the shapes must "
            "broadcast; insert axes of length 1 where they differ"
        ) from None
    floats = [a for a, kind in zip((v, x), kinds) if jnp.issubdtype(kind, jnp.floating)]
    with scope(floats):
        result = jnp.result_type(*floats, float)
        work = result if jnp.finfo(result).bits >= 32 else np.dtype(np.float32)
        v, x = (jnp.broadcast_to(jnp.asarray(a, work), shape) for a in (v, x))
    return v, x, result


def least(v: ArrayLike) -> float:
    """The least of `v` where that can be seen when tracing, else minus infinity."""
    if not isinstance(v, int | float | np.ndarray | np.generic) or not np.size(v):
        return -inf
    low = float(np.min(v))
    return low if low == low else -inf
