"""Star clusters by fourth-order Hermite steps, each body with an individual step, and tracers.

Makino & Aarseth (1992), PASJ 44, 141: predict all sources, evaluate and correct the due bodies.
Steps are powers of two (McMillan 1986), chosen by Aarseth's criterion (Aarseth 2003, Gravitational
N-Body Simulations, eq. 2.13). Units in which G = 1.

Stars are integrated to fourth order, tracers, which are only targets, to sixth (`tracers`). A step
of K due bodies costs N K pairs, and every block O(N + M / 128) to find the due bodies (`scheduler`)
and to predict the stars. `Hermite.pairing` regularises close pairs of stars (`binary`); tracers
near a star then move on conics about it (`close_encounters`). With `Hermite.tide` the cluster falls
through a galaxy, whose field acts on stars, centres of pairs and tracers.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import pytree

from ..forces import pairs as pair_forces
from . import checks, close_encounters, full_blocks, scheduler, tracers
from .binary import forces, formation, ks_steps
from .binary.ks_pairs import Pairs, init_pairs, is_resolved
from .binary.members import Members, members_if_any
from .blocks import (
    BlockState,
    BlockSteps,
    PairedSteps,
    Population,
    advance_singles,
    advance_stars,
    count_block,
    due_at,
    first_step,
    init_counters,
    next_step,
    norm,
    predict,
    pull_and_snap,
    rebase_times,
)
from .full_blocks import Scheme
from .rows import Vector, as_array, concat, map_rows
from .scheduler import Packing, Schedule, SecondMove
from .tracers import Tracers


@pytree
class State(BlockState):
    """State of the cluster; between two calls of `step` all bodies have the same time."""

    pairs: Pairs
    refused: Array  # [] int32: how often no slot was free for a close pair

    @property
    def m(self) -> Array:
        """Masses [N] of the stars."""
        return self.pairs.m

    @property
    def num_pairs(self) -> Array:
        """Number of regularised pairs []."""
        return jnp.sum(self.pairs.is_occupied, dtype=jnp.int32)

    def rebase_times(self) -> "State":
        """Count times from the start of a new interval."""
        return replace(
            self,
            stars=rebase_times(self.stars),
            tracers=rebase_times(self.tracers),
            pairs=self.pairs.rebase_times(),
        )


@pytree
class Hermite(PairedSteps):
    """Settings of the fourth-order integrator, in units in which G is 1.

    `step`, the loop over the blocks of an interval, is `BlockSteps.step`; `advance_block` does one
    block.
    """

    def init(self, x: Any, v: Any, m: Any, tracers: tuple[Any, Any] | None = None) -> State:
        """Return the state for stars at x [N, 3] with velocities v [N, 3] and masses m [N].

        Args:
            x: positions of the stars; relative to the origin, if there is a tide.
            v: their velocities.
            m: their masses, positive.
            tracers: positions and velocities [M, 3] of bodies without mass; none by default.

        Raises:
            ValueError: another shape, values that are not finite or out of range, two floating
                types, bodies at the same position.
            TypeError: an argument that is not numeric.
        """
        return _init(self, *checks.check_init("Hermite.init", self, x, v, m, tracers))

    def advance_block(
        self, state: State, packing: Packing[Tracers], schedule: Schedule, path: Any, now: Array
    ) -> tuple[State, Schedule]:
        """Advance all due bodies to `now`; stars depend only on stars."""
        if self.pairing.slots == 0:
            return _advance_singles_block(self, state, packing, schedule, path, now)
        return _advance_pairs_block(self, state, packing, schedule, path, now)

    def motion(self) -> Scheme:
        """Return the functions that move all bodies simultaneously, if all are single."""
        return Scheme(
            stars=(partial(predict, self), partial(correct_stars, self)),
            tracers=(partial(tracers.predict, self), partial(tracers.correct, self)),
            force=partial(_force_of_singles, self),
        )

    def can_advance_all(self, state: State) -> bool:
        """Return whether `full_blocks` is worthwhile; it does not support pairs with tracers."""
        hosts = self.pairing.slots > 0 and state.tracers.t.size > 0
        return super().can_advance_all(state) and not hosts

    def advance_all(self, path: Any, begin: State) -> State:
        """Advance to the end of the interval, with all bodies in each block until a pair forms.

        Once there is a pair, the rest of the interval proceeds block by block, see `in_turn`.
        """
        if self.pairing.slots == 0:
            return super().advance_all(path, begin)

        def has_no_pairs(carry: tuple[State, Array]) -> Array:
            state, now = carry
            return (now < 1) & ~jnp.any(state.pairs.is_occupied)

        def advance_until_pair(carry: tuple[State, Array]) -> tuple[State, Array]:
            gate = formation.step_bounds(self, carry[0].pairs)
            state = advance_singles(self, path, carry[0], gate)
            now = lax.stop_gradient(jnp.max(state.stars.t))  # time of the last block
            form = partial(_try_form_pair, self, now=now)
            short = full_blocks.has_short_step(state.stars, now, gate)
            return scheduler.change_if(short, form, state), now

        state, now = lax.while_loop(
            has_no_pairs, advance_until_pair, (begin, jnp.zeros_like(begin.steps[0]))
        )
        return self.advance_due(path, state, now)

    def points(self, state: State) -> Array:
        """Return states [6, N] of all stars, also of pair members, between two steps."""
        if self.pairing.slots == 0:
            return state.stars.x
        stars, now, held = state.stars, jnp.max(state.stars.t), state.pairs.is_occupied
        pairs = ks_steps.synchronize(self, stars, state.pairs, now)
        members = members_if_any(self, pairs, stars.x, now, held)[1]
        x = stars.x.at[:, pairs.first].set(members.one, mode="drop")
        return x.at[:, pairs.batch.second].set(members.two, mode="drop")

    def tracer_states(self, state: State, stars: Array) -> Array:
        """Return states [6, M] of tracers; a bound one has that of its star in `stars` [6, N]."""
        tracers, m = state.tracers, state.m
        gm = jnp.take(m, tracers.host, mode="clip")
        r, v = norm(tracers.s[:3]), norm(tracers.s[3:])
        bound = (tracers.host < m.shape[0]) & (r * v * v < 2 * gm)
        return jnp.where(bound, jnp.take(stars, tracers.host, axis=1, mode="clip"), tracers.x)


def _init(spec: Hermite, stars: Array, m: Array, tracer_states: Array) -> State:
    """Return the state of stars [6, N] and tracers [6, M]."""
    origin = spec.tide.begin(stars)
    path, zero = spec.tide.path(origin, spec.interval), jnp.zeros((), stars.dtype)
    tide = partial(spec.tide.force, path, zero)
    by_stars = pair_forces.pull(stars, stars, m, spec.softening)[:3]
    a, snap = pull_and_snap(spec, stars, stars, by_stars, m)
    a = a + tide(stars)
    now = jnp.ones((), stars.dtype)  # all bodies are at the end of an interval
    population = Population(
        stars, a, jnp.ones(stars.shape[1], stars.dtype), first_step(spec, a, snap)
    )
    bodies = tracers.init(spec, tracer_states, stars, m, by_stars, tide)
    pairs, refused = init_pairs(spec.pairing, m), jnp.zeros((), jnp.int32)
    if spec.pairing.slots > 0:
        population, pairs, refused = formation.form_all(spec, population, pairs, now)
        relative, members = members_if_any(spec, pairs, stars, now, pairs.is_occupied)
        hosts = partial(close_encounters.host_stars, spec, stars, population, pairs, relative, now)
        force = partial(_force_on_tracers, spec, pairs, stars, members, path, zero)
        near = close_encounters.is_candidate(spec, m, bodies)
        move = close_encounters.make_move(spec, force, hosts, jnp.any(near))
        bodies = scheduler.advance_group(bodies, near, move, spec.tile)[0]
    return State(
        stars=population,
        tracers=bodies,
        origin=origin,
        **init_counters(stars.dtype),
        pairs=pairs,
        refused=refused,
    )


def _advance_singles_block(
    spec: Hermite,
    state: State,
    packing: Packing[Tracers],
    schedule: Schedule,
    path: Any,
    now: Array,
) -> tuple[State, Schedule]:
    """Advance a block without regularised pairs."""
    sources = lax.optimization_barrier(predict(spec, state.stars, now))
    due = due_at(state.stars, now)
    force = partial(_force_of_singles, spec, state.m, sources, path, now)
    correct = partial(correct_stars, spec, now=now)
    on_stars = lambda index, x: force(x)
    stars, low = advance_stars(spec, state.stars, due, sources, on_stars, correct)
    move = partial(_move_tracers, spec, state.m.size, force, now)
    widths = spec.tile, spec.bulk
    schedule, count, below = scheduler.advance(packing, schedule, now, move, None, widths)
    return replace(state, stars=stars, **count_block(state, due, count, low + below)), schedule


def _advance_pairs_block(
    spec: Hermite,
    state: State,
    packing: Packing[Tracers],
    schedule: Schedule,
    path: Any,
    now: Array,
) -> tuple[State, Schedule]:
    """Advance a block in which close pairs of stars are regularised, and tracers have hosts."""
    stars, pairs = state.stars, state.pairs
    sources = lax.optimization_barrier(predict(spec, stars, now))
    due = due_at(stars, now)
    any_due = jnp.any(due)
    # orbits come first, since forces depend on the members at `now`
    pairs = ks_steps.catch_up(spec, stars, pairs, now, any_due)
    # the centre of a dissolving pair is advanced to the next time at which stars are due
    due = due.at[pairs.first].max(pairs.batch.dissolving & any_due, mode="drop")
    # resolved pairs act on stars as two stars; all pairs do on tracers
    asked = pairs.is_occupied if schedule.soonest.size else _needs_members(spec, pairs)
    relative, members = members_if_any(spec, pairs, sources, now, asked)
    acting, on_centres = forces.on_due_centers(spec, pairs, sources, due, members)
    on_stars = partial(_force_on_stars, spec, pairs, sources, acting, on_centres, path, now)
    correct = partial(correct_stars, spec, now=now)
    stars, low = advance_stars(spec, stars, due, sources, on_stars, correct)

    force = partial(_force_on_tracers, spec, pairs, sources, members, path, now)
    hosts = partial(close_encounters.host_stars, spec, sources, stars, pairs, relative, now)
    move = partial(_move_tracers, spec, state.m.size, force, now)
    again: SecondMove[Tracers] = (
        partial(close_encounters.is_candidate, spec, pairs.m),
        partial(close_encounters.make_move, spec, force, hosts),
    )
    widths = spec.tile, spec.bulk
    schedule, count, below = scheduler.advance(packing, schedule, now, move, again, widths)

    # pairs change last, when all due bodies are at `now`; positions and velocities do not change
    tide = partial(spec.tide.force, path, now)
    stars, pairs = formation.dissolve(spec, stars, pairs, relative, now, tide)
    count = count_block(state, due, count, low + below)
    state = replace(state, stars=stars, pairs=pairs, **count)
    return _try_form_pair(spec, state, now), schedule


def _try_form_pair(spec: Hermite, state: State, now: Array) -> State:
    """Pair the star of the shortest step with its neighbour, if possible."""
    stars, pairs, refused = formation.form(spec, state.stars, state.pairs, now)
    return replace(state, stars=stars, pairs=pairs, refused=state.refused + refused)


def _needs_members(spec: Hermite, pairs: Pairs) -> Array:
    """Return a mask [S] of pairs whose members are needed without tracers."""
    return is_resolved(spec.pairing, pairs) | pairs.batch.dissolving


def _force_of_singles(
    spec: BlockSteps, m: Array, sources: Vector, path: Any, now: Array, x: Vector
) -> Array:
    """Return acceleration and jerk [6, K] at `x` [6, K] due to single stars and the galaxy."""
    return pair_forces.pull(x, sources, m, spec.softening) + spec.tide.force(path, now, as_array(x))


def _force_on_stars(
    spec: Hermite,
    pairs: Pairs,
    sources: Array,
    members: Members,
    on_centres: Array,
    path: Any,
    now: Array,
    index: Array,
    x: Array,
) -> Array:
    """Return acceleration and jerk [6, K] of stars due to stars, resolved pairs and the galaxy."""
    pull = forces.on_stars(pairs, sources, members, on_centres, index, x)
    return pull + spec.tide.force(path, now, x)


def _force_on_tracers(
    spec: Hermite,
    pairs: Pairs,
    sources: Array,
    members: Members,
    path: Any,
    now: Array,
    x: Array,
) -> Array:
    """Return acceleration and jerk [6, K] of tracers due to stars, pair members and the galaxy."""
    return forces.on_tracers(pairs, sources, members, x) + spec.tide.force(path, now, x)


def _move_tracers(
    spec: Hermite, stars: int, force: Any, now: Array, index: Array, old: Tracers
) -> tuple[Tracers, Array]:
    """Advance the tracers of a tile to `now`; tracers with a host move afterwards."""
    guess = lax.optimization_barrier(tracers.predict(spec, old, now))
    new, low = tracers.correct(spec, old, force(guess), now)
    if spec.pairing.slots == 0:
        return new, low
    hosted = old.host < stars
    keep = lambda old, new: jnp.where(hosted, old, new)
    return jax.tree.map(keep, old, new), low & ~hosted


def correct_stars(
    spec: Hermite, old: Population, f: Vector, now: Array
) -> tuple[Population, Array]:
    """Correct stars with the force `f` [6, B] at `now`; also return a mask of floored steps."""
    part = now - old.t
    h = spec.interval * jnp.where(part > 0, part, 1)  # padding lanes are not due: avoids 0 / 0
    known = old.x[:3], old.x[3:], old.a[:3], old.a[3:], f[:3], f[3:]
    x, v, snap, crackle = map_rows(_hermite_corrector, (h,), *known)
    a, j, s, c = (norm(q) for q in (f[:3], f[3:], snap, crackle))
    above, below = a * s + j * j, j * c + s * s
    # without any force, up to rounding of the previous one, the step is the longest
    free = (above == 0) | (below == 0)
    wanted = jnp.sqrt(spec.eta * above / jnp.where(free, 1, below))
    dt, low = next_step(spec, old.dt, jnp.where(free, jnp.inf, wanted), now)
    return Population(concat(x, v), f, jnp.full_like(old.t, now), dt), low


def _hermite_corrector(
    h: Array, x: Array, v0: Array, a0: Array, j0: Array, a1: Array, j1: Array
) -> tuple[Array, Array, Array, Array]:
    """Return position, velocity, snap and crackle after a step `h`, from forces at both ends."""
    v = v0 + h / 2 * (a0 + a1) + h * h / 12 * (j0 - j1)
    x = x + h / 2 * (v0 + v) + h * h / 12 * (a0 - a1)
    crackle = (12 * (a0 - a1) + 6 * h * (j0 + j1)) / (h * h * h)
    snap = (-6 * (a0 - a1) - h * (4 * j0 + 2 * j1)) / (h * h) + h * crackle  # at the end
    return x, v, snap, crackle
