"""What is optimised: a box of decision vectors and a function of one of them."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import pytree, static


@pytree
class Box:
    """Bounds of the decision vectors, in their own units; leaves, so that they can be mapped."""

    lower: Array  # [D]
    upper: Array  # [D]


@pytree
class Problem:
    """A function to be minimised over a box.

    `function` maps one decision vector [D] to its objectives [m], or to a pair of them and the
    total constraint violation, a scalar that is at most 0 where all constraints hold.
    """

    box: Box
    function: Callable[[Array], Any] = static()
    objectives: int = static(default=1)  # m


def box(lower: float, upper: float, count: int, dtype: Any = None) -> Box:
    """The same bounds for `count` variables, in the default float type.

    >>> box(0.0, 1.0, 3).upper.shape
    (3,)
    """
    dtype = jnp.zeros(0).dtype if dtype is None else dtype
    return Box(jnp.full(count, lower, dtype), jnp.full(count, upper, dtype))


def evaluate(problem: Problem, x: Array) -> tuple[Array, Array]:
    """Objectives and violations of many decision vectors. [N, D] -> [N, m], [N].

    A failed evaluation (a NaN objective or violation) is infinitely bad and infinitely
    violating: it never wins, and no NaN gets into a population.

    >>> sphere = Problem(box(-1.0, 1.0, 2), lambda x: jnp.sum(x * x, keepdims=True))
    >>> print(evaluate(sphere, jnp.array([[1.0, 1.0], [jnp.nan, 0.0]]))[0].ravel())
    [ 2. inf]
    """
    out = jax.vmap(problem.function)(x)
    f, violation = out if isinstance(out, tuple) else (out, jnp.zeros(x.shape[0], x.dtype))
    f = f[:, None] if f.ndim == 1 else f
    if f.shape[1] != problem.objectives:
        raise ValueError(
            f"evaluate: the function returns {f.shape[1]} objectives; the problem says "
            f"{problem.objectives}"
        )
    broken = jnp.any(jnp.isnan(f), axis=1) | jnp.isnan(violation)
    violation = jnp.where(broken, jnp.inf, jnp.maximum(violation, 0))
    return jnp.where(broken[:, None], jnp.inf, f).astype(x.dtype), violation.astype(x.dtype)
