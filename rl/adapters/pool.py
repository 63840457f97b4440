"""Vectorized environments for host loops, reset from a precomputed pool of initial states.

A separate program samples many initial states in one batch, and each new episode takes the next
one. A step therefore costs only the resets that it needs. Each initial state is used once, so that
episodes are as independent as with `restart="fresh"` of `rl.vectorize`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree

from ..vector import Vector, VectorState, replace_broken

_BYTES = 1 << 24  # size of a pool, if it has more initial states than there are copies
_FEWEST, _ROUNDS = 512, 8  # minimum number of initial states; initial states per copy
_DENSE = 128  # maximum number of copies for pairwise ranks, one kernel instead of many


class PoolStep(NamedTuple):
    """Results of a step for the host; leaves [B, ...]."""

    observation: Any  # observation to act on next
    reward: Array  # [B]
    terminated: Array  # [B] bool
    truncated: Array  # [B] bool
    info: dict[str, Array]  # [B] each
    final: Any  # observations before any reset
    begun: Array  # [] number of copies that were reset


class PoolState(NamedTuple):
    """State of all copies and number of used initial states."""

    copies: VectorState
    used: Array  # [] used initial states of the pool


@pytree
class PooledVector:
    """Vectorized environment `envs` with resets from a pool of initial states."""

    envs: Vector  # all copies

    def size(self, key: Array) -> int:
        """Return the pool's size: eight states per copy, at least 512, fewer if they are large."""
        start = jax.eval_shape(self.envs.env.reset, key)
        each = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(start))
        copies = self.envs.num_envs
        return min(max(_FEWEST, _ROUNDS * copies), max(copies, _BYTES // max(each, 1)))

    def fill(self, state: PoolState, key: Array) -> tuple[PoolState, Any]:
        """Sample a new, unused pool."""
        keys = jax.random.split(key, self.size(key))
        starts = replace_broken(jax.vmap(self.envs.env.reset)(keys), state.copies.first)
        return PoolState(state.copies, jnp.zeros((), jnp.int32)), starts

    def reset(self, key: Array) -> tuple[PoolState, Any]:
        """Return the initial states of all copies, and their observations."""
        copies = self.envs.reset(key)
        return PoolState(copies, jnp.zeros((), jnp.int32)), copies.observation

    def step(
        self, state: PoolState, action: Array, starts: list[Array], key: Array
    ) -> tuple[PoolState, PoolStep]:
        """Step all copies; the pool must have an unused initial state for each of them.

        `starts` has the leaves of the pool, since passing a list costs less per call than a tree.
        """
        moved, out = self.envs.move(state.copies, action, key)
        where = out.is_first
        row = state.used + _count_before(where)
        fresh = [jnp.take(x, row, axis=0, mode="clip") for x in starts]
        now = (moved.state, moved.observation)
        fresh = jax.tree.unflatten(jax.tree.structure(now), fresh)
        after = self.envs.reset_where(moved, where, fresh)
        begun = jnp.sum(where, dtype=jnp.int32)
        ends = out.terminated, out.truncated
        seen = PoolStep(after.observation, out.reward, *ends, out.info, out.final, begun)
        return PoolState(after, state.used + begun), seen


def _count_before(where: Array) -> Array:
    """Return the number of earlier true entries, for each entry [B]."""
    if len(where) > _DENSE:
        return jnp.cumsum(where, dtype=jnp.int32) - where
    before = jnp.tri(len(where), k=-1, dtype=bool)
    pairs = before & jnp.broadcast_to(where, before.shape)
    return jnp.sum(pairs, axis=1, dtype=jnp.int32)
