"""Star clusters by sixth-order Hermite steps, each body with a step of its own, massless ones too.

Nitadori & Makino (2008), doi:10.1016/j.newast.2008.01.010: as `hermite`, with the snap computed and
the crackle interpolated. A step costs 1.7 times as much and errs as its sixth power: the cheaper
way to relative energy errors below 1e-9. Blocks, tiles and massless bodies as there; G = 1.

The field of a galaxy may act on all: positions are then relative to an origin that falls in it.
"""

from dataclasses import replace

import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.pytree import number, pytree
from jaxgpu.pytree import size as whole

from ..forces import snaps
from ..forces.tide import Alone, Origin, Tide
from . import entry, tiles
from .blocks import next_step, quantised, size


@pytree
class Hermite6:
    """How to integrate. Lengths, times and masses in units in which G is 1."""

    m: Array = number(above=0)  # [N] masses of the stars
    eta: Array | float = number(
        default=0.4, above=0
    )  # [] accuracy of the steps, which are proportional to it
    softening: Array | float = number(default=0.0, least=0)  # [] length; 0 for none
    interval: Array | float = number(
        default=0.125, above=0
    )  # [] time that one call of `step` covers
    tide: Tide | Alone = Alone()
    longest: int = whole(default=2, least=0)  # steps are at most interval / 2^longest
    shortest: int = whole(default=40, least=1)  # and at least interval / 2^shortest; 23 in float32
    tile: int = whole(default=32, least=1)  # bodies advanced together, on a CPU


@pytree
class Population:
    """Bodies with their last known state, each at a time of its own."""

    x: Array  # [6, N] position and velocity
    a: Array  # [12, N] acceleration, jerk, snap and crackle
    t: Array  # [N] time of that state, as a part of the interval: a dyadic number, exactly
    dt: Array  # [N] step to take next, as a part of the interval: a power of two, exactly


@pytree
class State:
    """Where the cluster is; all bodies are at the same time between two calls of `step`."""

    stars: Population
    tracers: Population
    origin: Origin
    blocks: Array  # [] int32: block steps so far
    steps: Array  # [2] float: steps of stars and of tracers so far
    floored: Array  # [] int32: steps that should have been shorter than the shortest


def init(spec: Hermite6, stars: Array, tracers: Array, origin: Origin | None = None) -> State:
    """The state for stars [6, N] and massless bodies [6, M], positions over velocities.

    origin: position and velocity in the galaxy of what positions are relative to; where there is a
        tide.
    """
    stars, tracers = entry.start("hermite6.init", spec, stars, tracers, origin)
    origin = Origin.nowhere(stars) if origin is None else origin
    path = spec.tide.path(origin, spec.interval)

    def pulls(x: Array, sources: Array) -> Array:
        force = snaps.pull(x, sources, spec.m, spec.softening)
        return force + spec.tide.pull(path, jnp.zeros((), x.dtype), x)

    def population(x: Array) -> Population:
        still = jnp.zeros_like(x[:3])
        # the pull needs accelerations for its snap alone
        of_stars = pulls(jnp.concatenate([stars, jnp.zeros_like(stars[:3])]), _at_rest(stars))[:3]
        first = pulls(jnp.concatenate([x, still]), _at_rest(stars))[:3]
        a = pulls(jnp.concatenate([x, first]), jnp.concatenate([stars, of_stars]))
        # before derivatives beyond the snap are known: far inside of what they will allow
        wanted = spec.eta / 8 * jnp.sqrt(size(a[:3]) / size(a[6:]))
        wanted = jnp.minimum(wanted, spec.eta / 8 * size(a[:3]) / size(a[3:6]))
        a = jnp.concatenate([a, still])
        return Population(x, a, jnp.zeros_like(x[0]), quantised(spec, wanted / spec.interval))

    none = jnp.zeros((), jnp.int32)
    counts = jnp.zeros(2, stars.dtype)
    return State(population(stars), population(tracers), origin, none, counts, none)


def step(spec: Hermite6, state: State) -> State:
    """The state one interval later."""
    rewind = lambda group: replace(group, t=jnp.zeros_like(group.t))
    begin = replace(state, stars=rewind(state.stars), tracers=rewind(state.tracers))
    path = spec.tide.path(state.origin, spec.interval)

    def unfinished(carry: tuple[State, Array]) -> Array:
        return carry[1] < 1

    def block(carry: tuple[State, Array]) -> tuple[State, Array]:
        state, _ = carry
        due = [group.t + group.dt for group in (state.stars, state.tracers)]
        now = jnp.minimum(jnp.min(due[0]), jnp.min(due[1], initial=jnp.inf))
        sources = lax.optimization_barrier(predicted(spec, state.stars, now))
        stars, s, low_s = _advanced(spec, state.stars, sources, (now, path), stars=True)
        tracers, t, low_t = _advanced(spec, state.tracers, sources, (now, path), stars=False)
        steps = state.steps + jnp.stack([s, t]).astype(state.steps.dtype)
        floored = state.floored + low_s + low_t
        return State(stars, tracers, state.origin, state.blocks + 1, steps, floored), now

    end = lax.while_loop(unfinished, block, (begin, jnp.zeros((), state.steps.dtype)))[0]
    return replace(end, origin=spec.tide.moved(path, state.origin))


def predicted(spec: Hermite6, group: Population, now: Array) -> Array:
    """Positions, velocities and accelerations [9, N] at `now`, by Taylor series to the crackle."""
    h = (spec.interval * (now - group.t))[None]
    x, v = group.x[:3], group.x[3:]
    a, j, s, c = (group.a[k : k + 3] for k in (0, 3, 6, 9))
    position = x + h * (v + h / 2 * (a + h / 3 * (j + h / 4 * (s + h / 5 * c))))
    velocity = v + h * (a + h / 2 * (j + h / 3 * (s + h / 4 * c)))
    return jnp.concatenate([position, velocity, a + h * (j + h / 2 * (s + h / 3 * c))])


def _advanced(
    spec: Hermite6, group: Population, sources: Array, when: tuple, stars: bool
) -> tuple[Population, Array, Array]:
    """Bring those of `group` that are due to `now`; how many there were, and how many floored."""
    now, path = when
    due = group.t + group.dt == now

    def move(some: Array, old: Population) -> tuple[Population, Array]:
        # a star must find itself among the sources to the bit, or it would pull on itself
        own = jnp.take(sources, some, axis=-1, mode="clip") if stars else None
        guess = lax.optimization_barrier(predicted(spec, old, now) if own is None else own)
        force = snaps.pull(guess, sources, spec.m, spec.softening)
        return corrected(spec, old, force + spec.tide.pull(path, now, guess), now)

    group, floored = tiles.advance(group, due, move, spec.tile)
    return group, jnp.sum(due, dtype=jnp.int32), floored


def corrected(spec: Hermite6, old: Population, f: Array, now: Array) -> tuple[Population, Array]:
    """Bodies with new forces `f` [9, B], corrected, and which want a step below the floor."""
    part = now - old.t
    h = spec.interval * jnp.where(part > 0, part, 1)[None]  # spare lanes are not due: no 0 / 0
    a0, j0, s0 = (old.a[k : k + 3] for k in (0, 3, 6))
    a1, j1, s1 = (f[k : k + 3] for k in (0, 3, 6))
    v = old.x[3:] + h / 2 * (a0 + a1 + h / 5 * (j0 - j1 + h / 12 * (s0 + s1)))
    x = old.x[:3] + h / 2 * (old.x[3:] + v + h / 5 * (a0 - a1 + h / 12 * (j0 + j1)))
    # the polynomial of degree five through all six, in parts of the step
    d, j0, j1, s0, s1 = a1 - a0, h * j0, h * j1, h * h / 2 * s0, h * h / 2 * s1
    third = 10 * d - 6 * j0 - 4 * j1 - 3 * s0 + s1
    fourth = -15 * d + 8 * j0 + 7 * j1 + 3 * s0 - 2 * s1
    fifth = 6 * d - 3 * (j0 + j1) - s0 + s1
    crackle = (6 * third + 24 * fourth + 60 * fifth) / (h * h * h)
    pop = (24 * fourth + 120 * fifth) / (h * h * h * h)
    last = 120 * fifth / (h * h * h * h * h)
    # Nitadori & Makino, eq. 33, with p = 6
    low = size(a1) * size(f[6:]) + size(f[3:6]) ** 2
    high = size(crackle) * size(last) + size(pop) ** 2
    wanted = spec.eta * jnp.cbrt(jnp.sqrt(low / high))
    dt, floored = next_step(spec, old.dt, wanted, now)
    a = jnp.concatenate([f, crackle])
    return Population(jnp.concatenate([x, v]), a, jnp.full_like(old.t, now), dt), floored


def _at_rest(stars: Array) -> Array:
    return jnp.concatenate([stars, jnp.zeros_like(stars[:3])])
