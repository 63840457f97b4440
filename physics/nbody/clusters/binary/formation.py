"""Formation of regularised pairs from two stars, and their dissolution.

A pair forms from a star and its nearest neighbour if both are due, bound more tightly than `close`
requires, and weakly perturbed by the other bodies. It is dissolved once it is too wide or too
strongly perturbed. Both happen at the time of a block, when all bodies involved are synchronised,
and change no position or velocity.
"""

from collections.abc import Callable
from dataclasses import replace

import jax.numpy as jnp
from jax import Array, lax

from ...orbits import ks
from ..blocks import PairedSteps, Population, commensurate_step, first_step, predict, pull_and_snap
from ..scheduler import change_if
from . import forces
from .ks_pairs import Pair, Pairs, empty_pair, extent, is_resolved
from .ks_steps import regular_step
from .members import member_states, members

# positions over velocities [6, K] -> external acceleration and jerk [6, K]
type ExternalForce = Callable[[Array], Array]


def dissolve(
    spec: PairedSteps,
    stars: Population,
    pairs: Pairs,
    relative: Array,
    now: Array,
    outside: ExternalForce = jnp.zeros_like,
) -> tuple[Population, Pairs]:
    """Split all pairs marked as dissolving whose centres are at `now`.

    relative: state [6, S] of the dissolving pairs, and of the resolved ones.
    """

    def has_dissolving(carry: tuple[Population, Pairs]) -> Array:
        return jnp.any(_is_dissolving(carry[0], carry[1], now))

    def split_next(carry: tuple[Population, Pairs]) -> tuple[Population, Pairs]:
        stars, pairs = carry
        slot = jnp.argmax(_is_dissolving(stars, pairs, now))
        return _split_pair(spec, stars, pairs, slot, relative, now, outside)

    return lax.while_loop(has_dissolving, split_next, (stars, pairs))


def _is_dissolving(stars: Population, pairs: Pairs, now: Array) -> Array:
    # the orbit has taken its last step only if the centre is at `now`, see `ks_steps.catch_up`
    pair = pairs.batch
    return pair.dissolving & (jnp.take(stars.t, pair.first, mode="clip") == now)


def _split_pair(
    spec: PairedSteps,
    stars: Population,
    pairs: Pairs,
    slot: Array,
    relative: Array,
    now: Array,
    outside: ExternalForce,
) -> tuple[Population, Pairs]:
    """Split a pair into its two stars and free its slot."""
    pair = pairs.get_pair(slot)
    two = jnp.stack([pair.first, pair.second])
    x = jnp.stack(member_states(pair, stars.x[:, pair.first], relative[:, slot]), 1)
    weights = _put_two(pairs.weights, two, pairs.m[two])
    columns = pairs.set_pair(slot, empty_pair(pairs.m))
    pairs = replace(pairs, columns=columns, weights=weights)
    times = _put_two(stars.t, two, jnp.stack([now, now]))
    stars = replace(stars, x=_put_two(stars.x, two, x), t=times)
    return _restart_stars(spec, stars, pairs, two, relative, now, outside), pairs


def _restart_stars(
    spec: PairedSteps,
    stars: Population,
    pairs: Pairs,
    two: Array,
    relative: Array,
    now: Array,
    outside: ExternalForce,
) -> Population:
    """Compute new forces and first steps for `two` [2] of the stars, which are at `now`."""
    sources = predict(spec, stars, now)
    a = stars.a[:3] + spec.interval * (now - stars.t)[None] * stars.a[3:]
    f, snap = pull_and_snap(spec, sources[:, two], sources, a, pairs.weights)
    acting = members(spec, pairs, sources, relative, is_resolved(spec.pairing, pairs))
    none = jnp.full(two.shape, -1, jnp.int32)  # neither star is the centre of a pair any more
    f = f + forces.resolved_correction(sources[:, two], none, acting)
    f = f + outside(sources[:, two])
    # both get one step, which divides `now`: to form a pair again they must be due together
    dt = commensurate_step(spec, jnp.min(first_step(spec, f, snap)), now)
    return replace(
        stars, a=_put_two(stars.a, two, f), dt=_put_two(stars.dt, two, jnp.stack([dt, dt]))
    )


def _put_two(array: Array, two: Array, values: Array) -> Array:
    """Set the values [..., 2] of two stars in an array [..., N].

    Avoids a scatter, with which XLA would compile `scheduler.change_if` operation by operation.
    """
    return array.at[..., two[0]].set(values[..., 0]).at[..., two[1]].set(values[..., 1])


def form(
    spec: PairedSteps, stars: Population, pairs: Pairs, now: Array
) -> tuple[Population, Pairs, Array]:
    """Pair the star of the shortest step with its neighbour, if possible; count missing slots."""
    single, dt, gate = _candidate_stars(spec, stars, pairs, now)
    form_next = lambda old: _form_with_neighbour(spec, old[0], old[1], single, dt, now)
    return change_if(jnp.any(dt < gate), form_next, (stars, pairs, jnp.int32(0)))


def form_all(
    spec: PairedSteps, stars: Population, pairs: Pairs, now: Array
) -> tuple[Population, Pairs, Array]:
    """Move all pairs of stars that meet the criteria into free slots; count pairs without a slot.

    Every star with a short step is tried once, so a star without partner does not block others.
    """

    def try_next(
        carry: tuple[Population, Pairs, Array, Array, Array],
    ) -> tuple[Population, Pairs, Array, Array, Array]:
        stars, pairs, refused, tried, _ = carry
        single, dt, gate = _candidate_stars(spec, stars, pairs, now)
        dt = jnp.where(tried, jnp.inf, dt)
        more = jnp.any(dt < gate)
        tried = tried.at[jnp.argmin(dt)].set(True)
        form_next = lambda old: _form_with_neighbour(spec, old[0], old[1], single, dt, now)
        stars, pairs, missed = change_if(more, form_next, (stars, pairs, jnp.int32(0)))
        return stars, pairs, refused + missed, tried, more

    tried = jnp.zeros(stars.dt.shape, bool)
    start = stars, pairs, jnp.int32(0), tried, jnp.bool_(True)
    return lax.while_loop(lambda carry: carry[4], try_next, start)[:3]


def _candidate_stars(
    spec: PairedSteps, stars: Population, pairs: Pairs, now: Array
) -> tuple[Array, Array, Array]:
    """Return a mask [N] of single stars, the steps [N] of the due ones, and thresholds [N].

    The second star of a pair has an infinite step, the first one is in its slot: neither is single.
    """
    single = jnp.isfinite(stars.dt).at[pairs.first].set(False, mode="drop")
    dt = jnp.where((stars.t == now) & single, stars.dt, jnp.inf)
    return single, dt, step_bounds(spec, pairs)


def step_bounds(spec: PairedSteps, pairs: Pairs) -> Array:
    """Return bounds [N] of the steps of stars in a pair, as wide as allowed, with any partner."""
    mean = (pairs.m + jnp.max(pairs.m)) / 2
    return jnp.sqrt(spec.eta / pairs.limit**3) * mean / spec.interval


def _form_with_neighbour(
    spec: PairedSteps, stars: Population, pairs: Pairs, single: Array, dt: Array, now: Array
) -> tuple[Population, Pairs, Array]:
    """Regularise the star of minimum `dt` with its nearest if bound; flag that no slot is free."""
    one = jnp.argmin(dt)
    x = predict(spec, stars, now)
    d = x[:3] - x[:3, one, None]
    r2 = jnp.sum(d * d, 0)
    r2 = jnp.where(pairs.weights > 0, r2, jnp.inf).at[one].set(jnp.inf)
    two = jnp.argmin(r2)
    relative = x[:, two] - x[:, one]
    orbit = ks.from_cartesian(relative[:3], relative[3:], pairs.m[one] + pairs.m[two])
    fit = single[two] & (stars.t[two] == now) & _fits_pair(spec, pairs, orbit, one, two, x)
    free = ~pairs.is_occupied
    room = jnp.any(free)
    form_new = lambda: _form_pair(spec, stars, pairs, one, two, jnp.argmax(free), orbit, now)
    stars, pairs = lax.cond(fit & room, form_new, lambda: (stars, pairs))
    return stars, pairs, (fit & ~room).astype(jnp.int32)


def _fits_pair(
    spec: PairedSteps, pairs: Pairs, orbit: ks.Orbit, one: Array, two: Array, x: Array
) -> Array:
    """Return whether two stars are tightly bound and weakly perturbed."""
    tight = orbit.h < -pairs.limit
    d = x[:3] - x[:3, one, None]
    r2 = jnp.sum(d * d, 0).at[one].set(jnp.inf).at[two].set(jnp.inf)
    tide = jnp.sum(pairs.weights / (r2 * jnp.sqrt(r2)))
    tide = 2 * tide * extent(pairs, orbit) ** 3 / orbit.m
    # far below the limit for dissolution, so that pairs do not form and dissolve repeatedly
    return tight & (tide < spec.pairing.strong / 4)


def _form_pair(
    spec: PairedSteps,
    stars: Population,
    pairs: Pairs,
    one: Array,
    two: Array,
    slot: Array,
    orbit: ks.Orbit,
    now: Array,
) -> tuple[Population, Pairs]:
    """Put the centre of mass in the slot of star `split_next`, and the pair in a pair slot."""
    m, n = pairs.m[one], pairs.m[two]
    mean = lambda q: (m * q[:, one] + n * q[:, two]) / (m + n)
    x = stars.x.at[:, one].set(mean(stars.x)).at[:, two].set(mean(stars.x))
    # the mutual forces cancel; the step grows from that of `split_next` by a factor of two at a
    # time
    a = stars.a.at[:, one].set(mean(stars.a)).at[:, two].set(0)
    stars = replace(stars, x=x, a=a, dt=stars.dt.at[two].set(jnp.inf))
    strong = jnp.ones_like(now) * spec.pairing.strong / 4  # upper bound until the first kick
    wait = ks.drift(orbit, regular_step(spec, pairs, orbit, strong))[1]
    pair: Pair = replace(
        empty_pair(pairs.m),
        first=one.astype(jnp.int32),
        second=two.astype(jnp.int32),
        m=jnp.stack([m, n]),
        share=jnp.stack([m, n]) / (m + n),
        orbit=orbit,
        t=now,
        ready=now + wait / spec.interval,
        tide=strong,
    )
    weights = pairs.weights.at[one].set(m + n).at[two].set(0)
    return stars, replace(pairs, columns=pairs.set_pair(slot, pair), weights=weights)
