"""Regularised pairs of stars, the slots that hold them, and what their stars weigh meanwhile.

All that is known of a pair is one column of one array, so that to take a pair from its slot, or to
put it back, is one operation and not one a field.
"""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import pytree

from ...orbits import ks
from ..blocks import Pairing


@pytree
class Pair:
    """Two stars at a time of their own, between the last step and the next."""

    first: Array  # [...] int32: star whose place the centre of mass takes; N for no pair
    second: Array  # [...] int32: star that has no mass meanwhile
    m: Array  # [2, ...] masses of both; 0 for no pair
    share: Array  # [2, ...] their shares of the sum
    orbit: ks.Orbit  # batch [...]: the second about the first
    t: Array  # [...] time of the orbit, as a part of the interval
    ready: Array  # [...] when its next step ends; infinite for no pair
    slowdown: Array  # [...] factor by which the orbit is slowed down, at least 1
    lag: Array  # [...] time by which the slowed orbit is late
    tide: Array  # [...] perturbation at the apocentre over the attraction
    revolutions: Array  # [...] orbits since the slow-down was chosen
    dissolving: Array  # [...] bool: becomes two stars again at the next time of its centre


@pytree
class Pairs:
    """A fixed number of slots that hold pairs, and the masses of all stars.

    Invariants: `weights` sums to the sum of `m`; a pair's mass stands at `first`, its `second`
    weighs nothing and has an infinite step, so that it is never due.
    """

    columns: Array  # [C, S] a pair each, the fields of `Pair` in order; integers exactly, as floats
    weights: Array  # [N] the mass that each place of the population stands for
    m: Array  # [N] masses of the stars
    limit: Array  # [] binding energy over the reduced mass of the widest pair that is formed

    @property
    def batch(self) -> Pair:
        """All of them, batch [S]."""
        return _unpacked(self.columns)

    @property
    def first(self) -> Array:
        """[S] int32: stars whose places the centres of mass take; N where the slot is free."""
        return self.batch.first

    @property
    def held(self) -> Array:
        """[S] bool: whether a slot holds a pair."""
        return self.first < self.m.shape[0]

    def one(self, slot: Array) -> Pair:
        """That in a slot []."""
        return _unpacked(
            lax.dynamic_index_in_dim(
                self.columns, slot, 1, keepdims=False, allow_negative_indices=False
            )
        )

    def holding(self, slot: Array, pair: Pair) -> Array:
        """`columns` with a pair put into a slot []."""
        return lax.dynamic_update_index_in_dim(
            self.columns, packed(pair), slot, 1, allow_negative_indices=False
        )

    def rewound(self) -> "Pairs":
        """The same, times counted from the end of an interval and no more from its beginning."""
        pair = self.batch
        return replace(self, columns=packed(replace(pair, t=pair.t - 1, ready=pair.ready - 1)))


def packed(pair: Pair) -> Array:
    """The columns [C, ...] of pairs."""
    leaves, dtype = jax.tree.leaves(pair), pair.t.dtype
    rows = [q if q.ndim > pair.t.ndim else q[None] for q in leaves]
    return jnp.concatenate([q.astype(dtype) for q in rows])


def _unpacked(columns: Array) -> Pair:
    """The pairs that lie in columns [C, ...]; what `packed` undoes."""
    tree, fields = _layout()
    leaves, start = [], 0
    for field in fields:
        end = start + math.prod(field.shape)
        leaf = columns[start:end] if field.shape else columns[start]
        real = jnp.issubdtype(field.dtype, jnp.floating)
        leaves.append(leaf if real else leaf.astype(field.dtype))
        start = end
    return jax.tree.unflatten(tree, leaves)


@cache
def _layout() -> tuple[Any, list[jax.ShapeDtypeStruct]]:
    """The fields of one pair, in order."""
    leaves, tree = jax.tree.flatten(jax.eval_shape(lambda: empty_pair(jnp.ones(1))))
    return tree, leaves


def empty(pairing: Pairing, m: Array) -> Pairs:
    """All slots free, for stars of masses m [N].

    `limit` is the energy of two mean stars with the semi-major axis `close`; a pair of heavier ones
    may be wider in proportion to their mass, for it is the speed of an orbit that tells whether a
    pair is hard.
    """
    columns = jnp.repeat(packed(empty_pair(m))[:, None], pairing.slots, 1)
    close = pairing.close if pairing.slots else 1.0
    return Pairs(columns=columns, weights=m, m=m, limit=jnp.mean(m) / close)


def empty_pair(m: Array) -> Pair:
    """What a free slot holds, among stars of masses m [N]."""
    none, zero = jnp.int32(m.shape[0]), jnp.zeros((), m.dtype)
    x = jnp.stack([zero + 1, zero, zero])
    return Pair(
        first=none,
        second=none,
        m=jnp.stack([zero, zero]),
        share=jnp.stack([zero, zero]),
        orbit=ks.regularised(x, x[::-1], zero + 1),  # any orbit will do
        t=zero,
        ready=zero + jnp.inf,
        slowdown=zero + 1,
        lag=zero,
        tide=zero,
        revolutions=zero,
        dissolving=jnp.bool_(False),
    )


def resolved(pairing: Pairing, pairs: Pairs) -> Array:
    """[S] whether a pair is perturbed enough to act on other stars as two, and not as a point."""
    pair = pairs.batch
    return pairs.held & (pair.slowdown == 1) & (pair.tide > pairing.weak)


def too_wide(pairs: Pairs, orbit: ks.Orbit) -> Array:
    """[...] whether an orbit is wider than twice what a pair may begin with."""
    return orbit.h > -pairs.limit / 2


def extent(pairs: Pairs, orbit: ks.Orbit) -> Array:
    """The size [...] at which a pair feels a tide: its apocentre, or its distance if too wide."""
    wide = too_wide(pairs, orbit)
    return jnp.where(wide, ks.distance(orbit), ks.apocentre(orbit))
