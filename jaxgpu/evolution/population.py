"""Populations: sampling, merging and selecting members, duplicates, and random tie-breaking."""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree

from .problem import Box, Problem


@pytree
class Population:
    """Candidates with their objectives and violations, which are infinite before evaluation."""

    x: Array  # [N, D] decision vectors
    f: Array  # [N, m] objectives
    violation: Array  # [N] total constraint violation, 0 where feasible


def sample(key: Array, problem: Problem, count: int) -> Population:
    """Sample candidates uniformly in the box, not yet evaluated."""
    lower, upper = problem.box.lower, problem.box.upper
    u = jax.random.uniform(key, (count, lower.shape[0]), lower.dtype)
    return Population(
        lower[None] + u * (upper - lower)[None],
        jnp.full((count, problem.objectives), jnp.inf, lower.dtype),
        jnp.full(count, jnp.inf, lower.dtype),
    )


def merge(a: Population, b: Population) -> Population:
    """Return the members of both populations."""
    return jax.tree.map(lambda a, b: jnp.concatenate([a, b]), a, b)


def take(population: Population, index: Array) -> Population:
    """Return the members with these indices."""
    return jax.tree.map(lambda leaf: leaf[index], population)


def flatnonzero(mask: Array, count: int) -> Array:
    """Return the indices of the `count` marked members, ascending. [N] bool -> [count] int32.

    A prefix sum and a scatter; a sort would cost ten times as much.
    """
    to = jnp.where(mask, jnp.cumsum(mask, dtype=jnp.int32) - 1, count)
    index = jnp.arange(mask.shape[0], dtype=jnp.int32)
    return jnp.zeros(count, jnp.int32).at[to].set(index, mode="drop", unique_indices=True)


def eliminate_duplicates(population: Population, box: Box | None = None) -> tuple[Array, Array]:
    """Return objectives and violations for ranking, with infinite values for repeated points.

    The first of equal points keeps its values. If the box has an encoding, the encoded points are
    compared. Rows are hashed and sorted, so equal ones are adjacent: O(N D) and one sort, where a
    distance matrix takes O(N^2 D). One point with the same hash may be between two equal ones; two
    such points may hide a copy.
    """
    rows = population.x
    if box is not None and box.encoding is not None:
        rows = jax.vmap(box.encoding.identifier)(rows)
    else:
        rows = jnp.where(rows == 0, jnp.zeros_like(rows), rows)  # -0 is 0
    order = jnp.argsort(row_hashes(rows), stable=True)
    rows = rows[order]
    again = _equals_previous(rows, 1) | _equals_previous(rows, 2)
    copy = jnp.zeros_like(again).at[order].set(again, unique_indices=True)
    f = jnp.where(copy[:, None], jnp.inf, population.f)
    return f, jnp.where(copy, jnp.inf, population.violation)


def row_hashes(rows: Array) -> Array:
    """Return a hash of each row; bitwise equal rows have equal hashes. [N, K] -> [N] uint32."""
    words = jax.lax.bitcast_convert_type(rows, jnp.uint32).reshape(rows.shape[0], -1)
    # each column has an odd multiplier; all that is needed is that equal rows have equal sums
    odd = jax.random.bits(jax.random.key(0), (words.shape[1],), jnp.uint32) | 1
    mixed = (words ^ (words >> 15)) * odd[None]
    return jnp.sum(mixed ^ (mixed >> 13), axis=1, dtype=jnp.uint32)


def _equals_previous(rows: Array, back: int) -> Array:
    """Return a mask [N] of rows that equal the row `back` positions earlier."""
    back = min(back, rows.shape[0])
    none = jnp.zeros(back, bool)
    return jnp.append(none, jnp.all(rows[back:] == rows[: rows.shape[0] - back], axis=1))


def key_from(*arrays: Array) -> Array:
    """Return a random key derived from the bits of arrays [N, ...], the same on every device.

    States hold no key. The random choices of `tell` follow from the candidates that it receives,
    which are as random as the key of `ask`.
    """
    key = jax.random.key(0)
    for rows in arrays:
        key = jax.random.fold_in(key, jnp.sum(row_hashes(rows), dtype=jnp.uint32))
    return key


def permutation(key: Array, count: int) -> Array:
    """Return a random permutation of 0 ... count - 1, by one sort of random integers."""
    return jnp.argsort(jax.random.bits(key, (count,), jnp.uint32)).astype(jnp.int32)


def clip(box: Box, x: Array) -> Array:
    """Clip points to the box."""
    return jnp.clip(x, box.lower[None], box.upper[None])
