"""When two stars become a regularised pair, and when a pair becomes two stars again.

A pair is formed of two stars that are due together, nearest to each other, bound more tightly than
`close` allows, and little disturbed by the rest; it is dissolved once too wide or
too much disturbed. Both happen at the time of a block, where all bodies concerned are known, and
change no position or velocity.
"""

from collections.abc import Callable
from dataclasses import replace

import jax.numpy as jnp
from jax import Array, lax

from ...orbits import ks
from ..blocks import Hermite, Population, first_step, fitting_step, predicted, pull_and_snap
from ..once import once
from . import binaries, sight
from .slots import Slots, depth, extent, near, nobody

# positions over velocities [6, K] -> acceleration and jerk [6, K] from outside
type Outside = Callable[[Array], Array]


def dissolve(
    spec: Hermite,
    stars: Population,
    slots: Slots,
    apart: Array,
    now: Array,
    outside: Outside = jnp.zeros_like,
) -> tuple[Population, Slots]:
    """Split all pairs that are to leave and whose centres are at `now`.

    apart: state [6, S] of the pairs that are to leave, and of those that stars see as two.
    """

    def waiting(carry: tuple[Population, Slots]) -> Array:
        return jnp.any(_to_leave(carry[0], carry[1], now))

    def one(carry: tuple[Population, Slots]) -> tuple[Population, Slots]:
        stars, slots = carry
        q = jnp.argmax(_to_leave(stars, slots, now))
        return _split(spec, stars, slots, q, apart, now, outside)

    return lax.while_loop(waiting, one, (stars, slots))


def _to_leave(stars: Population, slots: Slots, now: Array) -> Array:
    pair = slots.pairs  # whose last step is taken where its centre is at now, see `binaries`
    return pair.leave & (jnp.take(stars.t, pair.first, mode="clip") == now)


def _split(
    spec: Hermite,
    stars: Population,
    slots: Slots,
    q: Array,
    apart: Array,
    now: Array,
    outside: Outside,
) -> tuple[Population, Slots]:
    pair = slots.one(q)
    both = jnp.stack([pair.first, pair.second])
    x = jnp.stack(sight.places(pair, stars.x[:, pair.first], apart[:, q]), 1)
    weights = _put(slots.weights, both, spec.m[both])
    slots = Slots(slots.holding(q, nobody(spec)), weights)
    times = _put(stars.t, both, jnp.stack([now, now]))
    stars = replace(stars, x=_put(stars.x, both, x), t=times)
    return _begun(spec, stars, slots, both, apart, now, outside), slots


def _begun(
    spec: Hermite,
    stars: Population,
    slots: Slots,
    who: Array,
    apart: Array,
    now: Array,
    outside: Outside,
) -> Population:
    """`stars` with new forces and first steps for those of `who` [2], which are at `now`."""
    sources = predicted(spec, stars, now)
    a = stars.a[:3] + spec.interval * (now - stars.t)[None] * stars.a[3:]
    f, snap = pull_and_snap(spec, sources[:, who], sources, a, slots.weights)
    all = sight.members(spec, slots, sources, apart, near(spec, slots))
    f = f + sight.in_full(sources[:, who], jnp.full(who.shape, -1, jnp.int32), all)
    f = f + outside(sources[:, who])
    dt = fitting_step(spec, jnp.min(first_step(spec, f, snap)), now)
    return replace(stars, a=_put(stars.a, who, f), dt=_put(stars.dt, who, jnp.stack([dt, dt])))


def _put(all: Array, who: Array, values: Array) -> Array:
    """`all` [..., N] with the values [..., 2] of two stars; without a scatter, see `once`."""
    return all.at[..., who[0]].set(values[..., 0]).at[..., who[1]].set(values[..., 1])


def form(
    spec: Hermite, stars: Population, slots: Slots, now: Array
) -> tuple[Population, Slots, Array]:
    """Pair the star of the shortest step with its neighbour, if they fit; how many were refused."""
    single, dt, gate = _candidates(spec, stars, slots, now)
    formed = lambda old: _formed(spec, old[0], old[1], single, dt, now)
    return once(jnp.any(dt < gate), formed, (stars, slots, jnp.int32(0)))


def form_all(
    spec: Hermite, stars: Population, slots: Slots, now: Array
) -> tuple[Population, Slots, Array]:
    """Pair all stars that fit, for a beginning; and how often no slot was free.

    Every star of a short step has its turn: one that fits no neighbour keeps no other from its own.
    """

    def one(
        carry: tuple[Population, Slots, Array, Array, Array],
    ) -> tuple[Population, Slots, Array, Array, Array]:
        stars, slots, refused, tried, _ = carry
        single, dt, gate = _candidates(spec, stars, slots, now)
        dt = jnp.where(tried, jnp.inf, dt)
        some = jnp.any(dt < gate)
        tried = tried.at[jnp.argmin(dt)].set(True)
        formed = lambda old: _formed(spec, old[0], old[1], single, dt, now)
        stars, slots, no = once(some, formed, (stars, slots, jnp.int32(0)))
        return stars, slots, refused + no, tried, some

    nobody = jnp.zeros(stars.dt.shape, bool)
    start = stars, slots, jnp.int32(0), nobody, jnp.bool_(True)
    return lax.while_loop(lambda carry: carry[4], one, start)[:3]


def _candidates(
    spec: Hermite, stars: Population, slots: Slots, now: Array
) -> tuple[Array, Array, Array]:
    """Who is in no pair [N], steps [N] of those of them that are due, and what is short [N]."""
    single = jnp.isfinite(stars.dt).at[slots.first].set(False, mode="drop")
    dt = jnp.where((stars.t == now) & single, stars.dt, jnp.inf)
    # where a pair is as wide as may be its step is no longer than this, whoever the other star is
    both = (spec.m + jnp.max(spec.m)) / 2
    return single, dt, jnp.sqrt(spec.eta / depth(spec) ** 3) * both / spec.interval


def _formed(
    spec: Hermite, stars: Population, slots: Slots, single: Array, dt: Array, now: Array
) -> tuple[Population, Slots, Array]:
    one = jnp.argmin(dt)
    x = predicted(spec, stars, now)
    d = x[:3] - x[:3, one, None]
    r2 = jnp.sum(d * d, 0)
    mass = slots.weights
    r2 = jnp.where(mass > 0, r2, jnp.inf).at[one].set(jnp.inf)
    two = jnp.argmin(r2)
    apart = x[:, two] - x[:, one]
    orbit = ks.regularised(apart[:3], apart[3:], spec.m[one] + spec.m[two])
    fit = single[two] & (stars.t[two] == now) & _fit(spec, orbit, one, two, x, mass)
    free = slots.first == spec.m.shape[0]
    room = jnp.any(free)
    joined = lambda: _joined(spec, stars, slots, (one, two, jnp.argmax(free)), orbit, now)
    stars, slots = lax.cond(fit & room, joined, lambda: (stars, slots))
    return stars, slots, (fit & ~room).astype(jnp.int32)


def _fit(spec: Hermite, orbit: ks.Orbit, one: Array, two: Array, x: Array, mass: Array) -> Array:
    """Whether two stars are bound tightly, and little disturbed."""
    tight = orbit.h < -depth(spec)
    d = x[:3] - x[:3, one, None]
    r2 = jnp.sum(d * d, 0).at[one].set(jnp.inf).at[two].set(jnp.inf)
    tide = 2 * jnp.sum(mass / (r2 * jnp.sqrt(r2))) * extent(spec, orbit) ** 3 / orbit.m
    return tight & (tide < spec.pairing.strong / 4)


def _joined(
    spec: Hermite,
    stars: Population,
    slots: Slots,
    who: tuple[Array, Array, Array],
    orbit: ks.Orbit,
    now: Array,
) -> tuple[Population, Slots]:
    one, two, q = who
    m, n = spec.m[one], spec.m[two]
    mean = lambda all: (m * all[:, one] + n * all[:, two]) / (m + n)
    x = stars.x.at[:, one].set(mean(stars.x)).at[:, two].set(mean(stars.x))
    # their mutual pulls cancel; the step may grow from theirs by a power of two at a time
    a = stars.a.at[:, one].set(mean(stars.a)).at[:, two].set(0)
    stars = replace(stars, x=x, a=a, dt=stars.dt.at[two].set(jnp.inf))
    strong = jnp.ones_like(now) * spec.pairing.strong / 4  # until the first kick knows better
    wait = ks.drift(orbit, binaries.stretch(spec, orbit, strong))[1]
    pair = replace(
        nobody(spec),
        first=one.astype(jnp.int32),
        second=two.astype(jnp.int32),
        m=jnp.stack([m, n]),
        part=jnp.stack([m, n]) / (m + n),
        orbit=orbit,
        t=now,
        ready=now + wait / spec.interval,
        tide=strong,
    )
    mass = slots.weights.at[one].set(m + n).at[two].set(0)
    return stars, Slots(slots.holding(q, pair), mass)
