"""Regularised pairs in a cluster: the orbit exactly, the rest of the cluster in kicks.

A pair takes one of a fixed number of slots. Its centre of mass moves as one body of the cluster's
block steps; its orbit, in the variables of `regular`, alternates between exact motion and
kicks by the tide of all other bodies, equally spaced in the eccentric anomaly, where even a
moderate number of kicks averages a tide exactly. The scheme is reversible in time and of second
order in the perturbation alone: without one it is exact for every eccentricity.

A weakly perturbed pair is slowed down (Mikkola & Aarseth 1996, doi:10.1007/BF00728347): its orbit
goes `slow` times slower and every kick counts `slow` times, which keeps all secular effects. The
time its orbit lost is kept and given back, so that its phase is right but for the perturbation.
Other stars see a weakly perturbed pair as a point, and its members otherwise.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.physics.nbody import regular, sight
from jaxgpu.physics.nbody.blocks import Hermite, Population, predicted
from jaxgpu.physics.nbody.slots import Pair, Slots, depth, extent, near


def caught_up(spec: Hermite, stars: Population, slots: Slots, now: Array, due: Array) -> Slots:
    """All pairs stepped as far as they come without passing `now`, one after the other.

    due: [] bool, whether stars are: then pairs that are to be dissolved are brought to `now`.
    """

    def ends(slots: Slots) -> Array:
        pair = slots.pairs
        return jnp.where(due & pair.leave & (pair.t < now), now, jnp.inf)

    def following(slots: Slots) -> tuple[Array, Array, Array]:
        """Which pair is next, whether it is any, and where its step must end."""
        ready = slots.pairs.ready
        last = jnp.min(ready) > now
        when = jnp.where(last, ends(slots), ready)
        return jnp.argmin(when), jnp.min(when) <= now, jnp.where(last, now, jnp.inf)

    def one(carry: tuple[Slots, tuple]) -> tuple[Slots, tuple]:
        slots, (q, _, end) = carry
        slots = stepped(spec, stars, slots, q, end)
        return slots, following(slots)

    return lax.while_loop(lambda carry: carry[1][1], one, (slots, following(slots)))[0]


def stepped(spec: Hermite, stars: Population, slots: Slots, q: Array, end: Array) -> Slots:
    """Pair `q` stepped: half a drift, a kick, half a drift; to `end` as its last, if finite."""
    pair, last = slots.one(q), jnp.isfinite(end)
    rest = jnp.where(last, end - pair.t, 0) * spec.interval
    s = stretch(spec, pair.orbit, pair.tide)
    way = lambda: regular.until(slots.one(q).orbit, rest / 2 + pair.lost)
    half, before = regular.drift(pair.orbit, lax.cond(last, way, lambda: s / 2))
    part = jnp.where(last, rest / 2, pair.slow * before)
    now = pair.t + part / spec.interval
    sources = lax.optimization_barrier(predicted(spec, stars, now))
    apart = jnp.concatenate(regular.physical(half))
    pull, tide = _perturbed(spec, slots, pair, sources, apart, now)
    kicked = regular.kick(half, jnp.where(last, rest / regular.distance(half), pair.slow * s), pull)
    orbit, after = regular.drift(kicked, s / 2)
    taken = before + after
    new = replace(
        pair,
        orbit=orbit,
        t=pair.t + pair.slow * taken / spec.interval,
        lost=pair.lost + (pair.slow - 1) * taken,
        tide=2 * tide * extent(spec, half) ** 3 / orbit.m,
        turn=pair.turn + s * jnp.sqrt(jnp.maximum(-orbit.h / 2, 0)) / jnp.pi,
    )
    new = _paced(spec, new, jnp.take(stars.dt, pair.first) * spec.interval)
    gone = replace(pair, orbit=kicked, t=end)
    new = jax.tree.map(lambda new, gone: jnp.where(last, gone, new), new, gone)
    # the time that an orbit was late that is slow no more, or the other half of the last step
    rest = jnp.where(last, rest / 2, jnp.where(new.slow == 1, new.lost, 0))
    way = lambda: regular.after(new.orbit, rest)
    orbit = lax.cond(rest != 0, way, lambda: new.orbit)
    lost = jnp.where(last | (new.slow == 1), 0, new.lost)
    wait = regular.drift(orbit, stretch(spec, orbit, new.tide))[1]
    ready = jnp.where(last, jnp.inf, new.t + new.slow * wait / spec.interval)
    new = replace(new, orbit=orbit, lost=lost, ready=ready)
    return replace(slots, columns=slots.holding(q, new))


def _perturbed(
    spec: Hermite, slots: Slots, pair: Pair, sources: Array, apart: Array, now: Array
) -> tuple[Array, Array]:
    """The relative acceleration [3] of a pair, its members `apart` [6], and sum m / d^3."""
    seen = near(spec, slots) & (slots.first != pair.first)
    all = sight.members(spec, slots, sources, sight.apart(spec, slots, now, seen), seen)
    centre = lax.dynamic_index_in_dim(sources, pair.first, 1, keepdims=False)
    points = jnp.stack(sight.places(pair, centre, apart), 1)
    pull = sight.outside(slots, pair, points, sources, all)
    d = sources[:3] - centre[:3, None]
    r2 = jnp.sum(d * d, 0)
    u2 = jnp.where(r2 > 0, 1 / jnp.where(r2 > 0, r2, 1), 0)
    return pull[:3, 1] - pull[:3, 0], jnp.sum(slots.weights * u2 * jnp.sqrt(u2))


def _paced(spec: Hermite, pair: Pair, dt: Array) -> Pair:
    """The pair with its slow-down and whether it stays one; `dt`, the step of its centre."""
    rule, orbit = spec.pairing, pair.orbit
    due = (pair.turn >= 1) | (pair.slow * pair.tide > 4 * rule.weak)
    most = jnp.where(orbit.h < 0, jnp.maximum(dt / regular.period(orbit), 1), 1)
    wish = jnp.clip(rule.weak / jnp.maximum(pair.tide, 1e-30), 1, most)
    slow = jnp.where(due, wish, pair.slow)
    turn = jnp.where(due, 0, pair.turn)
    return replace(pair, slow=slow, turn=turn, leave=_unfit(spec, pair))


def _unfit(spec: Hermite, pair: Pair) -> Array:
    """Whether a pair is too wide, or pulled apart by the others."""
    wide = pair.orbit.h > -depth(spec) / 2
    return wide | (pair.tide > spec.pairing.strong)


def stretch(spec: Hermite, orbit: regular.Orbit, tide: Array) -> Array:
    """Regular time [...] between two kicks: a part of an orbit, the smaller the more disturbed.

    Shrunk by the perturbation as Aarseth (2003), chapter 8, does.
    """
    nu2 = jnp.maximum(-orbit.h / 2, depth(spec) / 4)
    return jnp.pi / (spec.pairing.kicks * jnp.sqrt(nu2) * jnp.cbrt(1 + 1000 * tide))
