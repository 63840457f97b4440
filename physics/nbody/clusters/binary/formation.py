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
from ..blocks import PairedSteps, Population, first_step, fitting_step, predicted, pull_and_snap
from ..scheduler import change_if
from . import forces
from .ks_pairs import Pair, Pairs, empty_pair, extent, resolved
from .ks_steps import regular_step
from .members import members, places

# positions over velocities [6, K] -> acceleration and jerk [6, K] from outside
type Outside = Callable[[Array], Array]


def dissolve(
    spec: PairedSteps,
    stars: Population,
    pairs: Pairs,
    relative: Array,
    now: Array,
    outside: Outside = jnp.zeros_like,
) -> tuple[Population, Pairs]:
    """Split all pairs that are to be dissolved and whose centres are at `now`.

    relative: state [6, S] of the pairs that are to be dissolved, and of those that are resolved.
    """

    def waiting(carry: tuple[Population, Pairs]) -> Array:
        return jnp.any(_to_dissolve(carry[0], carry[1], now))

    def one(carry: tuple[Population, Pairs]) -> tuple[Population, Pairs]:
        stars, pairs = carry
        slot = jnp.argmax(_to_dissolve(stars, pairs, now))
        return _split(spec, stars, pairs, slot, relative, now, outside)

    return lax.while_loop(waiting, one, (stars, pairs))


def _to_dissolve(stars: Population, pairs: Pairs, now: Array) -> Array:
    # only where the centre is at `now` has the orbit taken its last step, see `ks_steps.caught_up`
    pair = pairs.batch
    return pair.dissolving & (jnp.take(stars.t, pair.first, mode="clip") == now)


def _split(
    spec: PairedSteps,
    stars: Population,
    pairs: Pairs,
    slot: Array,
    relative: Array,
    now: Array,
    outside: Outside,
) -> tuple[Population, Pairs]:
    """The stars with a pair made two of them again, and its slot free."""
    pair = pairs.one(slot)
    two = jnp.stack([pair.first, pair.second])
    x = jnp.stack(places(pair, stars.x[:, pair.first], relative[:, slot]), 1)
    weights = _put(pairs.weights, two, pairs.m[two])
    columns = pairs.holding(slot, empty_pair(pairs.m))
    pairs = replace(pairs, columns=columns, weights=weights)
    times = _put(stars.t, two, jnp.stack([now, now]))
    stars = replace(stars, x=_put(stars.x, two, x), t=times)
    return _begin_again(spec, stars, pairs, two, relative, now, outside), pairs


def _begin_again(
    spec: PairedSteps,
    stars: Population,
    pairs: Pairs,
    two: Array,
    relative: Array,
    now: Array,
    outside: Outside,
) -> Population:
    """`stars` with new forces and first steps for `two` [2] of them, which are at `now`."""
    sources = predicted(spec, stars, now)
    a = stars.a[:3] + spec.interval * (now - stars.t)[None] * stars.a[3:]
    f, snap = pull_and_snap(spec, sources[:, two], sources, a, pairs.weights)
    acting = members(spec, pairs, sources, relative, resolved(spec.pairing, pairs))
    none = jnp.full(two.shape, -1, jnp.int32)  # no centre of a pair any more
    f = f + forces.resolved_correction(sources[:, two], none, acting)
    f = f + outside(sources[:, two])
    # one step for both, which divides `now`: they must be due together to become a pair again
    dt = fitting_step(spec, jnp.min(first_step(spec, f, snap)), now)
    return replace(stars, a=_put(stars.a, two, f), dt=_put(stars.dt, two, jnp.stack([dt, dt])))


def _put(array: Array, two: Array, values: Array) -> Array:
    """An array [..., N] with the values [..., 2] of two stars.

    Without a scatter, beside which `scheduler.change_if` would be compiled operation by operation.
    """
    return array.at[..., two[0]].set(values[..., 0]).at[..., two[1]].set(values[..., 1])


def form(
    spec: PairedSteps, stars: Population, pairs: Pairs, now: Array
) -> tuple[Population, Pairs, Array]:
    """Pair the star of the shortest step with its neighbour, if they fit; how many were refused."""
    single, dt, gate = _candidates(spec, stars, pairs, now)
    formed = lambda old: _form_with_neighbour(spec, old[0], old[1], single, dt, now)
    return change_if(jnp.any(dt < gate), formed, (stars, pairs, jnp.int32(0)))


def form_all(
    spec: PairedSteps, stars: Population, pairs: Pairs, now: Array
) -> tuple[Population, Pairs, Array]:
    """Pair all stars that fit, for a beginning; and how often no slot was free.

    Every star of a short step has its turn: one that fits no neighbour keeps no other from its own.
    """

    def one(
        carry: tuple[Population, Pairs, Array, Array, Array],
    ) -> tuple[Population, Pairs, Array, Array, Array]:
        stars, pairs, refused, tried, _ = carry
        single, dt, gate = _candidates(spec, stars, pairs, now)
        dt = jnp.where(tried, jnp.inf, dt)
        more = jnp.any(dt < gate)
        tried = tried.at[jnp.argmin(dt)].set(True)
        formed = lambda old: _form_with_neighbour(spec, old[0], old[1], single, dt, now)
        stars, pairs, missed = change_if(more, formed, (stars, pairs, jnp.int32(0)))
        return stars, pairs, refused + missed, tried, more

    tried = jnp.zeros(stars.dt.shape, bool)
    start = stars, pairs, jnp.int32(0), tried, jnp.bool_(True)
    return lax.while_loop(lambda carry: carry[4], one, start)[:3]


def _candidates(
    spec: PairedSteps, stars: Population, pairs: Pairs, now: Array
) -> tuple[Array, Array, Array]:
    """Which stars are in no pair [N], steps [N] of those of them that are due, and a short one [N].

    The second star of a pair has an infinite step, the first one is in its slot: neither is single.
    """
    single = jnp.isfinite(stars.dt).at[pairs.first].set(False, mode="drop")
    dt = jnp.where((stars.t == now) & single, stars.dt, jnp.inf)
    return single, dt, short_step(spec, pairs)


def short_step(spec: PairedSteps, pairs: Pairs) -> Array:
    """Steps [N] of stars: one in a pair as wide as may be has none longer, whoever the other is."""
    mean = (pairs.m + jnp.max(pairs.m)) / 2
    return jnp.sqrt(spec.eta / pairs.limit**3) * mean / spec.interval


def _form_with_neighbour(
    spec: PairedSteps, stars: Population, pairs: Pairs, single: Array, dt: Array, now: Array
) -> tuple[Population, Pairs, Array]:
    """The stars with that of the least `dt` and its nearest made a pair if they fit; if refused."""
    one = jnp.argmin(dt)
    x = predicted(spec, stars, now)
    d = x[:3] - x[:3, one, None]
    r2 = jnp.sum(d * d, 0)
    r2 = jnp.where(pairs.weights > 0, r2, jnp.inf).at[one].set(jnp.inf)
    two = jnp.argmin(r2)
    relative = x[:, two] - x[:, one]
    orbit = ks.regularised(relative[:3], relative[3:], pairs.m[one] + pairs.m[two])
    fit = single[two] & (stars.t[two] == now) & _fits(spec, pairs, orbit, one, two, x)
    free = ~pairs.held
    room = jnp.any(free)
    joined = lambda: _joined(spec, stars, pairs, one, two, jnp.argmax(free), orbit, now)
    stars, pairs = lax.cond(fit & room, joined, lambda: (stars, pairs))
    return stars, pairs, (fit & ~room).astype(jnp.int32)


def _fits(
    spec: PairedSteps, pairs: Pairs, orbit: ks.Orbit, one: Array, two: Array, x: Array
) -> Array:
    """Whether two stars are bound tightly, and little disturbed."""
    tight = orbit.h < -pairs.limit
    d = x[:3] - x[:3, one, None]
    r2 = jnp.sum(d * d, 0).at[one].set(jnp.inf).at[two].set(jnp.inf)
    tide = jnp.sum(pairs.weights / (r2 * jnp.sqrt(r2)))
    tide = 2 * tide * extent(pairs, orbit) ** 3 / orbit.m
    # far below what dissolves it, or it would come and go
    return tight & (tide < spec.pairing.strong / 4)


def _joined(
    spec: PairedSteps,
    stars: Population,
    pairs: Pairs,
    one: Array,
    two: Array,
    slot: Array,
    orbit: ks.Orbit,
    now: Array,
) -> tuple[Population, Pairs]:
    """The stars with their centre of mass in the place of `one`, and the pair in a slot."""
    m, n = pairs.m[one], pairs.m[two]
    mean = lambda q: (m * q[:, one] + n * q[:, two]) / (m + n)
    x = stars.x.at[:, one].set(mean(stars.x)).at[:, two].set(mean(stars.x))
    # their mutual pulls cancel; the step may grow from theirs by a power of two at a time
    a = stars.a.at[:, one].set(mean(stars.a)).at[:, two].set(0)
    stars = replace(stars, x=x, a=a, dt=stars.dt.at[two].set(jnp.inf))
    strong = jnp.ones_like(now) * spec.pairing.strong / 4  # until the first kick knows better
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
    return stars, replace(pairs, columns=pairs.holding(slot, pair), weights=weights)
