"""Problems on bit strings: the 0/1 knapsack with several sacks, and MNK landscapes.

Zitzler & Thiele (1999), doi:10.1109/4235.797969; Aguirre & Tanaka (2007),
doi:10.1016/j.ejor.2006.08.004. Both are maximised in the papers; here the objectives are the
negatives. A bit is set if its variable, in [0, 1], is at least 1/2, so that every algorithm that
searches a box can be used. Instances are generated from a seed with NumPy.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.inputs.fields import number, pytree
from jaxgpu.inputs.ranges import check

from ..problem import Problem, box, check_integers


@pytree
class KnapsackData:
    """An instance of the knapsack problem: m sacks, n items; an item is in all sacks or none."""

    profit: Array = number(least=0)  # [m, n] profit of each item in each sack
    weight: Array = number(above=0)  # [m, n] weight of each item in each sack
    capacity: Array = number(above=0)  # [m] maximum weight of each sack


@pytree
class Landscape:
    """An instance of an MNK landscape: M objectives, N bits, each interacting with K others."""

    partners: Array = number(whole=True, least=0)  # [M, N, K] indices of the interacting bits
    # contribution of a bit, indexed by its own value and then by its partners'
    table: Array = number()  # [M, N, 2^(K+1)] contribution


@explain_errors
def knapsack_data(items: int, objectives: int, seed: int = 0) -> KnapsackData:
    """Generate an instance as in the paper: values from 10 to 100, capacity half of the weight.

    >>> two = knapsack_data(items=5, objectives=2)
    >>> two.profit.shape, two.capacity.shape
    ((2, 5), (2,))
    """
    check_integers("knapsack_data", items=items, objectives=objectives, seed=seed)
    if items < 1 or objectives < 1:
        raise ValueError(
            f"knapsack_data: items={items}, objectives={objectives}; need at least 1 of each"
        )
    rng = np.random.default_rng(seed)
    profit, weight = rng.integers(10, 101, (2, objectives, items)).astype(float)
    parts = profit, weight, weight.sum(1) / 2
    return KnapsackData(*(jnp.asarray(part, float) for part in parts))


@explain_errors
@on_host
def knapsack(instance: KnapsackData, repair: bool = True) -> Problem:
    """Return the knapsack problem; the objectives are minus the profits, [m].

    Args:
        instance: from `knapsack_data`, or a custom one.
        repair: as in the paper, remove items in order of profit per weight (its maximum over the
            sacks), least first, until no sack is too heavy. Otherwise the overweight, relative to
            the capacities, is the violation.

    >>> two = KnapsackData(jnp.array([[3.0, 4.0]]), jnp.array([[1.0, 2.0]]), jnp.array([2.0]))
    >>> print(knapsack(two).function(jnp.ones(2)))
    [-3.]
    """
    check("knapsack", instance)
    shape = np.shape(instance.profit)
    m, n = shape if len(shape) == 2 else (0, 0)
    if not m or not n or np.shape(instance.weight) != (m, n) or np.shape(instance.capacity) != (m,):
        raise ValueError(
            f"knapsack: profit has shape {list(shape)}, weight {list(np.shape(instance.weight))}, "
            f"capacity {list(np.shape(instance.capacity))}; they must be [m, n], [m, n], [m]"
        )

    def function(x: Array) -> Array | tuple[Array, Array]:
        profit, weight, capacity = (
            jnp.asarray(part, x.dtype)
            for part in (instance.profit, instance.weight, instance.capacity)
        )
        packed = x >= 0.5
        if repair:
            order = jnp.argsort(-jnp.max(profit / weight, axis=0), stable=True)
            loads = jnp.cumsum(jnp.where(packed[order][None], weight[:, order], 0), axis=1)
            # loads only grow, so the items that fit are the first in that order
            fits = jnp.all(loads <= capacity[:, None], axis=0)
            packed = packed.at[order].set(packed[order] & fits, unique_indices=True)
            return -jnp.sum(jnp.where(packed[None], profit, 0), axis=1)
        load = jnp.sum(jnp.where(packed[None], weight, 0), axis=1)
        over = jnp.sum(jnp.maximum(load - capacity, 0) / capacity)
        return -jnp.sum(jnp.where(packed[None], profit, 0), axis=1), over

    return Problem(box(0.0, 1.0, n), function, m)


@explain_errors
def landscape(bits: int, interactions: int, objectives: int = 2, seed: int = 0) -> Landscape:
    """Generate an instance with random partners, and contributions uniform in [0, 1]. N, K, M.

    >>> landscape(bits=6, interactions=2).table.shape
    (2, 6, 8)
    """
    check_integers(
        "landscape", bits=bits, interactions=interactions, objectives=objectives, seed=seed
    )
    n, k, m = bits, interactions, objectives
    if m < 1 or n < 1 or not 0 <= k < n or k > 20:
        raise ValueError(
            f"landscape: bits={n}, interactions={k}, objectives={m}; need at least 1 bit and "
            "objective, and interactions from 0 to 20 that are fewer than the bits"
        )
    rng = np.random.default_rng(seed)
    keys = rng.random((m, n, n))
    keys[:, np.arange(n), np.arange(n)] = np.inf  # excludes a bit as its own partner
    partners = np.argsort(keys, axis=2)[:, :, :k].astype(np.int32)
    table = rng.random((m, n, 2 ** (k + 1)))
    return Landscape(jnp.asarray(partners), jnp.asarray(table, float))


@explain_errors
@on_host
def mnk(instance: Landscape) -> Problem:
    """Return the MNK problem; the objectives are minus the mean contribution of the bits, [M].

    >>> flat = Landscape(jnp.zeros((1, 4, 0), int), jnp.array([[[0.0, 1.0]] * 4]))
    >>> print(mnk(flat).function(jnp.array([1.0, 0.0, 1.0, 1.0])))
    [-0.75]
    """
    check("mnk", instance)
    m, n, k = np.shape(instance.partners)
    if np.shape(instance.table) != (m, n, 2 ** (k + 1)) or np.any(instance.partners >= n):
        raise ValueError(
            f"mnk: partners of shape {[m, n, k]}, table {list(np.shape(instance.table))}; partners "
            f"must be below {n}, and table of shape {[m, n, 2 ** (k + 1)]}"
        )

    def function(x: Array) -> Array:
        bit = (x >= 0.5).astype(jnp.int32)
        others = bit[instance.partners] << jnp.arange(k, dtype=jnp.int32)[None, None]
        # the bit itself is the most significant
        row = (bit << k)[None] + jnp.sum(others, axis=2, dtype=jnp.int32)
        contribution = jnp.take_along_axis(instance.table, row[..., None], axis=2)
        return -jnp.mean(contribution[..., 0], axis=1).astype(x.dtype)

    return Problem(box(0.0, 1.0, n), function, m)
