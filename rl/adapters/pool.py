"""Copies of an environment for a host that steps them one call at a time, begun from a pool.

A program of its own draws many starts at once, and each episode takes the next of them: a step in
which few episodes end costs what those few cost, and one in which none ends draws nothing. Each
start is used once, so that episodes are as independent as with `restart="fresh"` of `rl.vectorize`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree

from ..vector import Vector, VectorState, mended

_BYTES = 1 << 24  # of a pool, where it holds more starts than there are copies
_FEWEST, _ROUNDS = 512, 8  # starts; starts for each copy
_DENSE = 128  # copies whose ranks are counted pair by pair: one kernel in place of many


class Seen(NamedTuple):
    """What a host sees of a step; leaves [B, ...]."""

    observation: Any  # to act on
    reward: Array  # [B]
    terminated: Array  # [B] bool
    truncated: Array  # [B] bool
    info: dict[str, Array]  # [B] each
    final: Any  # the observations before any new beginning
    begun: Array  # [] how many copies began anew


class Taken(NamedTuple):
    """All copies, and how much of the pool they have taken."""

    copies: VectorState
    used: Array  # [] starts


@pytree
class Pooled:
    """The copies of `envs`, which begin anew from a pool of starts."""

    envs: Vector  # all copies

    def size(self, key: Array) -> int:
        """How many starts a pool holds: eight a copy and at least 512, fewer of large ones."""
        start = jax.eval_shape(self.envs.env.reset, key)
        each = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(start))
        copies = self.envs.num_envs
        return min(max(_FEWEST, _ROUNDS * copies), max(copies, _BYTES // max(each, 1)))

    def fill(self, state: Taken, key: Array) -> tuple[Taken, Any]:
        """A new pool, of which nothing is taken."""
        keys = jax.random.split(key, self.size(key))
        starts = mended(jax.vmap(self.envs.env.reset)(keys), state.copies.first)
        return Taken(state.copies, jnp.zeros((), jnp.int32)), starts

    def reset(self, key: Array) -> tuple[Taken, Any]:
        """First states of all copies, and their observations."""
        copies = self.envs.reset(key)
        return Taken(copies, jnp.zeros((), jnp.int32)), copies.observation

    def step(
        self, state: Taken, action: Array, starts: list[Array], key: Array
    ) -> tuple[Taken, Seen]:
        """One step of all copies; at least as many starts are left in the pool as there are.

        They come as leaves: a list costs a call less than the tree that they belong to.
        """
        moved, out = self.envs.move(state.copies, action, key)
        where = out.is_first
        row = state.used + _rank(where)
        fresh = [jnp.take(x, row, axis=0, mode="clip") for x in starts]
        now = (moved.state, moved.observation)
        fresh = jax.tree.unflatten(jax.tree.structure(now), fresh)
        after = self.envs.restarted(moved, where, fresh)
        begun = jnp.sum(where, dtype=jnp.int32)
        ends = out.terminated, out.truncated
        seen = Seen(after.observation, out.reward, *ends, out.info, out.final, begun)
        return Taken(after, state.used + begun), seen


def _rank(where: Array) -> Array:
    """How many of those before it are true, for each [B]."""
    if len(where) > _DENSE:
        return jnp.cumsum(where, dtype=jnp.int32) - where
    before = jnp.tri(len(where), k=-1, dtype=bool)
    pairs = before & jnp.broadcast_to(where, before.shape)
    return jnp.sum(pairs, axis=1, dtype=jnp.int32)
