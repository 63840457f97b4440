"""How bodies of a cluster see its regularised pairs, and a pair them: as points, or as two.

A weakly perturbed pair is a point for other stars; one that is not is seen as its two members by
all within reach, and its centre feels the mean of what its members feel. To massless bodies every
pair is two, in true phase. Without pairs in sight nothing of this is computed.
"""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.pytree import pytree

from ...forces import pairs
from ...forces.sums import summed
from ...orbits import ks
from ..blocks import Hermite
from ..once import once
from .slots import Pair, Slots, extent, near

_LANES = 8  # orbits solved together: a vector of float64

# (indices [B] of bodies, their predicted states [6, B]) -> acceleration and jerk [6, B]
type Pull = Callable[[Array, Array], Array]


@pytree
class Members:
    """Where the members of the pairs are."""

    first: Array  # [S] int32: star whose place the centre takes; N where the slot is free
    one: Array  # [6, S]
    two: Array  # [6, S]
    centre: Array  # [6, S]
    m: Array  # [2, S] masses; 0 where the slot is free
    reach: Array  # [S] within this distance the members are seen, beyond it the centre; or 0


def seen_by_tracers(slots: Slots, sources: Array, all: Members) -> Pull:
    """The pull of all stars on massless bodies, which see every pair as two, in true phase."""
    some = jnp.any(all.reach > 0)

    def pull(index: Array, x: Array) -> Array:
        plain = pairs.pull(x, sources, slots.weights)
        nobody = jnp.full(index.shape, -1, jnp.int32)
        return once(some, lambda plain: plain + in_full(x, nobody, all), plain)

    return pull


def seen_by_stars(spec: Hermite, slots: Slots, sources: Array, due: Array, all: Members) -> Pull:
    """The pull of all stars on stars and on centres of pairs, of which `due` [N] will ask."""
    seen = near(spec, slots)
    some, all = jnp.any(seen), replace(all, reach=jnp.where(seen, all.reach, 0))
    asked = seen & jnp.take(due, slots.first, mode="clip")
    on_centres = centres(slots, asked, sources, all)

    def pull(index: Array, x: Array) -> Array:
        def full(plain: Array) -> Array:
            own = (index[:, None] == all.first[None]) & seen[None]
            centre = jnp.take(on_centres, jnp.argmax(own, 1), axis=1)
            return jnp.where(jnp.any(own, 1)[None], centre, plain + in_full(x, index, all))

        return once(some, full, pairs.pull(x, sources, slots.weights))

    return pull


def seen(
    spec: Hermite, slots: Slots, sources: Array, now: Array, who: Array
) -> tuple[Array, Members]:
    """What is `apart` and the `members` of the pairs; zeros where none of `who` [S] is seen."""

    def there() -> tuple[Array, Members]:
        between = apart(spec, slots, now, who)
        return between, members(spec, slots, sources, between, who)

    nothing = jax.tree.map(lambda q: jnp.zeros(q.shape, q.dtype), jax.eval_shape(there))
    return once(jnp.any(who), lambda _: there(), nothing)


def apart(spec: Hermite, slots: Slots, now: Array, who: Array) -> Array:
    """State [6, S] of the second star of each pair relative to its first, of those of `who` [S].

    Eight at a time, up to the last that is asked for: pairs take the first slots that are free.
    """
    count = who.size
    width = min(_LANES, count)

    def some(k: Array, states: Array) -> Array:
        first = k * width
        pair = replace(
            slots, columns=lax.dynamic_slice_in_dim(slots.columns, first, width, 1)
        ).pairs
        late = (now - pair.t) * spec.interval + pair.lost
        here = jnp.concatenate(ks.physical(ks.after(pair.orbit, late)))
        return lax.dynamic_update_slice_in_dim(states, here, first, 1)

    last = jnp.max(jnp.where(who, jnp.arange(1, count + 1, dtype=jnp.int32), 0))
    none = jnp.zeros((6, count), now.dtype)
    return lax.fori_loop(0, (last + width - 1) // width, some, none)


def members(spec: Hermite, slots: Slots, sources: Array, apart: Array, who: Array) -> Members:
    """The pairs among stars at `sources` [6, N], two stars `apart` [6, S]; `who` [S] are seen."""
    pair = slots.pairs
    centre = jnp.take(sources, pair.first, axis=1, mode="clip")
    reach = extent(spec, pair.orbit) * jnp.cbrt(2 / spec.pairing.weak)
    one, two = places(pair, centre, apart)
    return Members(pair.first, one, two, centre, pair.m, jnp.where(who, reach, 0))


def places(pair: Pair, centre: Array, apart: Array) -> tuple[Array, Array]:
    """States [6, ...] of the two stars of pairs."""
    return centre - pair.part[1][None] * apart, centre + pair.part[0][None] * apart


def in_full(points: Array, who: Array, all: Members) -> Array:
    """What members within reach add to the pull [6, K] of their centres at `points` [6, K].

    who: [K] int32, the star that each point is; a pair does not pull its own centre. -1 for none.
    """

    def terms(t: list[Array], s: list[Array]) -> list[Array]:
        d = [b - a for a, b in zip(t[:3], s[12:15])]
        seen = (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] < s[20] * s[20]) & (t[6] != s[21])
        one, two, centre = (_pull(t, s[k : k + 6], seen) for k in (0, 6, 12))
        m, n, both = s[18], s[19], s[18] + s[19]
        return [m * p + n * q - both * r for p, q, r in zip(one, two, centre)]

    first, who = (q.astype(points.dtype) for q in (all.first, who))
    return summed(terms, [points, who], [all.one, all.two, all.centre, all.m, all.reach, first], 6)


def _pull(t: list[Array], s: list[Array], seen: Array) -> list[Array]:
    """By one unit of mass, where it is seen and elsewhere."""
    d, w = ([b - a for a, b in zip(t[k : k + 3], s[k : k + 3])] for k in (0, 3))
    r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
    some = seen & (r2 > 0)
    u2 = jnp.where(some, 1 / jnp.where(some, r2, 1), 0)
    p, q = u2 * jnp.sqrt(u2), 3 * (d[0] * w[0] + d[1] * w[1] + d[2] * w[2]) * u2
    return [p * c for c in d] + [p * (e - q * c) for c, e in zip(d, w)]


def outside(
    slots: Slots,
    pair: Pair,
    points: Array,
    sources: Array,
    seen: Array,
    all: Callable[[], Members],
) -> Array:
    """Acceleration and jerk [6, 2] at the members of a pair, at `points`, by all but the pair.

    seen: [S] whether other pairs are seen as their members, `all`, which are asked for only then.
    """
    star = jnp.arange(slots.weights.size, dtype=jnp.int32)
    plain = pairs.pull(points, sources, jnp.where(star == pair.first, 0, slots.weights))
    own = jnp.full(2, pair.first)
    return lax.cond(jnp.any(seen), lambda: plain + in_full(points, own, all()), lambda: plain)


def centres(slots: Slots, due: Array, sources: Array, all: Members) -> Array:
    """Acceleration and jerk [6, S] of the centres of the pairs that are `due` [S]."""

    def one(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        due, f = carry
        q = jnp.argmax(due)
        pair, at = slots.one(q), lambda all: lax.dynamic_index_in_dim(all, q, 1)
        points, seen = jnp.concatenate([at(all.one), at(all.two)], 1), all.reach > 0
        seen = seen & (all.first != pair.first)
        pull = outside(slots, pair, points, sources, seen, lambda: all)
        mean = pair.part[0] * pull[:, :1] + pair.part[1] * pull[:, 1:]
        done = lax.dynamic_update_index_in_dim(due, jnp.bool_(False), q, 0)
        return done, lax.dynamic_update_slice_in_dim(f, mean, q, 1)

    waiting = lambda carry: jnp.any(carry[0])
    return lax.while_loop(waiting, one, (due, jnp.zeros_like(all.centre)))[1]
