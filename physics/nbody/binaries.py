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
from jaxgpu.physics.nbody.slots import Slots, depth, extent, near, weights


def caught_up(spec: Hermite, stars: Population, slots: Slots, now: Array) -> Slots:
    """All pairs stepped as far as they come without passing `now`, one after the other."""
    behind = lambda slots: jnp.min(slots.ready) <= now
    return lax.while_loop(behind, lambda slots: _stepped(spec, stars, slots), slots)


def _stepped(spec: Hermite, stars: Population, slots: Slots) -> Slots:
    """The pair that is next, stepped: half a drift, a kick, half a drift."""
    q = jnp.argmin(slots.ready)
    pair = jax.tree.map(lambda all: all[..., q], slots)
    s = stretch(spec, pair.orbit, pair.tide)
    half, before = regular.drift(pair.orbit, s / 2)
    now = pair.t + pair.slow * before / spec.interval
    sources = lax.optimization_barrier(predicted(spec, stars, now))
    apart = jnp.concatenate(regular.physical(half))
    pull, tide = perturbed(spec, slots, q, sources, apart, now)
    orbit, after = regular.drift(regular.kick(half, pair.slow * s, pull), s / 2)
    taken = before + after
    t = pair.t + pair.slow * taken / spec.interval
    lost = pair.lost + (pair.slow - 1) * taken
    tide = 2 * tide * extent(spec, half) ** 3 / orbit.m
    turn = pair.turn + s * jnp.sqrt(jnp.maximum(-orbit.h / 2, 0)) / jnp.pi
    pair = replace(pair, orbit=orbit, t=t, lost=lost, tide=tide, turn=turn)
    pair = _paced(spec, pair, jnp.take(stars.dt, pair.first) * spec.interval)
    return jax.tree.map(lambda all, one: all.at[..., q].set(one), slots, pair)


def perturbed(
    spec: Hermite, slots: Slots, q: Array, sources: Array, apart: Array, now: Array
) -> tuple[Array, Array]:
    """The relative acceleration [3] of pair `q`, its members `apart` [6], and sum m / d^3."""
    seen = near(spec, slots) & (jnp.arange(slots.t.shape[0]) != q)
    all = sight.members_if(jnp.any(seen), spec, slots, sources, now, seen)
    m, centre = all.m[:, q] / (all.m[0, q] + all.m[1, q]), all.centre[:, q]
    one, two = centre - m[1] * apart, centre + m[0] * apart
    all = replace(all, one=all.one.at[:, q].set(one), two=all.two.at[:, q].set(two))
    pull = sight.outside(spec, slots, q, sources, all)
    d = sources[:3] - centre[:3, None]
    r2 = jnp.sum(d * d, 0)
    u2 = jnp.where(r2 > 0, 1 / jnp.where(r2 > 0, r2, 1), 0)
    return pull[:3, 1] - pull[:3, 0], jnp.sum(weights(spec, slots) * u2 * jnp.sqrt(u2))


def _paced(spec: Hermite, pair: Slots, dt: Array) -> Slots:
    """The pair with its slow-down, its next step and whether it stays one; `dt`, its centre's."""
    rule, orbit = spec.pairing, pair.orbit
    bound = orbit.h < 0
    due = (pair.turn >= 1) | (pair.slow * pair.tide > 4 * rule.weak)
    most = jnp.where(bound, jnp.maximum(dt / regular.period(orbit), 1), 1)
    wish = jnp.clip(rule.weak / jnp.maximum(pair.tide, 1e-30), 1, most)
    slow = jnp.where(due, wish, pair.slow)
    awake = (slow == 1) & (pair.lost != 0)
    orbit = lax.cond(awake, lambda: regular.after(orbit, pair.lost), lambda: orbit)
    lost = jnp.where(awake, 0, pair.lost)
    ready = pair.t + slow * regular.drift(orbit, stretch(spec, orbit, pair.tide))[1] / spec.interval
    turn = jnp.where(due, 0, pair.turn)
    return replace(
        pair, orbit=orbit, slow=slow, lost=lost, ready=ready, turn=turn, leave=_unfit(spec, pair)
    )


def _unfit(spec: Hermite, pair: Slots) -> Array:
    """Whether a pair is too wide, or pulled apart by the others."""
    wide = pair.orbit.h > -depth(spec) / 2
    return wide | (pair.tide > spec.pairing.strong)


def stretch(spec: Hermite, orbit: regular.Orbit, tide: Array) -> Array:
    """Regular time [...] between two kicks: a part of an orbit, the smaller the more disturbed.

    Shrunk by the perturbation as Aarseth (2003), chapter 8, does.
    """
    nu2 = jnp.maximum(-orbit.h / 2, depth(spec) / 4)
    return jnp.pi / (spec.pairing.kicks * jnp.sqrt(nu2) * jnp.cbrt(1 + 1000 * tide))
