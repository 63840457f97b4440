"""What the multi-objective algorithms share: a population, its first members, its survivors."""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.evolution.problem import Box, Problem
from jaxgpu.pytree import pytree


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


def chosen(mask: Array, count: int) -> Array:
    """Indices of the `count` members that are marked, ascending. [N] bool -> [count] int32.

    A prefix sum and a scatter, where a sort would cost ten times as much.
    """
    to = jnp.where(mask, jnp.cumsum(mask, dtype=jnp.int32) - 1, count)
    index = jnp.arange(mask.shape[0], dtype=jnp.int32)
    return jnp.zeros(count, jnp.int32).at[to].set(index, mode="drop", unique_indices=True)


def distinct(population: Population) -> tuple[Array, Array]:
    """Objectives and violations for ranking: those of repeated decision vectors are infinite.

    Of equal vectors the first counts. Rows are hashed and sorted, so equal ones are adjacent:
    O(N D) and one sort, where a distance matrix takes O(N^2 D).
    """
    x = population.x
    words = jax.lax.bitcast_convert_type(x, jnp.uint32).reshape(x.shape[0], -1)
    # an odd multiplier for each column; equal rows have equal sums, which is all that is needed
    odd = jax.random.bits(jax.random.key(0), (words.shape[1],), jnp.uint32) | 1
    mixed = (words ^ (words >> 15)) * odd[None]
    mixed = jnp.sum(mixed ^ (mixed >> 13), axis=1, dtype=jnp.uint32)
    order = jnp.argsort(mixed, stable=True)
    rows = x[order]
    again = jnp.append(jnp.zeros(1, bool), jnp.all(rows[1:] == rows[:-1], axis=1))
    copy = jnp.zeros_like(again).at[order].set(again, unique_indices=True)
    f = jnp.where(copy[:, None], jnp.inf, population.f)
    return f, jnp.where(copy, jnp.inf, population.violation)


def permutation(key: Array, count: int) -> Array:
    """A random order of 0 ... count - 1, by one sort of random integers."""
    return jnp.argsort(jax.random.bits(key, (count,), jnp.uint32)).astype(jnp.int32)


def inside(box: Box, x: Array) -> Array:
    """The nearest points of the box."""
    return jnp.clip(x, box.lower[None], box.upper[None])
