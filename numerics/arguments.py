"""What a special function is given: one shape, one floating dtype, or a clear sentence."""

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
    floats, shapes = [], []
    for letter, a in (("v", v), ("x", x)):
        kind = np.dtype(getattr(a, "dtype", type(a)))
        if not (jnp.issubdtype(kind, jnp.floating) or jnp.issubdtype(kind, jnp.integer)):
            raise TypeError(
                f"{name}: {letter} is {kind}; it must be real numbers; pass floats or integers"
            )
        shapes.append(np.shape(a))
        if jnp.issubdtype(kind, jnp.floating):
            floats.append(a)
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            f"{name}: v has shape {shapes[0]}, x has shape {shapes[1]}; the shapes must "
            "broadcast; insert axes of length 1 where they differ"
        ) from None
    with scope(floats):
        result = jnp.result_type(*floats, float)
        work = result if jnp.finfo(result).bits >= 32 else np.dtype(np.float32)
        v, x = (jnp.broadcast_to(jnp.asarray(a, work), shape) for a in (v, x))
    return v, x, result


def known_at_least(v: ArrayLike, bound: float) -> bool:
    """Whether all of `v` can be seen, when tracing, to be at least `bound`."""
    return isinstance(v, int | float | np.ndarray | np.generic) and bool(np.all(v >= bound))
