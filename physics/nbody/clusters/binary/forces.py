"""Forces of regularised pairs on stars, centres of pairs and tracers, as points or as two stars.

An unresolved pair, weakly perturbed, is a point for other stars. A resolved pair acts as its two
members on all bodies within reach, and the force on its centre is the mean of those on its members.
For tracers every pair is resolved, in true phase. Without resolved pairs none of this is computed.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax

from ...forces import pairs as pair_forces
from ...forces.pair_sums import TILE, sum_sources
from ..blocks import PairedSteps
from ..scheduler import change_if
from .ks_pairs import Pair, Pairs, is_resolved
from .members import Members

_VALUES = 1 << 20  # maximum stored values (per pair and term) of small sums on accelerators


def on_tracers(pairs: Pairs, sources: Array, members: Members, x: Array) -> Array:
    """Return acceleration and jerk [6, K] of tracers at `x` [6, K] due to all stars.

    Stars are at `sources` [6, N]. A pair in `members` within its reach acts as two stars.
    """
    no_star = jnp.full(x.shape[1:], -1, jnp.int32)  # tracers are not stars
    plain = pair_forces.pull(x, sources, pairs.weights)
    resolve = lambda plain: plain + resolved_correction(x, no_star, members)
    return change_if(jnp.any(members.reach > 0), resolve, plain)


def on_stars(
    pairs: Pairs, sources: Array, members: Members, on_centres: Array, index: Array, x: Array
) -> Array:
    """Return acceleration and jerk [6, K] of the stars `index` [K], predicted at `x` [6, K].

    Args:
        pairs: all pairs.
        sources: predicted states [6, N] of the stars; `first` holds the centre of a pair.
        members: members of resolved pairs; the reach of others is 0.
        on_centres: acceleration and jerk [6, S] of the centres of resolved pairs.
        index: indices of the stars.
        x: their states, bitwise identical to their columns of `sources`.
    """
    acting = members.reach > 0

    def resolve(plain: Array) -> Array:
        own = (index[:, None] == members.first[None]) & acting[None]
        centre = jnp.take(on_centres, jnp.argmax(own, 1), axis=1)
        corrected = plain + resolved_correction(x, index, members)
        return jnp.where(jnp.any(own, 1)[None], centre, corrected)

    return change_if(jnp.any(acting), resolve, pair_forces.pull(x, sources, pairs.weights))


def on_due_centers(
    spec: PairedSteps, pairs: Pairs, sources: Array, due: Array, members: Members
) -> tuple[Members, Array]:
    """Return the members of resolved pairs, and the force [6, S] on their `due` [N] centres."""
    acting = is_resolved(spec.pairing, pairs)
    members = replace(members, reach=jnp.where(acting, members.reach, 0))
    asked = acting & jnp.take(due, pairs.first, mode="clip")
    return members, _on_centres(pairs, asked, sources, members)


def _on_centres(pairs: Pairs, asked: Array, sources: Array, members: Members) -> Array:
    """Return acceleration and jerk [6, S] of the centres of the pairs `asked` [S] for."""
    return lax.platform_dependent(
        pairs, asked, sources, members, cpu=on_centers_serial, default=on_centers_batch
    )


def on_centers_serial(pairs: Pairs, asked: Array, sources: Array, members: Members) -> Array:
    """Return acceleration and jerk [6, S] of centres, one after the other, only if asked for."""

    def add_centre(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        waiting, f = carry
        slot = jnp.argmax(waiting)
        mean = _on_centre(pairs, sources, members, slot)[:, None]
        waiting = lax.dynamic_update_index_in_dim(waiting, jnp.bool_(False), slot, 0)
        return waiting, lax.dynamic_update_slice_in_dim(f, mean, slot, 1)

    start = asked, jnp.zeros_like(members.centre)
    return lax.while_loop(lambda carry: jnp.any(carry[0]), add_centre, start)[1]


def on_centers_batch(pairs: Pairs, asked: Array, sources: Array, members: Members) -> Array:
    """Return acceleration and jerk [6, S] of centres, computing all slots if any is asked for."""
    slots = jnp.arange(asked.size, dtype=jnp.int32)

    def compute_all(_: Array) -> Array:
        f = jax.vmap(lambda slot: _on_centre(pairs, sources, members, slot), out_axes=1)(slots)
        return jnp.where(asked[None], f, 0)

    return change_if(jnp.any(asked), compute_all, jnp.zeros_like(members.centre))


@partial(jax.jit, inline=True)  # traced once for both variants
def _on_centre(pairs: Pairs, sources: Array, members: Members, slot: Array) -> Array:
    """Return acceleration and jerk [6] of a pair's centre, the weighted mean over its members."""
    pair, at = pairs.get_pair(slot), lambda q: lax.dynamic_index_in_dim(q, slot, 1)
    points = jnp.concatenate([at(members.one), at(members.two)], 1)
    acting = (members.reach > 0) & (members.first != pair.first)
    pull = on_members(pairs, pair, points, sources, acting, lambda: members)
    return pair.share[0] * pull[:, 0] + pair.share[1] * pull[:, 1]


def on_members(
    pairs: Pairs,
    pair: Pair,
    points: Array,
    sources: Array,
    acting: Array,
    members: Callable[[], Members],
) -> Array:
    """Return acceleration and jerk [6, 2] of a pair's members at `points`, without the pair.

    acting: [S] whether other pairs act as their `members`, which is only called in that case.
    """
    star = jnp.arange(pairs.weights.size, dtype=jnp.int32)
    plain = pair_forces.pull(points, sources, jnp.where(star == pair.first, 0, pairs.weights))
    own = jnp.full(2, pair.first)
    resolve = lambda: plain + resolved_correction(points, own, members())
    return lax.cond(jnp.any(acting), resolve, lambda: plain)


@partial(jax.jit, inline=True)  # traced once per shape
def resolved_correction(x: Array, index: Array, members: Members) -> Array:
    """Return the force [6, K] at `x` [6, K] of members within reach, minus their centres' force.

    index: [K] int32, the star that each point is; a pair does not pull its own centre. -1 for none.
    """

    def terms(t: list[Array], s: list[Array]) -> list[Array]:
        # rows of the sources: one 0-5, two 6-11, centre 12-17, masses 18-19, reach 20, first 21
        d = [b - a for a, b in zip(t[:3], s[12:15])]
        within = (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] < s[20] * s[20]) & (t[6] != s[21])
        one, two, centre = (_unit_pull(t, s[k : k + 6], within) for k in (0, 6, 12))
        m, n, mass = s[18], s[19], s[18] + s[19]
        return [m * p + n * q - mass * r for p, q, r in zip(one, two, centre)]

    first, index = (q.astype(x.dtype) for q in (members.first, index))
    sources = [members.one, members.two, members.centre, members.m, members.reach, first]
    targets, most = [x, index], max(1, _VALUES // members.first.size)
    if x.shape[1] <= TILE:
        return sum_sources(terms, targets, sources, 6)
    return lax.platform_dependent(
        targets,
        sources,
        cpu=lambda targets, sources: sum_sources(terms, targets, sources, 6),
        default=lambda targets, sources: sum_sources(terms, targets, sources, 6, most),
    )


def _unit_pull(t: list[Array], s: list[Array], within: Array) -> list[Array]:
    """Return acceleration and jerk due to unit mass, zero outside of the reach."""
    d, w = ([b - a for a, b in zip(t[k : k + 3], s[k : k + 3])] for k in (0, 3))
    r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
    acts = within & (r2 > 0)
    u2 = jnp.where(acts, 1 / jnp.where(acts, r2, 1), 0)
    p, q = u2 * jnp.sqrt(u2), 3 * (d[0] * w[0] + d[1] * w[1] + d[2] * w[2]) * u2
    return [p * c for c in d] + [p * (e - q * c) for c, e in zip(d, w)]
