"""Steps of regularised pairs: the orbit exactly, the rest of the cluster in kicks.

A pair takes one of a fixed number of slots. Its centre of mass moves as one body of the cluster's
block steps; its orbit, in Kustaanheimo-Stiefel variables, alternates between exact motion and
kicks by the tide of all other bodies, equally spaced in the eccentric anomaly, where even a
moderate number of kicks averages a tide exactly. The scheme is reversible in time and of second
order in the perturbation alone: without one it is exact for every eccentricity.

A weakly perturbed pair is slowed down (Mikkola & Aarseth 1996, doi:10.1007/BF00728347): its orbit
goes `slowdown` times slower and every kick counts `slowdown` times, which keeps all secular
effects. The time its orbit lags behind is kept and given back, so that its phase is right but for
the perturbation. Other stars feel a weakly perturbed pair as a point, and its members otherwise.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array, lax

from ...orbits import ks
from ..blocks import PairedSteps, Population, predicted
from . import forces
from .ks_pairs import Pair, Pairs, extent, resolved, too_wide
from .members import members, places, relative_states


def caught_up(spec: PairedSteps, stars: Population, pairs: Pairs, now: Array, due: Array) -> Pairs:
    """All pairs stepped as far as they come without passing `now`, one after the other.

    due: [] bool, whether stars are: then pairs that are to be dissolved take their last step.
    """

    def next_end(pairs: Pairs) -> Array:
        # infinite for a pair that has nothing to do before `now`, so that the loop comes to its end
        pair = pairs.batch
        leaving = due & pair.dissolving & jnp.isfinite(pair.ready)
        return jnp.where(pair.ready <= now, pair.ready, jnp.where(leaving, now, jnp.inf))

    def one(pairs: Pairs) -> Pairs:
        # in order of time, for a pair is perturbed by where the others are
        return stepped(spec, stars, pairs, jnp.argmin(next_end(pairs)), now)

    return lax.while_loop(lambda pairs: jnp.any(next_end(pairs) <= now), one, pairs)


def all_brought_to(spec: PairedSteps, stars: Population, pairs: Pairs, now: Array) -> Pairs:
    """Every pair with its last step taken, up to `now`."""
    held = pairs.held
    step = lambda slot, pairs: stepped(spec, stars, pairs, slot, now)
    one = lambda slot, pairs: lax.cond(held[slot], step, lambda _, pairs: pairs, slot, pairs)
    return lax.fori_loop(0, spec.pairing.slots, one, pairs)


def stepped(spec: PairedSteps, stars: Population, pairs: Pairs, slot: Array, now: Array) -> Pairs:
    """The pair in a slot stepped: half a drift, a kick, half a drift.

    Where a whole step would pass `now` it is the pair's last: one of all the time that is left,
    which ends with the kick, for `members.relative_states` does what comes after.
    """
    pair = pairs.one(slot)
    last = pair.ready > now
    # an orbit that lagged and is slow no more goes to where it should be, and no time goes by
    exact = last | (pair.ready == pair.t)
    rest = jnp.where(last, now - pair.t, 0) * spec.interval
    s = jnp.where(exact, 0, regular_step(spec, pairs, pair.orbit, pair.tide))
    solved = lambda: ks.until(pair.orbit, rest / 2 + pair.lag)
    half, before = ks.drift(pair.orbit, lax.cond(exact, solved, lambda: s / 2))
    at = pair.t + jnp.where(exact, rest / 2, pair.slowdown * before) / spec.interval
    sources = lax.optimization_barrier(predicted(spec, stars, at))
    pull, tide = _perturbation(spec, pairs, pair, sources, half, at)
    weight = jnp.where(exact, rest / ks.distance(half), pair.slowdown * s)
    orbit = ks.kick(half, weight, pull)
    tide = 2 * tide * extent(pairs, half) ** 3 / orbit.m
    following = regular_step(spec, pairs, orbit, tide)
    # to the end of this step, and of the next
    ends = jax.tree.map(lambda q: q[..., None], orbit)
    ends, times = ks.drift(ends, jnp.stack([s / 2, s / 2 + following]))
    after, wait = times[0], times[1] - times[0]
    new = replace(
        pair,
        orbit=jax.tree.map(lambda q: q[..., 0], ends),
        t=at + pair.slowdown * after / spec.interval,
        lag=jnp.where(exact, 0, pair.lag + (pair.slowdown - 1) * (before + after)),
        tide=tide,
        revolutions=pair.revolutions + s * jnp.sqrt(jnp.maximum(-orbit.h / 2, 0)) / jnp.pi,
    )
    new = _with_slowdown(spec, pairs, new, jnp.take(stars.dt, pair.first) * spec.interval)
    wait = jnp.where((new.slowdown == 1) & (new.lag != 0), 0, new.slowdown * wait)
    ready = jnp.where(last, jnp.inf, new.t + wait / spec.interval)
    new = replace(new, ready=ready, dissolving=last | new.dissolving)
    return replace(pairs, columns=pairs.holding(slot, new))


def _perturbation(
    spec: PairedSteps, pairs: Pairs, pair: Pair, sources: Array, orbit: ks.Orbit, now: Array
) -> tuple[Array, Array]:
    """The relative acceleration [3] of a pair on `orbit` at `now`, and sum m / d^3."""
    centre = lax.dynamic_index_in_dim(sources, pair.first, 1, keepdims=False)
    relative = jnp.concatenate(ks.physical(orbit))
    points = jnp.stack(places(pair, centre, relative), 1)
    acting = resolved(spec.pairing, pairs) & (pairs.first != pair.first)
    others = lambda: members(
        spec, pairs, sources, relative_states(spec, pairs, now, acting), acting
    )
    pull = forces.on_members(pairs, pair, points, sources, acting, others)
    d = sources[:3] - centre[:3, None]
    r2 = jnp.sum(d * d, 0)
    u2 = jnp.where(r2 > 0, 1 / jnp.where(r2 > 0, r2, 1), 0)
    return pull[:3, 1] - pull[:3, 0], jnp.sum(pairs.weights * u2 * jnp.sqrt(u2))


def _with_slowdown(spec: PairedSteps, pairs: Pairs, pair: Pair, dt: Array) -> Pair:
    """The pair with its slow-down and whether it stays one; `dt`, the step of its centre."""
    rule, orbit = spec.pairing, pair.orbit
    # chosen anew after whole orbits only, for a factor that changes within one is no average
    choose = (pair.revolutions >= 1) | (pair.slowdown * pair.tide > 4 * rule.weak)
    most = jnp.where(orbit.h < 0, jnp.maximum(dt / ks.period(orbit), 1), 1)
    wanted = jnp.clip(rule.weak / jnp.maximum(pair.tide, 1e-30), 1, most)
    return replace(
        pair,
        slowdown=jnp.where(choose, wanted, pair.slowdown),
        revolutions=jnp.where(choose, 0, pair.revolutions),
        dissolving=too_wide(pairs, orbit) | (pair.tide > rule.strong),
    )


def regular_step(spec: PairedSteps, pairs: Pairs, orbit: ks.Orbit, tide: Array) -> Array:
    """Regular time [...] between two kicks: a part of an orbit, the smaller the more disturbed.

    Shrunk by the perturbation as Aarseth (2003), chapter 8, does.
    """
    nu2 = jnp.maximum(-orbit.h / 2, pairs.limit / 4)
    return jnp.pi / (spec.pairing.kicks * jnp.sqrt(nu2) * jnp.cbrt(1 + 1000 * tide))
