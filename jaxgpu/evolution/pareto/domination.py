"""Non-dominated ranks, exact for any number of objectives, in O(n) memory.

One objective: ranks of the distinct values. Two: a prefix minimum per front (`fronts2`). Three and
more than 1024 points: divide and conquer (`fronts3`). Otherwise: longest chains, tile by tile
(`chains`). Objectives are minimised. All methods agree with the definition for every point.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.ranges import Range, refuse

from ..problem import as_floats
from .chains import chain_ranks
from .fronts2 import ranks2
from .fronts3 import ranks3
from .order import dense_ranks

_CHAINS_BELOW = 1024  # below, the pair tests of `chains` cost less than the passes of `fronts3`


@explain_errors
def ranks(f: Array, violation: Array | None = None, stop: int | None = None) -> Array:
    """Return the index of the non-dominated front of each point, 0 the best.

    A point dominates another if it is nowhere worse and somewhere better. With `violation`, Deb's
    rule applies: a feasible point (violation <= 0) precedes any infeasible one, and of two
    infeasible ones the less violating precedes. A point with a NaN objective ranks with those that
    are infinite in all, and with the most violating if violations are given.

    Args:
        f: objectives to minimise, [n, m]; infinities are compared like any value.
        violation: total constraint violation, [n]; NaN counts as infinite.
        stop: ranks need to be exact only until the fronts hold this many points; the remaining
            points may share one higher index. All n by default.
    Returns:
        [n] int32.
    Not differentiable (integers). Time O(n log n) per front for m <= 3, n^2/2 pair tests for
    m > 3, n^2 of them on an accelerator; memory O(n log n) words at most.

    >>> print(ranks(jnp.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0], [1.0, 2.0]])))
    [0 0 1 0]
    """
    f = as_floats("ranks: f", f)
    if f.ndim != 2 or 0 in f.shape:
        raise ValueError(f"ranks: f has shape {f.shape}; it must be [points, objectives]")
    n, m = f.shape
    stop = n if stop is None else stop
    refuse("ranks: stop", stop, Range(least=0, whole=True, one=True))
    broken = jnp.any(jnp.isnan(f), axis=1)
    if violation is None:
        return _unconstrained_ranks(jnp.where(broken[:, None], jnp.inf, f), stop)
    violation = as_floats("ranks: violation", violation)
    if violation.shape != (n,):
        raise ValueError(f"ranks: violation has shape {violation.shape}; it must be {(n,)}")
    violation = jnp.where(broken | jnp.isnan(violation), jnp.inf, violation)
    feasible = violation <= 0
    rank = _unconstrained_ranks(jnp.where(feasible[:, None], f, jnp.inf), stop)
    behind = 1 + jnp.max(jnp.where(feasible, rank, -1))
    infeasible = dense_ranks(jnp.where(feasible, -jnp.inf, violation))
    infeasible -= jnp.any(feasible).astype(jnp.int32)
    return jnp.where(feasible, rank, behind + infeasible)


def _unconstrained_ranks(f: Array, stop: int) -> Array:
    n, m = f.shape
    if m == 1:
        return dense_ranks(f[:, 0])
    if m > 3 or n <= _CHAINS_BELOW:
        return chain_ranks(f)
    return ranks2(f, stop) if m == 2 else ranks3(f, stop)


@explain_errors
def is_non_dominated(f: Array, violation: Array | None = None) -> Array:
    """Return a mask of points that no other dominates, including all copies. [n, m] -> [n] bool.

    >>> print(is_non_dominated(jnp.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0]])))
    [ True  True False]
    """
    return ranks(f, violation, stop=1) == 0


@explain_errors
def dominates(a: Array, b: Array) -> Array:
    """Return whether `a` dominates `b`: nowhere worse, somewhere better. [..., m] -> [...] bool.

    >>> print(dominates(jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0])))
    True
    """
    a, b = as_floats("dominates: a", a), as_floats("dominates: b", b)
    pairs = zip(a.shape[-2::-1], b.shape[-2::-1])
    fits = all(m == n or 1 in (m, n) for m, n in pairs)
    if not fits or not a.ndim or not b.ndim or a.shape[-1] != b.shape[-1]:
        raise ValueError(
            f"dominates: a has shape {list(a.shape)}, b {list(b.shape)}; both must be [..., "
            "objectives], with leading axes that broadcast"
        )
    return jnp.all(a <= b, axis=-1) & jnp.any(a < b, axis=-1)
