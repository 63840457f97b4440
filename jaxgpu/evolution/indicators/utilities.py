"""Indicators based on utilities over weight vectors: R2 and expected utility.

R2: Brockhoff, Wagner & Trautmann (2012), doi:10.1145/2330163.2330230. Expected utility: the best
weighted sum, averaged over weights, as used for multi-objective control. O(w n m) time, O(w + n)
memory.
"""

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs import arguments
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.ranges import Range, refuse

from .arguments import check_points, check_vector, check_vectors

_TILE = 128


@explain_errors
def r2(f: Array, weights: Array, ideal: Array) -> Array:
    """Return the mean over weights of the least weighted Tchebycheff distance to the ideal point.

    Args:
        f: objectives to minimise, [n, m].
        weights: [w, m], not negative.
        ideal: utopian point, [m].

    >>> float(r2(jnp.array([[0.5, 0.0]]), jnp.array([[1.0, 0.0], [0.0, 1.0]]), jnp.zeros(2)))
    0.25
    """
    f = check_points("r2: f", f)
    weights, ideal = (
        check_vectors("r2: weights", weights, f, least=0),
        check_vector("r2: ideal", ideal, f),
    )
    gap = jnp.abs(f - ideal[None])

    def min_tchebycheff(w: Array) -> Array:
        return jnp.min(jnp.max(w[None] * gap, axis=1))

    return jnp.mean(lax.map(min_tchebycheff, weights, batch_size=_TILE))


@explain_errors
def expected_utility(f: Array, key: Array, low: Array, high: Array, count: int = 10_000) -> Array:
    """Return the mean over random weights of the best weighted sum of objectives scaled to [0, 1].

    The objectives are minimised. The utility of an objective is 1 at `low` and 0 at `high`, and
    weights are uniform on the simplex, so a point that is best in all objectives has utility 1.

    Args:
        f: [n, m].
        key: random key of the weights.
        low, high: best and worst values, [m].
        count: number of weights.

    >>> ends = jnp.array([[0.0, 1.0], [1.0, 0.0]])  # E[max(w, 1 - w)] is 3/4
    >>> key = jax.random.key(0)
    >>> float(jax.jit(expected_utility)(ends, key, jnp.zeros(2), jnp.ones(2)).round(2))
    0.75
    """
    f, key = check_points("expected_utility: f", f), arguments.key("expected_utility: key", key)
    low = check_vector("expected_utility: low", low, f)
    high = check_vector("expected_utility: high", high, f)
    refuse("expected_utility: high - low", high - low, Range(above=0))
    refuse("expected_utility: count", count, Range(least=1, whole=True, one=True))
    gain = (high[None] - f) / (high - low)[None]
    weights = jax.random.dirichlet(key, jnp.ones(f.shape[1], f.dtype), (count,), f.dtype)

    def max_utility(w: Array) -> Array:
        return jnp.max(jnp.sum(w[None] * gain, axis=1))

    return jnp.mean(lax.map(max_utility, weights, batch_size=_TILE))
