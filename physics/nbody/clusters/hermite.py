"""Star clusters by Hermite steps, each body with a step of its own, massless ones too.

Makino & Aarseth (1992), PASJ 44, 141: predict all sources, evaluate and correct those that are due.
Steps are powers of two (McMillan 1986), chosen by Aarseth's criterion (Aarseth 2003, Gravitational
N-Body Simulations, eq. 2.13). Units in which G = 1.

Stars are stepped to fourth order, massless bodies, which are targets only, to sixth (`massless`).
A step of K due bodies costs N K pairs, and every block O(N + M / 128) to find out who is due
(`tiles`, `ledger`) and to predict the stars. `Hermite.pairing` regularises close pairs of stars;
`Hermite.tide` lets the cluster fall through a galaxy, where it acts on stars, centres of pairs and
massless bodies.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.pytree import pytree

from ..forces import pairs
from ..forces.tide import Origin
from . import entry, hosts, ledger, massless, tiles
from .binary import binaries, pairing, sight
from .binary.sight import Pull
from .binary.slots import Slots, empty, near
from .blocks import Hermite, Population, first_step, next_step, predicted, pull_and_snap, size
from .ledger import Layout, Ledger
from .massless import Massless


@pytree
class State:
    """Where the cluster is; all bodies are at the same time between two calls of `step`."""

    stars: Population
    tracers: Massless
    slots: Slots
    blocks: Array  # [] int32: block steps so far
    steps: Array  # [2] float: steps of stars and of tracers so far
    floored: Array  # [] int32: steps that should have been shorter than the shortest
    refused: Array  # [] int32: how often a close pair found no slot free
    origin: Origin  # in the galaxy, of what positions are relative to


def init(spec: Hermite, stars: Array, tracers: Array, origin: Origin | None = None) -> State:
    """The state for stars [6, N] and massless bodies [6, M], positions over velocities.

    origin: position and velocity in the galaxy of what positions are relative to; where there is a
        tide.
    """
    stars, tracers = entry.start("hermite.init", spec, stars, tracers, origin)
    origin = Origin.nowhere(stars) if origin is None else origin
    tide = partial(spec.tide.on, spec.tide.path(origin, spec.interval), jnp.zeros((), stars.dtype))
    among = pairs.pull(stars, stars, spec.m, spec.softening)[:3]
    a, snap = pull_and_snap(spec, stars, stars, among, spec.m)
    end = jnp.ones(stars.shape[1], stars.dtype)  # as between any two calls of `step`
    a = a + tide(stars)
    bodies = Population(stars, a, end, first_step(spec, a, snap))
    swarm = massless.begun(spec, tracers, stars, among, tide)
    none, steps = jnp.zeros((), jnp.int32), jnp.zeros(2, stars.dtype)
    slots, refused = empty(spec), none
    if spec.pairing.slots > 0:
        now = jnp.ones((), stars.dtype)
        bodies, slots, refused = pairing.form_all(spec, bodies, slots, now)
        taken = slots.first < spec.m.shape[0]
        apart, all = sight.seen(spec, slots, stars, now, taken)
        them = partial(hosts.seen, spec, stars, bodies, slots, apart, now)
        pull = _with(tide, sight.seen_by_tracers(slots, stars, all))
        near = hosts.near(spec, swarm)
        move = hosts.move(spec, pull, them, jnp.any(near))
        swarm = tiles.advance(swarm, near, move, spec.tile)[0]
    return State(bodies, swarm, slots, none, steps, none, refused, origin)


def points(spec: Hermite, state: State) -> Array:
    """Positions and velocities [6, N] of all stars, those in pairs too, between two steps."""
    x, slots, now = state.stars.x, state.slots, jnp.max(state.stars.t)
    if spec.pairing.slots == 0:
        return x
    taken = slots.first < spec.m.shape[0]
    bring = lambda q, slots: binaries.stepped(spec, state.stars, slots, q, now)
    slots = lax.fori_loop(
        0, spec.pairing.slots, lambda q, s: lax.cond(taken[q], bring, lambda _, s: s, q, s), slots
    )
    all = sight.seen(spec, slots, x, now, taken)[1]
    x = x.at[:, slots.first].set(all.one, mode="drop")
    return x.at[:, slots.pairs.second].set(all.two, mode="drop")


def step(spec: Hermite, state: State) -> State:
    """The state one interval later."""
    start = lambda group: replace(group, t=jnp.zeros_like(group.t))
    slots = state.slots.rewound()
    swarm = start(state.tracers)
    layout = ledger.Layout(swarm)
    # the massless bodies are in the ledger meanwhile
    nobody = jax.tree.map(lambda q: q[..., :0], swarm)
    begin = replace(state, stars=start(state.stars), tracers=nobody, slots=slots)

    def unfinished(carry: tuple[State, Ledger, Array]) -> Array:
        return carry[2] < 1

    def block(carry: tuple[State, Ledger, Array]) -> tuple[State, Ledger, Array]:
        state, book, _ = carry
        now = jnp.min(state.stars.t + state.stars.dt)
        now = jnp.minimum(now, jnp.min(book.soonest, initial=jnp.inf))
        return *_block(spec, state, layout, book, partial(spec.tide.on, path, now), now), now

    path = spec.tide.path(state.origin, spec.interval)
    book = ledger.opened(layout, swarm, (spec.tile, spec.bulk))
    zero = jnp.zeros((), state.steps.dtype)
    end, book, _ = lax.while_loop(unfinished, block, (begin, book, zero))
    return replace(
        end, tracers=layout.unpacked(book.rows), origin=spec.tide.moved(path, state.origin)
    )


def _block(
    spec: Hermite,
    state: State,
    layout: Layout[Massless],
    book: Ledger,
    tide: pairing.Outside,
    now: Array,
) -> tuple[State, Ledger]:
    """Everybody who is due brought to `now`; what happens to stars depends on stars alone."""
    stars, slots = state.stars, state.slots
    sources = lax.optimization_barrier(predicted(spec, stars, now))
    due = stars.t + stars.dt == now
    plain = lambda some, x: pairs.pull(x, sources, spec.m, spec.softening) + tide(x)
    refused = jnp.int32(0)
    if spec.pairing.slots == 0:
        stars, low_s = _advanced(spec, stars, due, plain, sources, now)
        book, late, low_t = _followed(spec, layout, book, plain, None, now)
    else:
        # a pair that is to be dissolved is brought to the next time at which stars are due
        some = jnp.any(due)
        slots = binaries.caught_up(spec, stars, slots, now, some)
        due = due.at[slots.first].max(slots.pairs.leave & some, mode="drop")
        # stars see as two those pairs that are disturbed, massless bodies all of them
        who = near(spec, slots) | slots.pairs.leave
        who = slots.first < spec.m.shape[0] if book.soonest.size else who
        apart, all = sight.seen(spec, slots, sources, now, who)
        on_stars = _with(tide, sight.seen_by_stars(spec, slots, sources, due, all))
        stars, low_s = _advanced(spec, stars, due, on_stars, sources, now)
        on_tracers = _with(tide, sight.seen_by_tracers(slots, sources, all))
        them = partial(hosts.seen, spec, sources, stars, slots, apart, now)
        book, late, low_t = _followed(spec, layout, book, on_tracers, them, now)
        stars, slots = pairing.dissolve(spec, stars, slots, apart, now, tide)
        stars, slots, refused = pairing.form(spec, stars, slots, now)
    count = jnp.stack([jnp.sum(due, dtype=jnp.int32), late])
    steps = state.steps + count.astype(state.steps.dtype)
    floored, refused = state.floored + low_s + low_t, state.refused + refused
    blocks = state.blocks + 1
    end = State(stars, state.tracers, slots, blocks, steps, floored, refused, state.origin)
    return end, book


def _with(tide: pairing.Outside, pull: Pull) -> Pull:
    return lambda some, x: pull(some, x) + tide(x)


def _advanced(
    spec: Hermite, stars: Population, due: Array, pull: Pull, sources: Array, now: Array
) -> tuple[Population, Array]:
    """Those stars that are due brought to `now`, and how many steps were floored."""

    def move(some: Array, old: Population) -> tuple[Population, Array]:
        # a star must find itself among the sources to the bit, or it would pull on itself
        guess = lax.optimization_barrier(jnp.take(sources, some, axis=-1, mode="clip"))
        return corrected(spec, old, pull(some, guess), now)

    return tiles.advance(stars, due, move, spec.tile)


def _followed(
    spec: Hermite,
    layout: Layout[Massless],
    book: Ledger,
    pull: Pull,
    stars: Callable[[], hosts.Stars] | None,
    now: Array,
) -> tuple[Ledger, Array, Array]:
    """Those massless bodies that are due brought to `now`, how many, and how many floored.

    stars: those that may be hosts; None where close encounters are softened.
    """

    def alone(some: Array, old: Massless) -> tuple[Massless, Array]:
        guess = lax.optimization_barrier(massless.predicted(spec, old, now))
        new, low = massless.corrected(spec, old, pull(some, guess), now)
        if stars is None:
            return new, low
        hosted = old.host < spec.m.shape[0]
        keep = lambda old, new: jnp.where(hosted, old, new)
        return jax.tree.map(keep, old, new), low & ~hosted

    if book.soonest.size == 0:
        return book, jnp.int32(0), jnp.int32(0)
    near = None
    if stars is not None:
        near = partial(hosts.near, spec), partial(hosts.move, spec, pull, stars)
    return ledger.advance(layout, book, now, alone, near, (spec.tile, spec.bulk))


def corrected(spec: Hermite, old: Population, f: Array, now: Array) -> tuple[Population, Array]:
    """Bodies pulled at `now` by `f` [6, B], corrected, and which want a step below the floor."""
    part = now - old.t
    h = spec.interval * jnp.where(part > 0, part, 1)[None]  # spare lanes are not due: no 0 / 0
    a0, j0, a1, j1 = old.a[:3], old.a[3:], f[:3], f[3:]
    v = old.x[3:] + h / 2 * (a0 + a1) + h * h / 12 * (j0 - j1)
    x = old.x[:3] + h / 2 * (old.x[3:] + v) + h * h / 12 * (a0 - a1)
    crackle = (12 * (a0 - a1) + 6 * h * (j0 + j1)) / (h * h * h)
    snap = (-6 * (a0 - a1) - h * (4 * j0 + 2 * j1)) / (h * h) + h * crackle  # at the end
    a, j, s, c = (size(q) for q in (a1, j1, snap, crackle))
    above, below = a * s + j * j, j * c + s * s
    # no force at all, whatever rounding left of the one before: the longest step
    free = (above == 0) | (below == 0)
    wanted = jnp.sqrt(spec.eta * above / jnp.where(free, 1, below))
    dt, low = next_step(spec, old.dt, jnp.where(free, jnp.inf, wanted), now)
    return Population(jnp.concatenate([x, v]), f, jnp.full_like(old.t, now), dt), low
