"""The slots that hold regularised pairs, and what their stars weigh meanwhile.

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

from jaxgpu.pytree import pytree

from ...orbits import ks
from ..blocks import Hermite


@pytree
class Pair:
    """Two stars at a time of their own, between the last step and the next."""

    first: Array  # [...] int32: star whose place the centre of mass takes; N for no pair
    second: Array  # [...] int32: star that has no mass meanwhile
    m: Array  # [2, ...] masses of both; 0 for no pair
    part: Array  # [2, ...] their shares of the sum
    orbit: ks.Orbit  # batch [...]: the second about the first
    t: Array  # [...] time of the orbit, as a part of the interval
    ready: Array  # [...] when its next step ends; infinite for no pair
    slow: Array  # [...] slow-down, at least 1
    lost: Array  # [...] time by which the slowed orbit is late
    tide: Array  # [...] perturbation at the apocentre over the attraction
    turn: Array  # [...] orbits since the slow-down was chosen
    leave: Array  # [...] bool: is to be dissolved


@pytree
class Slots:
    """A fixed number of pairs or places for them."""

    columns: Array  # [C, S] a pair each, the fields of `Pair` in order; integers exactly, as floats
    weights: Array  # [N] the mass that each place of the population stands for

    @property
    def pairs(self) -> Pair:
        """All of them, batch [S]."""
        return _pair(self.columns)

    @property
    def first(self) -> Array:
        """[S] int32: stars whose places the centres of mass take; N where the slot is free."""
        return self.pairs.first

    def rewound(self) -> "Slots":
        """The same, times counted from the end of an interval and no more from its beginning."""
        pair = self.pairs
        return replace(self, columns=packed(replace(pair, t=pair.t - 1, ready=pair.ready - 1)))

    def one(self, q: Array) -> Pair:
        """That in slot `q` []."""
        return _pair(
            lax.dynamic_index_in_dim(
                self.columns, q, 1, keepdims=False, allow_negative_indices=False
            )
        )

    def holding(self, q: Array, pair: Pair) -> Array:
        """`columns` with a pair put into slot `q` []."""
        return lax.dynamic_update_index_in_dim(
            self.columns, packed(pair), q, 1, allow_negative_indices=False
        )


def packed(pair: Pair) -> Array:
    """The columns [C, ...] of pairs."""
    leaves, dtype = jax.tree.leaves(pair), pair.t.dtype
    rows = [q if q.ndim > pair.t.ndim else q[None] for q in leaves]
    return jnp.concatenate([q.astype(dtype) for q in rows])


def _pair(columns: Array) -> Pair:
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
    leaves, tree = jax.tree.flatten(jax.eval_shape(lambda: nobody(Hermite(jnp.ones(1)))))
    return tree, leaves


def empty(spec: Hermite) -> Slots:
    """All slots free."""
    columns = packed(nobody(spec))
    return Slots(jnp.repeat(columns[:, None], spec.pairing.slots, 1), spec.m)


def nobody(spec: Hermite) -> Pair:
    """What a free slot holds."""
    none, zero = jnp.int32(spec.m.shape[0]), jnp.zeros((), spec.m.dtype)
    x = jnp.stack([zero + 1, zero, zero])
    anything = ks.regularised(x, x[::-1], zero + 1)
    m = jnp.stack([zero, zero])
    return Pair(
        none,
        none,
        m,
        m,
        anything,
        t=zero,
        ready=zero + jnp.inf,
        slow=zero + 1,
        lost=zero,
        tide=zero,
        turn=zero,
        leave=jnp.bool_(False),
    )


def near(spec: Hermite, slots: Slots) -> Array:
    """[S] whether a pair is perturbed enough to be seen as two."""
    pair = slots.pairs
    return (pair.first < spec.m.shape[0]) & (pair.slow == 1) & (pair.tide > spec.pairing.weak)


def depth(spec: Hermite) -> Array:
    """Energy over the reduced mass, negative, of the widest pair that is formed.

    That of two mean stars with the semi-major axis `close`; of heavier ones it is longer in
    proportion to their mass, for it is the speed of an orbit that tells whether a pair is hard.
    """
    return jnp.mean(spec.m) / spec.pairing.close


def extent(spec: Hermite, orbit: ks.Orbit) -> Array:
    """The size [...] at which a pair feels a tide: its apocentre, or its distance if too wide."""
    wide = orbit.h > -depth(spec) / 2
    return jnp.where(wide, ks.distance(orbit), ks.apocentre(orbit))
