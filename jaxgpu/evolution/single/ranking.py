"""Shared parts of the single-objective algorithms: first mean, weights by rank, best candidate.

Nothing here uses differences of objectives. So an increasing transformation of f gives the same
run, an offset cannot hide the last digits in float32, and an infinite or failed value is merely the
last rank. Feasible candidates precede infeasible ones, and of two infeasible ones the less
violating precedes.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree

from .. import protocol
from ..pareto.order import first_copies, lexsort, sort_keys
from ..problem import Box, Problem


@pytree
class Best:
    """The best candidate evaluated so far; infinite before the first evaluation."""

    x: Array  # [D] decision vector
    f: Array  # [] objective
    violation: Array  # [] total constraint violation


def init_best(problem: Problem) -> Best:
    """Return the `Best` before the first evaluation."""
    far = jnp.full((), jnp.inf, problem.box.lower.dtype)
    return Best(jnp.zeros_like(problem.box.lower), far, far)


def check_single(spec: Any, key: Array, problem: Problem) -> Problem:
    """Return the problem as arrays, after checking it and the spec; it must have one objective."""
    problem = protocol.check_inputs("init", spec, key, problem)
    if problem.objectives != 1:
        raise ValueError(
            f"{type(spec).__name__}: the problem has {problem.objectives} objectives; it must have "
            "1; for more use an algorithm of `multi`"
        )
    return problem


def sample_center(key: Array, box: Box, share: Array | float = 0.8) -> Array:
    """Sample a point [D] uniformly from the box shrunk by `share` about its center."""
    u = jax.random.uniform(key, box.lower.shape, box.lower.dtype) - 0.5
    return (box.lower + box.upper) / 2 + share * u * (box.upper - box.lower)


def width(box: Box) -> Array:
    """Return the length of each side [D]; 1 where it is 0."""
    return jnp.where(box.upper > box.lower, box.upper - box.lower, 1)


def order(f: Array, violation: Array) -> tuple[Array, Array]:
    """Return candidates from best to worst, and a mask that is False for repeats in this order.

    Args:
        f: [N, 1] objective; NaN comes last.
        violation: [N] total constraint violation.
    Returns:
        Indices [N] int32, and [N] bool.
    """
    keys = sort_keys(jnp.stack([violation, f[:, 0]], axis=1))
    best = lexsort(keys)
    return best, first_copies(keys[best])


def utilities(f: Array, violation: Array, weights: Array) -> Array:
    """Return the weight of each candidate from the weights of ranks; equal candidates get the mean.

    Sharing matters on plateaus: if all values are equal, no direction is preferred.

    >>> f = jnp.array([[7.0], [3.0], [9.0], [3.0]])
    >>> print(utilities(f, jnp.zeros(4), jnp.array([3.0, 1.0, 0.5, -1.0])))
    [ 0.5  2.  -1.   2. ]
    """
    best, new = order(f, violation)
    group = jnp.cumsum(new, dtype=jnp.int32) - 1
    total = jnp.zeros_like(weights).at[group].add(weights, indices_are_sorted=True)
    count = jnp.zeros_like(weights).at[group].add(1, indices_are_sorted=True)
    share = (total / jnp.maximum(count, 1))[group]
    return jnp.zeros_like(weights).at[best].set(share, unique_indices=True)


def update_best(best: Best, x: Array, f: Array, violation: Array) -> Best:
    """Return the better of the previous best and the best of the candidates x [N, D]."""
    first = order(f, violation)[0][0]
    new = Best(x[first], f[first, 0], violation[first])
    wins = (new.violation < best.violation) | ((new.violation == best.violation) & (new.f < best.f))
    return jax.tree.map(lambda new, old: jnp.where(wins, new, old), new, best)
