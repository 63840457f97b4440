"""How bodies of a cluster see its regularised pairs, and a pair them: as points, or as two.

A weakly perturbed pair is a point for other stars; one that is not is seen as its two members by
all within reach, and its centre feels the mean of what its members feel. To massless bodies every
pair is two, in true phase. Without pairs in sight nothing of this is computed.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.physics.nbody import pairs, regular
from jaxgpu.physics.nbody.blocks import Hermite
from jaxgpu.physics.nbody.slots import Slots, extent, masses, near, weights
from jaxgpu.pytree import pytree

# (indices [B] of bodies, their predicted states [6, B]) -> acceleration and jerk [6, B]
type Pull = Callable[[Array, Array], Array]


@pytree
class Members:
    """Where the members of the pairs are."""

    one: Array  # [6, S]
    two: Array  # [6, S]
    centre: Array  # [6, S]
    m: Array  # [2, S] masses; 0 where the slot is free
    reach: Array  # [S] within this distance the members are seen, beyond it the centre


def seen_by_tracers(spec: Hermite, slots: Slots, sources: Array, now: Array) -> Pull:
    """The pull of all stars on massless bodies, which see every pair as two, in true phase."""
    taken = slots.first < spec.m.shape[0]
    some = jnp.any(taken)
    all = members_if(some, spec, slots, sources, now, taken)
    mass = weights(spec, slots)

    def pull(index: Array, x: Array) -> Array:
        plain = pairs.pull(x, sources, mass)
        nobody = jnp.full(x.shape[1], -1, jnp.int32)
        return lax.cond(some, lambda: plain + in_full(x, nobody, all), lambda: plain)

    return pull


def seen_by_stars(spec: Hermite, slots: Slots, sources: Array, due: Array, now: Array) -> Pull:
    """The pull of all stars on stars and on centres of pairs, of which `due` [N] will ask."""
    seen = near(spec, slots)
    some, mass = jnp.any(seen), weights(spec, slots)
    all = near_members(spec, slots, sources, now)
    asked = seen & jnp.take(due, slots.first, mode="clip")
    on_centres = centres(spec, slots, asked, sources, all)
    slot = jnp.arange(seen.shape[0], dtype=jnp.int32)
    place = jnp.full(mass.shape, -1, jnp.int32).at[slots.first].set(slot, mode="drop")

    def pull(index: Array, x: Array) -> Array:
        plain = pairs.pull(x, sources, mass)
        own = jnp.take(place, index, mode="clip")

        def full() -> Array:
            centre = (own >= 0) & jnp.take(seen, own, mode="clip")
            f = plain + in_full(x, own, all)
            return jnp.where(centre[None], jnp.take(on_centres, own, axis=1, mode="clip"), f)

        return lax.cond(some, full, lambda: plain)

    return pull


def near_members(spec: Hermite, slots: Slots, sources: Array, now: Array) -> Members:
    """The pairs that stars see as two."""
    seen = near(spec, slots)
    return members_if(jnp.any(seen), spec, slots, sources, now, seen)


def members_if(
    some: Array, spec: Hermite, slots: Slots, sources: Array, now: Array, who: Array
) -> Members:
    """`members` where there are `some` to be seen; else nobody's place costs nothing."""
    nowhere = jnp.zeros((6, slots.t.shape[0]), sources.dtype)
    plain = lambda: _members(spec, slots, sources, nowhere, who)
    return lax.cond(some, lambda: members(spec, slots, sources, now, who), plain)


def members(spec: Hermite, slots: Slots, sources: Array, now: Array, who: Array) -> Members:
    """The pairs at time `now`, among stars at `sources` [6, N]; those of `who` [S] are seen."""
    late = (now - slots.t) * spec.interval + slots.lost
    x, v = regular.physical(regular.after(slots.orbit, late))
    return _members(spec, slots, sources, jnp.concatenate([x, v]), who)


def _members(spec: Hermite, slots: Slots, sources: Array, apart: Array, who: Array) -> Members:
    m = masses(spec, slots)
    part = m / jnp.maximum(m[0] + m[1], jnp.finfo(m.dtype).tiny)[None]
    centre = jnp.take(sources, slots.first, axis=1, mode="clip")
    reach = extent(spec, slots.orbit) * jnp.cbrt(2 / spec.pairing.weak)
    reach = jnp.where(who & (slots.first < spec.m.shape[0]), reach, 0)
    one, two = centre - part[1][None] * apart, centre + part[0][None] * apart
    return Members(one, two, centre, m, reach)


def in_full(points: Array, own: Array, all: Members) -> Array:
    """What members within reach add to the pull [6, K] of their centres at `points` [6, K].

    own: [K] int32, the slot that each point belongs to, and is not pulled by; -1 for none.
    """

    def pull(at: Array, m: Array) -> Array:
        d, w = (at[k : k + 3, None] - points[k : k + 3, :, None] for k in (0, 3))
        r2 = jnp.sum(d * d, 0)
        u2 = jnp.where(r2 > 0, 1 / jnp.where(r2 > 0, r2, 1), 0)
        p, q = m[None] * u2 * jnp.sqrt(u2), 3 * jnp.sum(d * w, 0) * u2
        return jnp.concatenate([p[None] * d, p[None] * (w - q[None] * d)])

    d = all.centre[:3, None] - points[:3, :, None]
    slot = jnp.arange(all.reach.shape[0], dtype=jnp.int32)
    seen = (jnp.sum(d * d, 0) < (all.reach * all.reach)[None]) & (own[:, None] != slot[None])
    one, two = pull(all.one, all.m[0]), pull(all.two, all.m[1])
    return jnp.sum(jnp.where(seen[None], one + two - pull(all.centre, all.m[0] + all.m[1]), 0), 2)


def outside(spec: Hermite, slots: Slots, q: Array, sources: Array, all: Members) -> Array:
    """Acceleration and jerk [6, 2] at the members of pair `q` by all bodies but the pair."""
    points = jnp.stack([all.one[:, q], all.two[:, q]], 1)
    others = weights(spec, slots).at[slots.first[q]].set(0, mode="drop")
    plain = pairs.pull(points, sources, others)
    own = jnp.full(2, q, jnp.int32)
    seen = jnp.any((all.reach > 0) & (jnp.arange(all.reach.shape[0]) != q))
    return lax.cond(seen, lambda: plain + in_full(points, own, all), lambda: plain)


def centres(spec: Hermite, slots: Slots, due: Array, sources: Array, all: Members) -> Array:
    """Acceleration and jerk [6, S] of the centres of the pairs that are `due` [S]."""
    m = all.m / jnp.maximum(all.m[0] + all.m[1], jnp.finfo(all.m.dtype).tiny)[None]

    def one(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        due, f = carry
        q = jnp.argmax(due)
        pull = outside(spec, slots, q, sources, all)
        return due.at[q].set(False), f.at[:, q].set(m[0, q] * pull[:, 0] + m[1, q] * pull[:, 1])

    return lax.while_loop(lambda carry: jnp.any(carry[0]), one, (due, jnp.zeros_like(all.centre)))[
        1
    ]
