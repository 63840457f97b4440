"""What the algorithms share: a population, its first members and survivors, and random ties."""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree

from .problem import Box, Problem


@pytree
class Population:
    """Candidates with their values; infinite until they have been evaluated."""

    x: Array  # [N, D] decision vectors
    f: Array  # [N, m] objectives
    violation: Array  # [N] total constraint violation, 0 where feasible


def sample(key: Array, problem: Problem, count: int) -> Population:
    """Uniform in the box, not yet evaluated."""
    lower, upper = problem.box.lower, problem.box.upper
    u = jax.random.uniform(key, (count, lower.shape[0]), lower.dtype)
    return Population(
        lower[None] + u * (upper - lower)[None],
        jnp.full((count, problem.objectives), jnp.inf, lower.dtype),
        jnp.full(count, jnp.inf, lower.dtype),
    )


def merge(a: Population, b: Population) -> Population:
    """The members of both."""
    return jax.tree.map(lambda a, b: jnp.concatenate([a, b]), a, b)


def take(population: Population, index: Array) -> Population:
    """The members with these indices."""
    return jax.tree.map(lambda leaf: leaf[index], population)


def flatnonzero(mask: Array, count: int) -> Array:
    """Indices of the `count` members that are marked, ascending. [N] bool -> [count] int32.

    A prefix sum and a scatter, where a sort would cost ten times as much.
    """
    to = jnp.where(mask, jnp.cumsum(mask, dtype=jnp.int32) - 1, count)
    index = jnp.arange(mask.shape[0], dtype=jnp.int32)
    return jnp.zeros(count, jnp.int32).at[to].set(index, mode="drop", unique_indices=True)


def eliminate_duplicates(population: Population, box: Box | None = None) -> tuple[Array, Array]:
    """Objectives and violations for ranking: those of repeated points are infinite.

    Of equal points the first counts. Where the box says what its vectors stand for, that is what
    is compared. Rows are hashed and sorted, so equal ones are adjacent: O(N D) and one sort, where
    a distance matrix takes O(N^2 D). Another point with the same hash may lie between two equal
    ones; two others may hide a copy.
    """
    rows = population.x
    if box is not None and box.encoding is not None:
        rows = jax.vmap(box.encoding.words)(rows)
    else:
        rows = jnp.where(rows == 0, jnp.zeros_like(rows), rows)  # -0 is 0
    order = jnp.argsort(hashes(rows), stable=True)
    rows = rows[order]
    again = _same_as_before(rows, 1) | _same_as_before(rows, 2)
    copy = jnp.zeros_like(again).at[order].set(again, unique_indices=True)
    f = jnp.where(copy[:, None], jnp.inf, population.f)
    return f, jnp.where(copy, jnp.inf, population.violation)


def hashes(rows: Array) -> Array:
    """A number for each row, equal where rows are equal to the bit. [N, K] -> [N] uint32."""
    words = jax.lax.bitcast_convert_type(rows, jnp.uint32).reshape(rows.shape[0], -1)
    # an odd multiplier for each column; equal rows have equal sums, which is all that is needed
    odd = jax.random.bits(jax.random.key(0), (words.shape[1],), jnp.uint32) | 1
    mixed = (words ^ (words >> 15)) * odd[None]
    return jnp.sum(mixed ^ (mixed >> 13), axis=1, dtype=jnp.uint32)


def _same_as_before(rows: Array, back: int) -> Array:
    """Which rows equal the one so many places before. [N] bool."""
    back = min(back, rows.shape[0])
    none = jnp.zeros(back, bool)
    return jnp.append(none, jnp.all(rows[back:] == rows[: rows.shape[0] - back], axis=1))


def key_from(*arrays: Array) -> Array:
    """A random key made of the bits of arrays [N, ...]: the same for the same, whatever the device.

    States hold no key. What `tell` leaves to chance follows from the candidates that it is given,
    which are as random as the key of `ask`.
    """
    key = jax.random.key(0)
    for rows in arrays:
        key = jax.random.fold_in(key, jnp.sum(hashes(rows), dtype=jnp.uint32))
    return key


def permutation(key: Array, count: int) -> Array:
    """A random order of 0 ... count - 1, by one sort of random integers."""
    return jnp.argsort(jax.random.bits(key, (count,), jnp.uint32)).astype(jnp.int32)


def clip(box: Box, x: Array) -> Array:
    """The nearest points of the box."""
    return jnp.clip(x, box.lower[None], box.upper[None])
