"""Sorts of floats by unsigned integer keys that have the same order.

XLA compares floats by a total order that costs five times an integer comparison on a CPU (200,000
float32: 33 ms against 15 ms for an argsort, 53 ms against 8 ms for a sort), so every sort of this
package uses these keys. Sorting by several keys chains stable sorts by one key.
"""

import jax.numpy as jnp
from jax import Array, lax


def sort_keys(x: Array) -> Array:
    """Return unsigned integers in the order of the floats `x`; -0 equals 0 and NaN is last.

    float32 gives uint32, float64 gives uint64, half precisions uint16.

    >>> print(jnp.argsort(sort_keys(jnp.array([2.0, -1.0, jnp.nan, -jnp.inf, 0.0]))))
    [3 1 4 0 2]
    """
    bits = jnp.finfo(x.dtype).bits
    unsigned = {16: jnp.uint16, 32: jnp.uint32, 64: jnp.uint64}[bits]
    x = jnp.where(x == 0, jnp.zeros_like(x), x)
    raw = lax.bitcast_convert_type(x, unsigned)
    sign = jnp.array(1 << (bits - 1), unsigned)
    key = jnp.where(raw & sign, ~raw, raw | sign)
    return jnp.where(jnp.isnan(x), ~jnp.zeros_like(key), key)


def argsort(x: Array) -> Array:
    """Return the stable ascending order of a float vector [N] -> [N] int32; NaN is last."""
    return jnp.argsort(sort_keys(x), stable=True).astype(jnp.int32)


def lexsort(columns: Array) -> Array:
    """Return the order of rows by column 0, then 1, ... [N, m] keys or floats -> [N] int32."""
    keys = sort_keys(columns) if jnp.issubdtype(columns.dtype, jnp.floating) else columns
    order = jnp.arange(keys.shape[0], dtype=jnp.int32)
    for k in range(keys.shape[1] - 1, -1, -1):
        order = order[jnp.argsort(keys[order, k], stable=True)]
    return order


def first_copies(rows: Array) -> Array:
    """Return a mask [N] of rows that differ from the row before, in lexicographic order [N, m]."""
    changed = jnp.any(rows[1:] != rows[:-1], axis=1)
    return jnp.concatenate([jnp.ones_like(changed, shape=(1,)), changed])[: rows.shape[0]]


def inverse(order: Array) -> Array:
    """Return the inverse of the permutation `order`. [N] -> [N] int32."""
    place = jnp.arange(order.shape[0], dtype=jnp.int32)
    return jnp.zeros_like(place).at[order].set(place, unique_indices=True)


def dense_ranks(x: Array) -> Array:
    """Return the rank of each value among the distinct values, 0 the smallest. [N] -> [N] int32.

    >>> print(dense_ranks(jnp.array([0.5, 3.0, 0.5, -1.0])))
    [1 2 1 0]
    """
    key = sort_keys(x)
    order = jnp.argsort(key, stable=True)
    new = first_copies(key[order][:, None])
    return (jnp.cumsum(new, dtype=jnp.int32) - 1)[inverse(order)]
