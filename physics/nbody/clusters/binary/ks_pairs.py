"""Regularised pairs of stars, their slots, and the masses of the stars while they are in pairs.

All data of a pair is one column of one array, so that reading or writing a slot is a single
operation instead of one per field.
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
    """A pair of stars at its individual time, between its last step and the next."""

    first: Array  # [...] int32: star whose slot holds the centre of mass; N for no pair
    second: Array  # [...] int32: star that has no mass while in the pair
    m: Array  # [2, ...] masses of both stars; 0 for no pair
    share: Array  # [2, ...] their fractions of the sum
    orbit: ks.Orbit  # batch [...]: the second about the first
    t: Array  # [...] time of the orbit, as a fraction of the interval
    ready: Array  # [...] time at which its next step ends; infinite for no pair
    slowdown: Array  # [...] factor by which the orbit is slowed down, at least 1
    lag: Array  # [...] time by which the slowed-down orbit lags behind
    tide: Array  # [...] tide at the apocentre over the mutual attraction
    revolutions: Array  # [...] number of orbits since the slow-down was set
    dissolving: Array  # [...] bool: splits into two stars when its centre is next advanced


@pytree
class Pairs:
    """A fixed number of slots for pairs, and the masses of all stars.

    Invariants: `weights` sums to the sum of `m`; a pair's mass is stored at `first`; its `second`
    has no weight and an infinite step, so that it is never due.
    """

    columns: Array  # [C, S] per pair the fields of `Pair` in order; integers as exact floats
    weights: Array  # [N] the mass of each entry of the population (star or centre of a pair)
    m: Array  # [N] masses of the stars
    limit: Array  # [] minimum binding energy over the reduced mass for forming a pair

    @property
    def batch(self) -> Pair:
        """All pairs, batch [S]."""
        return _unpack_pairs(self.columns)

    @property
    def first(self) -> Array:
        """[S] int32: stars whose slots hold the centres of mass; N if the slot is free."""
        return self.batch.first

    @property
    def is_occupied(self) -> Array:
        """[S] bool: whether the slot holds a pair."""
        return self.first < self.m.shape[0]

    def get_pair(self, slot: Array) -> Pair:
        """Return the pair in a slot []."""
        return _unpack_pairs(
            lax.dynamic_index_in_dim(
                self.columns, slot, 1, keepdims=False, allow_negative_indices=False
            )
        )

    def set_pair(self, slot: Array, pair: Pair) -> Array:
        """Return `columns` with a pair stored in a slot []."""
        return lax.dynamic_update_index_in_dim(
            self.columns, pack_pairs(pair), slot, 1, allow_negative_indices=False
        )

    def rebase_times(self) -> "Pairs":
        """Count times from the end of an interval instead of its start."""
        pair = self.batch
        return replace(self, columns=pack_pairs(replace(pair, t=pair.t - 1, ready=pair.ready - 1)))


def pack_pairs(pair: Pair) -> Array:
    """Pack pairs into columns [C, ...]."""
    leaves, dtype = jax.tree.leaves(pair), pair.t.dtype
    rows = [q if q.ndim > pair.t.ndim else q[None] for q in leaves]
    return jnp.concatenate([q.astype(dtype) for q in rows])


def _unpack_pairs(columns: Array) -> Pair:
    """Unpack pairs from columns [C, ...], the inverse of `pack_pairs`."""
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
    """Return the tree structure and the fields of a pair, in order."""
    leaves, tree = jax.tree.flatten(jax.eval_shape(lambda: empty_pair(jnp.ones(1))))
    return tree, leaves


def init_pairs(pairing: Pairing, m: Array) -> Pairs:
    """Return free slots for stars of masses m [N].

    `limit` is the energy of two mean stars with the semi-major axis `close`. A pair of heavier
    stars may be wider in proportion to their mass, because the orbital velocity determines whether
    a pair is hard.
    """
    columns = jnp.repeat(pack_pairs(empty_pair(m))[:, None], pairing.slots, 1)
    close = pairing.close if pairing.slots else 1.0
    return Pairs(columns=columns, weights=m, m=m, limit=jnp.mean(m) / close)


def empty_pair(m: Array) -> Pair:
    """Return the content of a free slot, for stars of masses m [N]."""
    none, zero = jnp.int32(m.shape[0]), jnp.zeros((), m.dtype)
    x = jnp.stack([zero + 1, zero, zero])
    return Pair(
        first=none,
        second=none,
        m=jnp.stack([zero, zero]),
        share=jnp.stack([zero, zero]),
        orbit=ks.from_cartesian(x, x[::-1], zero + 1),  # the orbit of a free slot is arbitrary
        t=zero,
        ready=zero + jnp.inf,
        slowdown=zero + 1,
        lag=zero,
        tide=zero,
        revolutions=zero,
        dissolving=jnp.bool_(False),
    )


def is_resolved(pairing: Pairing, pairs: Pairs) -> Array:
    """Return a mask [S] of pairs that are perturbed enough to act as two stars, not as a point."""
    pair = pairs.batch
    return pairs.is_occupied & (pair.slowdown == 1) & (pair.tide > pairing.weak)


def is_too_wide(pairs: Pairs, orbit: ks.Orbit) -> Array:
    """Return a mask [...] of orbits wider than twice the limit for forming a pair."""
    return orbit.h > -pairs.limit / 2


def extent(pairs: Pairs, orbit: ks.Orbit) -> Array:
    """Return the size [...] for the tide on a pair: its apocentre, or its distance if too wide."""
    wide = is_too_wide(pairs, orbit)
    return jnp.where(wide, ks.distance(orbit), ks.apocenter(orbit))
