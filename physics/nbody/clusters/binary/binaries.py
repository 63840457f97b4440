"""Regularised pairs in a cluster: the orbit exactly, the rest of the cluster in kicks.

A pair takes one of a fixed number of slots. Its centre of mass moves as one body of the cluster's
block steps; its orbit, in the variables of `ks`, alternates between exact motion and
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

from ...orbits import ks
from ..blocks import Hermite, Population, predicted
from . import sight
from .slots import Pair, Slots, depth, extent, near


def caught_up(spec: Hermite, stars: Population, slots: Slots, now: Array, due: Array) -> Slots:
    """All pairs stepped as far as they come without passing `now`, one after the other.

    due: [] bool, whether stars are: then pairs that are to be dissolved take their last step.
    """

    def turn(slots: Slots) -> Array:
        pair = slots.pairs
        leaving = due & pair.leave & jnp.isfinite(pair.ready)
        return jnp.where(pair.ready <= now, pair.ready, jnp.where(leaving, now, jnp.inf))

    def one(slots: Slots) -> Slots:
        return stepped(spec, stars, slots, jnp.argmin(turn(slots)), now)

    return lax.while_loop(lambda slots: jnp.any(turn(slots) <= now), one, slots)


def stepped(spec: Hermite, stars: Population, slots: Slots, q: Array, now: Array) -> Slots:
    """Pair `q` stepped: half a drift, a kick, half a drift.

    Where a whole step would pass `now` it is the pair's last: one of all the time that is left,
    which ends with the kick, for `sight.apart` does what comes after.
    """
    pair = slots.one(q)
    last = pair.ready > now
    # an orbit that was late and is slow no more goes to where it should be, and no time goes by
    exact = last | (pair.ready == pair.t)
    rest = jnp.where(last, now - pair.t, 0) * spec.interval
    s = jnp.where(exact, 0, stretch(spec, pair.orbit, pair.tide))
    way = lambda: ks.until(pair.orbit, rest / 2 + pair.lost)
    half, before = ks.drift(pair.orbit, lax.cond(exact, way, lambda: s / 2))
    at = pair.t + jnp.where(exact, rest / 2, pair.slow * before) / spec.interval
    sources = lax.optimization_barrier(predicted(spec, stars, at))
    pull, tide = _perturbed(spec, slots, pair, sources, half, at)
    weight = jnp.where(exact, rest / ks.distance(half), pair.slow * s)
    orbit = ks.kick(half, weight, pull)
    tide = 2 * tide * extent(spec, half) ** 3 / orbit.m
    following = stretch(spec, orbit, tide)
    # to the end of this step, and of the next
    ends = jax.tree.map(lambda q: q[..., None], orbit)
    ends, times = ks.drift(ends, jnp.stack([s / 2, s / 2 + following]))
    after, wait = times[0], times[1] - times[0]
    new = replace(
        pair,
        orbit=jax.tree.map(lambda q: q[..., 0], ends),
        t=at + pair.slow * after / spec.interval,
        lost=jnp.where(exact, 0, pair.lost + (pair.slow - 1) * (before + after)),
        tide=tide,
        turn=pair.turn + s * jnp.sqrt(jnp.maximum(-orbit.h / 2, 0)) / jnp.pi,
    )
    new = _paced(spec, new, jnp.take(stars.dt, pair.first) * spec.interval)
    wait = jnp.where((new.slow == 1) & (new.lost != 0), 0, new.slow * wait)
    ready = jnp.where(last, jnp.inf, new.t + wait / spec.interval)
    new = replace(new, ready=ready, leave=last | new.leave)
    return replace(slots, columns=slots.holding(q, new))


def _perturbed(
    spec: Hermite, slots: Slots, pair: Pair, sources: Array, orbit: ks.Orbit, now: Array
) -> tuple[Array, Array]:
    """The relative acceleration [3] of a pair on `orbit` at `now`, and sum m / d^3."""
    centre = lax.dynamic_index_in_dim(sources, pair.first, 1, keepdims=False)
    apart = jnp.concatenate(ks.physical(orbit))
    points = jnp.stack(sight.places(pair, centre, apart), 1)
    seen = near(spec, slots) & (slots.first != pair.first)
    all = lambda: sight.members(spec, slots, sources, sight.apart(spec, slots, now, seen), seen)
    pull = sight.outside(slots, pair, points, sources, seen, all)
    d = sources[:3] - centre[:3, None]
    r2 = jnp.sum(d * d, 0)
    u2 = jnp.where(r2 > 0, 1 / jnp.where(r2 > 0, r2, 1), 0)
    return pull[:3, 1] - pull[:3, 0], jnp.sum(slots.weights * u2 * jnp.sqrt(u2))


def _paced(spec: Hermite, pair: Pair, dt: Array) -> Pair:
    """The pair with its slow-down and whether it stays one; `dt`, the step of its centre."""
    rule, orbit = spec.pairing, pair.orbit
    due = (pair.turn >= 1) | (pair.slow * pair.tide > 4 * rule.weak)
    most = jnp.where(orbit.h < 0, jnp.maximum(dt / ks.period(orbit), 1), 1)
    wish = jnp.clip(rule.weak / jnp.maximum(pair.tide, 1e-30), 1, most)
    slow = jnp.where(due, wish, pair.slow)
    turn = jnp.where(due, 0, pair.turn)
    return replace(pair, slow=slow, turn=turn, leave=_unfit(spec, pair))


def _unfit(spec: Hermite, pair: Pair) -> Array:
    """Whether a pair is too wide, or pulled apart by the others."""
    wide = pair.orbit.h > -depth(spec) / 2
    return wide | (pair.tide > spec.pairing.strong)


def stretch(spec: Hermite, orbit: ks.Orbit, tide: Array) -> Array:
    """Regular time [...] between two kicks: a part of an orbit, the smaller the more disturbed.

    Shrunk by the perturbation as Aarseth (2003), chapter 8, does.
    """
    nu2 = jnp.maximum(-orbit.h / 2, depth(spec) / 4)
    return jnp.pi / (spec.pairing.kicks * jnp.sqrt(nu2) * jnp.cbrt(1 + 1000 * tide))
