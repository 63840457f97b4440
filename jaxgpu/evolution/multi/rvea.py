"""RVEA: one survivor a direction, chosen by an angle that counts for more as time goes on.

Cheng, Jin, Olhofer & Sendhoff (2016), doi:10.1109/TEVC.2016.2519378. The survivors fill at most
as many slots as there are directions; a direction without a member leaves its slot empty. The
angle between neighbouring directions, which scales the penalty, is computed when the directions
change and not in every generation. O(N) memory.

Of the members of a direction, one that is not dominated comes before one that is, which is not in
the paper: there the angle comes to count for so much that members off the front win.
"""

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.pytree import number, pytree

from .. import pareto
from ..population import Population, chosen, merge, permutation, sample, take
from ..problem import Box, Problem
from ..protocol import ask, init, tell
from .lattice import Directions
from .variation import Variation, children

_TILE = 128


@pytree
class RVEA:
    """What to run; the paper's parameters by default."""

    directions: Directions  # H of them; the population has as many slots
    variation: Variation = Variation(30.0, 20.0, crossover=1.0, bounded=False)
    generations: Array | int = number(
        default=250, least=1, one=True
    )  # [] t_max: the penalty in full
    alpha: Array | float = number(default=2.0, least=0, one=True)  # [] how late the penalty sets in
    # of the run between two adaptations of the directions
    adaptation: Array | float = number(default=0.1, least=0, most=1, one=True)  # [] share


@pytree
class State:
    """Where the run is. Empty slots have infinite objectives and violation."""

    population: Population
    unit: Array  # [H, m] directions, scaled to the range of the objectives
    angle: Array  # [H] to the nearest other direction, rad
    box: Box
    generation: Array  # []


@init.register
def _(spec: RVEA, key: Array, problem: Problem) -> State:
    h, m = spec.directions.w.shape
    if problem.objectives != m:
        raise ValueError(
            f"RVEA: directions of {m} objectives; the problem has {problem.objectives}"
        )
    unit = _normalise(jnp.asarray(spec.directions.w, problem.box.lower.dtype))
    members = sample(key, problem, h)
    return State(members, unit, _angles(unit), problem.box, jnp.int32(0))


@ask.register
def _(spec: RVEA, state: State, key: Array) -> Array:
    """Children of random pairs of the slots that are filled."""
    k_first, k_second, k_vary = jax.random.split(key, 3)
    n = state.population.x.shape[0]
    filled = jnp.isfinite(state.population.violation)
    count = jnp.maximum(jnp.sum(filled, dtype=jnp.int32), 1)
    members = chosen(filled, n)
    half = (n + 1) // 2
    a = state.population.x[members[permutation(k_first, n)[:half] % count]]
    b = state.population.x[members[permutation(k_second, n)[:half] % count]]
    x = children(k_vary, spec.variation, a, b, state.box)[:n]
    return jnp.where(state.generation == 0, state.population.x, x)


@tell.register
def _(spec: RVEA, state: State, x: Array, f: Array, violation: Array) -> State:
    both = merge(state.population, Population(x, f, violation))
    h, m = state.unit.shape
    known = jnp.isfinite(both.violation) & jnp.all(jnp.isfinite(both.f), axis=1)
    low, _ = _range(both, known)
    g = jnp.where(known[:, None], both.f - low[None], 0)
    size = jnp.sqrt(jnp.sum(g * g, axis=1))
    niche = _nearest(state.unit, g)
    along = jnp.sum(g * state.unit[niche], axis=1)
    off = g - along[:, None] * state.unit[niche]
    # the arccosine would have half the digits where the angles are small, as they are at the end
    theta = jnp.arctan2(jnp.sqrt(jnp.sum(off * off, axis=1)), along)
    time = (state.generation / spec.generations).astype(f.dtype)
    penalty = m * time**spec.alpha * theta / state.angle[niche]
    home = jnp.where(known, niche, h)
    # within a direction: those that are not dominated, other feasible ones, the least violating
    feasible = known & (both.violation <= 0)
    front = pareto.nondominated(jnp.where(feasible[:, None], both.f, jnp.inf))
    order = jnp.where(feasible, jnp.where(front, -1, 0), both.violation)
    known &= order <= jnp.full(h + 1, jnp.inf, f.dtype).at[home].min(order)[home]
    value = jnp.where(known, (1 + penalty) * size, jnp.inf)  # equation 10
    best = jnp.full(h + 1, jnp.inf, f.dtype).at[home].min(value)
    index = jnp.where(known & (value == best[home]), jnp.arange(2 * h, dtype=jnp.int32), 2 * h)
    winner = jnp.full(h + 1, 2 * h, jnp.int32).at[home].min(index)[:h]
    filled = winner < 2 * h
    members = take(both, jnp.minimum(winner, 2 * h - 1))
    members = Population(
        members.x,
        jnp.where(filled[:, None], members.f, jnp.inf),
        jnp.where(filled, members.violation, jnp.inf),
    )
    unit, angle = _adapt(spec, state, members)
    return State(members, unit, angle, state.box, state.generation + 1)


def _adapt(spec: RVEA, state: State, members: Population) -> tuple[Array, Array]:
    """Scale the directions to the ranges of the survivors, now and then."""
    every = jnp.maximum(jnp.ceil(spec.adaptation * spec.generations), 1).astype(jnp.int32)

    def scaled() -> tuple[Array, Array]:
        low, high = _range(members, jnp.isfinite(members.violation))
        span = high - low
        span = jnp.where(jnp.isfinite(span) & (span > 1e-6), span, 1e-6)
        unit = _normalise(jnp.asarray(spec.directions.w, span.dtype) * span[None])
        return unit, _angles(unit)

    due = (state.generation % every == 0) & (state.generation > 0)
    return lax.cond(due, scaled, lambda: (state.unit, state.angle))


def _range(members: Population, known: Array) -> tuple[Array, Array]:
    """Least and greatest objectives of the feasible members, or of all known ones before any."""
    feasible = known & (members.violation <= 0)
    counted = jnp.where(jnp.any(feasible), feasible, known)[:, None]
    low = jnp.min(jnp.where(counted, members.f, jnp.inf), axis=0)
    return low, jnp.max(jnp.where(counted, members.f, -jnp.inf), axis=0)


def _normalise(w: Array) -> Array:
    return w / jnp.sqrt(jnp.sum(w * w, axis=1, keepdims=True))


def _nearest(unit: Array, g: Array) -> Array:
    """The direction with the greatest projection of each point."""

    def one(point: Array) -> Array:
        return jnp.argmax(jnp.sum(unit * point[None], axis=1)).astype(jnp.int32)

    return lax.map(one, g, batch_size=_TILE)


def _angles(unit: Array) -> Array:
    """Angle from each direction to the nearest other one, rad. From the chord: exact if small."""
    h = unit.shape[0]

    def nearest(i: Array) -> Array:
        chord = jnp.sum((unit - unit[i][None]) ** 2, axis=1)
        return jnp.min(jnp.where(jnp.arange(h) == i, jnp.inf, chord))

    chord = jnp.sqrt(lax.map(nearest, jnp.arange(h), batch_size=_TILE))
    return 2 * jnp.arcsin(jnp.minimum(chord / 2, 1))
