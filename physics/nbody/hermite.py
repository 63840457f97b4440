"""Star clusters by fourth-order Hermite steps, each body with a step of its own, massless ones too.

Makino & Aarseth (1992), PASJ 44, 141: predict all sources, evaluate and correct those that are due.
Steps are powers of two (McMillan 1986), chosen by Aarseth's criterion (Aarseth 2003, Gravitational
N-Body Simulations, eq. 2.13). Units in which G = 1.

A block of due bodies is packed into tiles of fixed size, and the number of tiles is known at run
time: one program serves a block of one and a block of all, at the cost of the bodies that are due.
Massless bodies are targets only. A step of K due bodies costs N K pairs, and every block O(N + M)
to find out who is due and to predict the stars.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.physics.nbody import pairs
from jaxgpu.pytree import pytree, static


@pytree
class Hermite:
    """How to integrate. Lengths, times and masses in units in which G is 1."""

    m: Array  # [N] masses of the stars
    eta: Array | float = 0.02  # [] accuracy of the steps: dt = sqrt(eta ...)
    softening: Array | float = 0.0  # [] length; 0 for none
    interval: Array | float = 0.125  # [] time that one call of `step` covers
    longest: int = static(default=2)  # steps are at most interval / 2^longest
    shortest: int = static(default=40)  # and at least interval / 2^shortest
    tile: int = static(default=32)  # bodies advanced together, on a CPU


@pytree
class Population:
    """Bodies with their last known state, each at a time of its own."""

    x: Array  # [6, N] position and velocity
    a: Array  # [6, N] acceleration and jerk
    t: Array  # [N] time of that state, as a part of the interval: a dyadic number, exactly
    dt: Array  # [N] step to take next, as a part of the interval: a power of two, exactly


@pytree
class State:
    """Where the cluster is; all bodies are at the same time between two calls of `step`."""

    stars: Population
    tracers: Population
    blocks: Array  # [] int32: block steps so far
    steps: Array  # [2] float: steps of stars and of tracers so far
    floored: Array  # [] int32: steps that should have been shorter than the shortest


def init(spec: Hermite, stars: Array, tracers: Array) -> State:
    """The state for stars [6, N] and massless bodies [6, M], positions over velocities."""
    if stars.ndim != 2 or stars.shape != (6, spec.m.shape[0]):
        shape = list(stars.shape)
        raise ValueError(f"hermite.init: stars {shape}; must be [6, {spec.m.shape[0]}], as m is")
    if tracers.ndim != 2 or tracers.shape[0] != 6:
        raise ValueError(f"hermite.init: tracers {list(tracers.shape)}; must be [6, M]; M may be 0")

    def population(x: Array) -> Population:
        a = pairs.pull(x, stars, spec.m, spec.softening)
        # Aarseth (2003), sect. 2.2: before snap and crackle are known
        wanted = spec.eta / 2 * _size(a[:3]) / _size(a[3:])
        still = jnp.zeros(x.shape[1], x.dtype)
        return Population(x, a, still, _quantised(spec, wanted / spec.interval))

    none = jnp.zeros((), jnp.int32)
    return State(population(stars), population(tracers), none, jnp.zeros(2, stars.dtype), none)


def step(spec: Hermite, state: State) -> State:
    """The state one interval later."""
    rewind = lambda group: replace(group, t=jnp.zeros_like(group.t))
    begin = replace(state, stars=rewind(state.stars), tracers=rewind(state.tracers))

    def unfinished(carry: tuple[State, Array]) -> Array:
        return carry[1] < 1

    def block(carry: tuple[State, Array]) -> tuple[State, Array]:
        state, _ = carry
        due = [group.t + group.dt for group in (state.stars, state.tracers)]
        now = jnp.minimum(jnp.min(due[0]), jnp.min(due[1], initial=jnp.inf))
        sources = lax.optimization_barrier(predicted(spec, state.stars, now))
        stars, s, low_s = advance(spec, state.stars, sources, now, stars=True)
        tracers, t, low_t = advance(spec, state.tracers, sources, now, stars=False)
        steps = state.steps + jnp.stack([s, t]).astype(state.steps.dtype)
        done = State(stars, tracers, state.blocks + 1, steps, state.floored + low_s + low_t)
        return done, now

    return lax.while_loop(unfinished, block, (begin, jnp.zeros((), state.steps.dtype)))[0]


def advance(
    spec: Hermite, group: Population, sources: Array, now: Array, stars: bool
) -> tuple[Population, Array, Array]:
    """Bring those of `group` that are due to `now`; how many there were, and how many floored."""
    count = group.t.shape[0]
    if count == 0:
        return group, jnp.int32(0), jnp.int32(0)
    size = min(spec.tile, count)
    due = group.t + group.dt == now
    total = jnp.sum(due, dtype=jnp.int32)
    index = lax.cond(total > 0, lambda: _packed(due, size), lambda: _none(count, size))

    def tile(i: Array, carry: tuple[Population, Array]) -> tuple[Population, Array]:
        group, floored = carry
        some = lax.dynamic_slice(index, (i * size,), (size,))
        old = jax.tree.map(lambda all: jnp.take(all, some, axis=-1, mode="clip"), group)
        # a star must find itself among the sources to the bit, or it would pull on itself
        own = jnp.take(sources, some, axis=-1, mode="clip") if stars else None
        guess = predicted(spec, old, now) if own is None else own
        new, low = corrected(spec, *lax.optimization_barrier((old, guess)), sources, now)
        put = lambda all, part: all.at[..., some].set(part, mode="drop")
        low = jnp.sum(low & (some < count), dtype=jnp.int32)
        return jax.tree.map(put, group, new), floored + low

    tiles = (total + size - 1) // size
    group, floored = lax.fori_loop(0, tiles, tile, (group, jnp.int32(0)))
    return group, total, floored


def _packed(due: Array, spare: int) -> Array:
    """Indices of the bodies that are due, then the number of all; three times `jnp.nonzero`."""
    count = due.shape[0]
    place = lax.associative_scan(jnp.add, due.astype(jnp.int32)) - 1
    body = jnp.arange(count, dtype=jnp.int32)
    # no two due bodies share a place, and the others have none
    return _none(count, spare).at[jnp.where(due, place, count + spare)].set(body, mode="drop")


def _none(count: int, spare: int) -> Array:
    return jnp.full(count + spare, count, jnp.int32)


def predicted(spec: Hermite, group: Population, now: Array) -> Array:
    """Positions and velocities [6, N] at `now`, by Taylor series to the jerk."""
    h = (spec.interval * (now - group.t))[None]
    x, v, a, j = group.x[:3], group.x[3:], group.a[:3], group.a[3:]
    return jnp.concatenate([x + h * (v + h / 2 * (a + h / 3 * j)), v + h * (a + h / 2 * j)])


def corrected(
    spec: Hermite, old: Population, guess: Array, sources: Array, now: Array
) -> tuple[Population, Array]:
    """Bodies predicted at `guess` [6, B], corrected, and which want a step below the floor."""
    part = now - old.t
    h = spec.interval * jnp.where(part > 0, part, 1)[None]  # spare lanes are not due: no 0 / 0
    f = pairs.pull(guess, sources, spec.m, spec.softening)
    a0, j0, a1, j1 = old.a[:3], old.a[3:], f[:3], f[3:]
    v = old.x[3:] + h / 2 * (a0 + a1) + h * h / 12 * (j0 - j1)
    x = old.x[:3] + h / 2 * (old.x[3:] + v) + h * h / 12 * (a0 - a1)
    crackle = (12 * (a0 - a1) + 6 * h * (j0 + j1)) / (h * h * h)
    snap = (-6 * (a0 - a1) - h * (4 * j0 + 2 * j1)) / (h * h) + h * crackle  # at the end
    a, j, s, c = (_size(q) for q in (a1, j1, snap, crackle))
    wanted = jnp.sqrt(spec.eta * (a * s + j * j) / (j * c + s * s))
    dt, low = _next(spec, old.dt, wanted, now)
    return Population(jnp.concatenate([x, v]), f, jnp.full_like(old.t, now), dt), low


def _next(spec: Hermite, dt: Array, wanted: Array, now: Array) -> tuple[Array, Array]:
    """The next steps: shorter at once, longer by one power where the block structure allows."""
    wanted = wanted / spec.interval
    twice = jnp.minimum(2 * dt, 2.0**-spec.longest)
    fits = jnp.floor(now / twice) * twice == now
    longer = jnp.where((wanted >= twice) & fits, twice, dt)
    dt = jnp.where(wanted < dt, _quantised(spec, wanted), longer)
    return dt, ~(wanted >= 2.0**-spec.shortest)


def _quantised(spec: Hermite, wanted: Array) -> Array:
    """The largest allowed power of two that is not longer than `wanted`, part of an interval."""
    depth = jnp.ceil(-jnp.log2(wanted))
    depth = jnp.where(jnp.isnan(depth), spec.shortest, depth)
    depth = jnp.clip(depth, spec.longest, spec.shortest).astype(jnp.int32)
    # from a table, because XLA's exp2 is not exact and a block is found by equal times
    return jnp.asarray(0.5 ** np.arange(spec.shortest + 1), wanted.dtype)[depth]


def _size(vector: Array) -> Array:
    return jnp.sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2])
