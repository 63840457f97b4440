"""Node updates that skip the parts of a grid without material.

Material fills a few hundredths of a grid that leaves it room to move, and a node without mass
affects no particle. On a CPU nodes are visited block by block, and a block without mass is skipped.
Elsewhere, blocks one after another would cost more than all nodes in one batch.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

BLOCK = 512  # nodes per block; half or twice as many differ by 5 %
SMALL_GRID = 8192  # nodes of a grid so small that skipping does not pay

type RowUpdate = Callable[[Array, Array], tuple[Array, Any]]


def map_occupied(act: RowUpdate, field: Array, shape: tuple[int, ...], block: int = BLOCK) -> Any:
    """Apply `act` to the rows of a grid that have mass; differentiable as `act` is.

    Args:
        act: `act(first, rows)` of the rows [n, 4] from index `first` on returns as many rows, and a
            pytree of sums over them, to which a row without mass must add zero.
        field: [nodes, 4], mass in column D.
        shape: nodes along each of D axes.
        block: nodes that are visited or skipped together.
    Returns:
        rows [nodes, 4], with any finite values in blocks without mass, and the sums.

    >>> field = jnp.zeros((20000, 4)).at[7, 2].set(3.0)
    >>> rows, mass = map_occupied(lambda first, a: (2 * a, a[:, 2].sum()), field, (100, 200))
    >>> float(rows[7, 2]), float(mass)
    (6.0, 3.0)
    """
    act_on_grid = lambda field: jax.checkpoint(act)(jnp.int32(0), field)
    if field.shape[0] <= SMALL_GRID:
        return act_on_grid(field)
    d, slab = len(shape), prod(shape[1:])
    sparse = _skip_empty_blocks(act, block, d)
    if slab > 2 * block:  # skip entire slabs before dividing them into blocks
        sparse = _skip_empty_blocks(sparse, slab, d)
    return lax.platform_dependent(
        field, cpu=lambda field: sparse(jnp.int32(0), field), default=act_on_grid
    )


def _skip_empty_blocks(act: RowUpdate, size: int, mass: int) -> RowUpdate:
    """Return `act` applied to `size` rows at a time, and only if one of them has mass."""

    def apply_blockwise(first: Array, rows: Array) -> tuple[Array, Any]:
        count = rows.shape[0]
        blocks = -(-count // size)
        parts = jnp.pad(rows, ((0, blocks * size - count), (0, 0))).reshape(blocks, size, -1)
        starts = first + size * jnp.arange(blocks, dtype=jnp.int32)
        like = jax.eval_shape(act, starts[0], parts[0])
        zero_result = lambda *_: jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), like)

        def update_block(_: None, block: tuple[Array, Array]) -> tuple[None, Any]:
            filled = jnp.any(block[1][:, mass] > 0)
            return None, lax.cond(filled, jax.checkpoint(act), zero_result, *block)

        new, sums = lax.scan(update_block, None, (starts, parts))[1]
        return new.reshape(-1, rows.shape[1])[:count], jax.tree.map(lambda a: a.sum(0), sums)

    return apply_blockwise
