"""What the single-objective algorithms share: where they start, weights by rank, the best so far.

Nothing here looks at differences of objectives, so any increasing function of f gives the same
run, an offset cannot drown the last digits in float32, and an infinite or failed value is only
the last of the ranks. Feasible candidates come before infeasible ones, and of two of those the
less violating comes first.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree

from .. import protocol
from ..pareto.order import first_copies, lexsort, sortable
from ..problem import Box, Problem


@pytree
class Best:
    """The best candidate that has been evaluated; infinite before the first."""

    x: Array  # [D]
    f: Array  # [] objective
    violation: Array  # []


def unevaluated(problem: Problem) -> Best:
    """Before the first evaluation."""
    far = jnp.full((), jnp.inf, problem.box.lower.dtype)
    return Best(jnp.zeros_like(problem.box.lower), far, far)


def checked(spec: Any, key: Array, problem: Problem) -> Problem:
    """The problem as arrays, after it and the spec have been held to what a strategy can do."""
    problem = protocol.checked("init", spec, key, problem)
    if problem.objectives != 1:
        raise ValueError(
            f"{type(spec).__name__}: the problem has {problem.objectives} objectives; it must have "
            "1, or take an algorithm of `multi`"
        )
    return problem


def about_middle(key: Array, box: Box, share: Array | float = 0.8) -> Array:
    """A point [D], uniform in the box shrunken about its middle."""
    u = jax.random.uniform(key, box.lower.shape, box.lower.dtype) - 0.5
    return (box.lower + box.upper) / 2 + share * u * (box.upper - box.lower)


def width(box: Box) -> Array:
    """Length of each side [D]; 1 where it is 0."""
    return jnp.where(box.upper > box.lower, box.upper - box.lower, 1)


def order(f: Array, violation: Array) -> tuple[Array, Array]:
    """Candidates from the best to the worst, and which of these differ from the one before.

    Args:
        f: [N, 1] objective; NaN comes last.
        violation: [N] total constraint violation.
    Returns:
        Indices [N] int32, and [N] bool.
    """
    keys = sortable(jnp.stack([violation, f[:, 0]], axis=1))
    best = lexsort(keys)
    return best, first_copies(keys[best])


def utilities(f: Array, violation: Array, weights: Array) -> Array:
    """The weight of each candidate, given those of the ranks; equal candidates share theirs.

    Sharing matters on plateaus: with all values equal no direction is preferred.

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


def best_of(best: Best, x: Array, f: Array, violation: Array) -> Best:
    """The best of what was known and the candidates x [N, D]."""
    first = order(f, violation)[0][0]
    new = Best(x[first], f[first, 0], violation[first])
    wins = (new.violation < best.violation) | ((new.violation == best.violation) & (new.f < best.f))
    return jax.tree.map(lambda new, old: jnp.where(wins, new, old), new, best)
