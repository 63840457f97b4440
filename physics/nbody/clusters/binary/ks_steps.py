"""Steps of regularised pairs: exact Kepler motion, with the rest of the cluster as kicks.

A pair occupies one of a fixed number of slots. Its centre of mass moves as one body of the
cluster's block steps. Its orbit, in Kustaanheimo-Stiefel variables, alternates between exact motion
and kicks by the tide of all other bodies. Kicks are equally spaced in the eccentric anomaly, where
even a moderate number averages a tide exactly. The scheme is time-reversible and of second order in
the perturbation only: without perturbation it is exact for every eccentricity.

A weakly perturbed pair is slowed down (Mikkola & Aarseth 1996, doi:10.1007/BF00728347): its orbit
advances `slowdown` times slower and every kick counts `slowdown` times, which preserves all secular
effects. The lag of the orbit is stored and restored, so that its phase is correct except for the
perturbation. A weakly perturbed pair acts on other stars as a point, otherwise as its members.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array, lax

from ...orbits import ks
from ..blocks import PairedSteps, Population, predict
from . import forces
from .ks_pairs import Pair, Pairs, extent, is_resolved, is_too_wide
from .members import member_states, members, relative_states


def catch_up(spec: PairedSteps, stars: Population, pairs: Pairs, now: Array, due: Array) -> Pairs:
    """Advance all pairs as far as possible without passing `now`, in order of time.

    due: [] bool, whether stars are due: pairs that will be dissolved then take their last step.
    """

    def next_end(pairs: Pairs) -> Array:
        # infinite for a pair without a step before `now`, so that the loop ends
        pair = pairs.batch
        leaving = due & pair.dissolving & jnp.isfinite(pair.ready)
        return jnp.where(pair.ready <= now, pair.ready, jnp.where(leaving, now, jnp.inf))

    def step_earliest(pairs: Pairs) -> Pairs:
        # in order of time, since the positions of the other pairs perturb a pair
        return step_pair(spec, stars, pairs, jnp.argmin(next_end(pairs)), now)

    return lax.while_loop(lambda pairs: jnp.any(next_end(pairs) <= now), step_earliest, pairs)


def synchronize(spec: PairedSteps, stars: Population, pairs: Pairs, now: Array) -> Pairs:
    """Advance every pair to `now` with its last step."""
    held = pairs.is_occupied
    step = lambda slot, pairs: step_pair(spec, stars, pairs, slot, now)
    step_slot = lambda slot, pairs: lax.cond(held[slot], step, lambda _, pairs: pairs, slot, pairs)
    return lax.fori_loop(0, spec.pairing.slots, step_slot, pairs)


def step_pair(spec: PairedSteps, stars: Population, pairs: Pairs, slot: Array, now: Array) -> Pairs:
    """Advance the pair in a slot by one step: half a drift, a kick, half a drift.

    If a full step would pass `now`, the step is the pair's last: it covers the remaining time and
    ends with the kick, since `members.relative_states` does the second drift.
    """
    pair = pairs.get_pair(slot)
    last = pair.ready > now
    # an orbit that is no longer slowed down makes up for its lag, without advancing the time
    exact = last | (pair.ready == pair.t)
    rest = jnp.where(last, now - pair.t, 0) * spec.interval
    s = jnp.where(exact, 0, regular_step(spec, pairs, pair.orbit, pair.tide))
    solve_regular_time = lambda: ks.regular_time(pair.orbit, rest / 2 + pair.lag)
    half, before = ks.drift(pair.orbit, lax.cond(exact, solve_regular_time, lambda: s / 2))
    at = pair.t + jnp.where(exact, rest / 2, pair.slowdown * before) / spec.interval
    sources = lax.optimization_barrier(predict(spec, stars, at))
    pull, tide = _perturbation(spec, pairs, pair, sources, half, at)
    weight = jnp.where(exact, rest / ks.distance(half), pair.slowdown * s)
    orbit = ks.kick(half, weight, pull)
    tide = 2 * tide * extent(pairs, half) ** 3 / orbit.m
    following = regular_step(spec, pairs, orbit, tide)
    # the ends of this step and of the next one
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
    new = _update_slowdown(spec, pairs, new, jnp.take(stars.dt, pair.first) * spec.interval)
    wait = jnp.where((new.slowdown == 1) & (new.lag != 0), 0, new.slowdown * wait)
    ready = jnp.where(last, jnp.inf, new.t + wait / spec.interval)
    new = replace(new, ready=ready, dissolving=last | new.dissolving)
    return replace(pairs, columns=pairs.set_pair(slot, new))


def _perturbation(
    spec: PairedSteps, pairs: Pairs, pair: Pair, sources: Array, orbit: ks.Orbit, now: Array
) -> tuple[Array, Array]:
    """Return the relative acceleration [3] of a pair at `now`, and the sum of m / d^3."""
    centre = lax.dynamic_index_in_dim(sources, pair.first, 1, keepdims=False)
    relative = jnp.concatenate(ks.to_cartesian(orbit))
    points = jnp.stack(member_states(pair, centre, relative), 1)
    acting = is_resolved(spec.pairing, pairs) & (pairs.first != pair.first)
    other_members = lambda: members(
        spec, pairs, sources, relative_states(spec, pairs, now, acting), acting
    )
    pull = forces.on_members(pairs, pair, points, sources, acting, other_members)
    d = sources[:3] - centre[:3, None]
    r2 = jnp.sum(d * d, 0)
    u2 = jnp.where(r2 > 0, 1 / jnp.where(r2 > 0, r2, 1), 0)
    return pull[:3, 1] - pull[:3, 0], jnp.sum(pairs.weights * u2 * jnp.sqrt(u2))


def _update_slowdown(spec: PairedSteps, pairs: Pairs, pair: Pair, dt: Array) -> Pair:
    """Update the slow-down of a pair and whether to dissolve it; `dt` is the step of its centre."""
    rule, orbit = spec.pairing, pair.orbit
    # updated after full orbits only, since a factor that changes within an orbit biases averages
    choose = (pair.revolutions >= 1) | (pair.slowdown * pair.tide > 4 * rule.weak)
    most = jnp.where(orbit.h < 0, jnp.maximum(dt / ks.period(orbit), 1), 1)
    wanted = jnp.clip(rule.weak / jnp.maximum(pair.tide, 1e-30), 1, most)
    return replace(
        pair,
        slowdown=jnp.where(choose, wanted, pair.slowdown),
        revolutions=jnp.where(choose, 0, pair.revolutions),
        dissolving=is_too_wide(pairs, orbit) | (pair.tide > rule.strong),
    )


def regular_step(spec: PairedSteps, pairs: Pairs, orbit: ks.Orbit, tide: Array) -> Array:
    """Return the regular time [...] between two kicks: a fraction of an orbit.

    The perturbation shortens it as in Aarseth (2003), chapter 8.
    """
    nu2 = jnp.maximum(-orbit.h / 2, pairs.limit / 4)
    return jnp.pi / (spec.pairing.kicks * jnp.sqrt(nu2) * jnp.cbrt(1 + 1000 * tide))
