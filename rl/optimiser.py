"""Adam with a bound on the gradient's norm: Kingma & Ba (2015), arXiv:1412.6980, by optax."""

from typing import Any

import jax
import optax
from jax import Array


def init(params: Any) -> Any:
    """The optimiser's memory before the first step."""
    return _adam(1.0).init(params)


def descend(
    params: Any, memory: Any, slope: Any, rate: Array | float, max_norm: Array | float
) -> tuple[Any, Any]:
    """Parameters and memory after one step down `slope`, which is first cut to `max_norm`.

    >>> params, _ = descend(3.0, init(jax.numpy.float32(3.0)), jax.numpy.float32(7.0), 0.5, 1.0)
    >>> round(float(params), 4)
    2.5
    """
    with jax.numpy_dtype_promotion("standard"):  # optax raises floats to whole-number powers
        step, memory = _adam(max_norm).update(slope, memory)
    return jax.tree.map(lambda p, s: p - rate * s, params, step), memory


def _adam(max_norm: Array | float) -> optax.GradientTransformation:
    bound: Any = max_norm
    return optax.chain(optax.clip_by_global_norm(bound), optax.scale_by_adam(eps=1e-5))
