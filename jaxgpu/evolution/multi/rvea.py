"""RVEA: one survivor per direction, selected by an angle penalty that increases over the run.

Cheng, Jin, Olhofer & Sendhoff (2016), doi:10.1109/TEVC.2016.2519378. The survivors fill at most as
many slots as there are directions; a direction without a member leaves its slot empty. The angle
between adjacent directions, which scales the penalty, is computed only when the directions change.
O(N) memory.

Difference from the paper: of the members of a direction, non-dominated ones precede dominated ones.
In the paper the penalty becomes so large that members off the front win.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import number, pytree

from .. import pareto
from ..population import Population, flatnonzero, merge, permutation, sample, take
from ..problem import Box, Problem
from ..protocol import Algorithm, check_inputs, check_tell
from .reference_directions import TILE, ReferenceDirections, nearest_line, unit_vectors
from .variation import SBX, PolynomialMutation, children


@pytree
class RVEA(Algorithm["State"]):
    """RVEA (Cheng et al. 2016); the defaults are the paper's parameters.

    >>> from jaxgpu.evolution import evolve, problems
    >>> from jaxgpu.evolution.multi import das_dennis
    >>> spec = RVEA(das_dennis(3, 4), generations=3)
    >>> jax.jit(evolve)(spec, problems.dtlz2(3), jax.random.key(0), 3).population.f.shape
    (15, 3)
    """

    ref_dirs: ReferenceDirections  # H directions; the population has H slots
    crossover: SBX = SBX(30.0, 1.0, bounded=False)
    mutation: PolynomialMutation = PolynomialMutation()
    # [] t_max: generation at which the penalty is full
    generations: Array | int = number(default=250, least=1, one=True)
    alpha: Array | float = number(default=2.0, least=0, one=True)  # [] larger is a later penalty
    # time between adaptations of the directions, relative to the run
    adaptation: Array | float = number(default=0.1, least=0, most=1, one=True)  # [] fraction

    @property
    def batch_size(self) -> int:
        return self.ref_dirs.w.shape[-2]

    def init(self, key: Array, problem: Problem) -> "State":
        """Return the state with one member per direction, sampled uniformly in the box."""
        problem = check_inputs("init", self, key, problem)
        self.ref_dirs.check_objectives("RVEA", problem.objectives)
        unit = unit_vectors(jnp.asarray(self.ref_dirs.w, problem.box.lower.dtype))
        return State(
            population=sample(key, problem, self.batch_size),
            unit=unit,
            angle=_nearest_angles(unit),
            box=problem.box,
            generation=jnp.int32(0),
        )

    def ask(self, state: "State", key: Array) -> Array:
        """Return children of random pairs of the filled slots."""
        k_first, k_second, k_vary = jax.random.split(key, 3)
        x, n = state.population.x, state.population.x.shape[0]
        filled = jnp.isfinite(state.population.violation)
        count = jnp.maximum(jnp.sum(filled, dtype=jnp.int32), 1)
        members = flatnonzero(filled, n)
        half = (n + 1) // 2
        a = x[members[permutation(k_first, n)[:half] % count]]
        b = x[members[permutation(k_second, n)[:half] % count]]
        made = children(k_vary, self.crossover, self.mutation, a, b, state.box)[:n]
        # the first generation evaluates the initial members
        return jnp.where(state.generation == 0, x, made)

    def tell(self, state: "State", x: Array, f: Array, violation: Array | None = None) -> "State":
        """Select for each direction the member with the least angle-penalised distance."""
        x, f, violation = check_tell(self, state, x, f, violation)
        merged = merge(state.population, Population(x, f, violation))
        members = _take_slots(merged, _select_winners(self, state, merged))
        unit, angle = _adapt_directions(self, state, members)
        generation = state.generation + 1
        return replace(state, population=members, unit=unit, angle=angle, generation=generation)


@pytree
class State:
    """State of an RVEA run. Empty slots have infinite objectives and violation."""

    population: Population
    unit: Array  # [H, m] directions, scaled to the range of the objectives
    angle: Array  # [H] angle to the nearest other direction, rad
    box: Box
    generation: Array  # [] number of generations so far


def _select_winners(spec: RVEA, state: State, merged: Population) -> Array:
    """Return the index [H] of the member that each direction keeps, among all n; n if none."""
    f, n = merged.f, merged.x.shape[0]
    h, m = state.unit.shape
    known = jnp.isfinite(merged.violation) & jnp.all(jnp.isfinite(f), axis=1)
    low, _ = _objective_range(merged, known)
    g = jnp.where(known[:, None], f - low[None], 0)
    size = jnp.sqrt(jnp.sum(g * g, axis=1))
    niche = nearest_line(state.unit, g)
    along = jnp.sum(g * state.unit[niche], axis=1)
    off = g - along[:, None] * state.unit[niche]
    # arctan2 instead of arccos, which loses half of the digits of the small angles late in a run
    theta = jnp.arctan2(jnp.sqrt(jnp.sum(off * off, axis=1)), along)
    time = (state.generation / spec.generations).astype(f.dtype)
    penalty = m * time**spec.alpha * theta / state.angle[niche]
    home = jnp.where(known, niche, h)
    # order in a direction: non-dominated members, other feasible ones, then by violation
    feasible = known & (merged.violation <= 0)
    front = pareto.is_non_dominated(jnp.where(feasible[:, None], f, jnp.inf))
    order = jnp.where(feasible, jnp.where(front, -1, 0), merged.violation)
    known &= order <= jnp.full(h + 1, jnp.inf, f.dtype).at[home].min(order)[home]
    value = jnp.where(known, (1 + penalty) * size, jnp.inf)  # equation 10
    best = jnp.full(h + 1, jnp.inf, f.dtype).at[home].min(value)
    index = jnp.where(known & (value == best[home]), jnp.arange(n, dtype=jnp.int32), n)
    return jnp.full(h + 1, n, jnp.int32).at[home].min(index)[:h]


def _take_slots(population: Population, index: Array) -> Population:
    """Return the members with these indices; an index of n gives an empty slot."""
    n = population.x.shape[0]
    filled = index < n
    members = take(population, jnp.minimum(index, n - 1))
    return Population(
        x=members.x,
        f=jnp.where(filled[:, None], members.f, jnp.inf),
        violation=jnp.where(filled, members.violation, jnp.inf),
    )


def _adapt_directions(spec: RVEA, state: State, members: Population) -> tuple[Array, Array]:
    """Scale the directions to the ranges of the survivors, if an adaptation is due."""
    every = jnp.maximum(jnp.ceil(spec.adaptation * spec.generations), 1).astype(jnp.int32)

    def scale_directions() -> tuple[Array, Array]:
        low, high = _objective_range(members, jnp.isfinite(members.violation))
        span = high - low
        span = jnp.where(jnp.isfinite(span) & (span > 1e-6), span, 1e-6)
        unit = unit_vectors(jnp.asarray(spec.ref_dirs.w, span.dtype) * span[None])
        return unit, _nearest_angles(unit)

    due = (state.generation % every == 0) & (state.generation > 0)
    return lax.cond(due, scale_directions, lambda: (state.unit, state.angle))


def _objective_range(members: Population, known: Array) -> tuple[Array, Array]:
    """Return min and max objectives of the feasible members, or of all known ones before any."""
    feasible = known & (members.violation <= 0)
    counted = jnp.where(jnp.any(feasible), feasible, known)[:, None]
    low = jnp.min(jnp.where(counted, members.f, jnp.inf), axis=0)
    return low, jnp.max(jnp.where(counted, members.f, -jnp.inf), axis=0)


def _nearest_angles(unit: Array) -> Array:
    """Return the angle from each direction to the nearest other one, rad; accurate if small."""
    h = unit.shape[0]

    def chord(i: Array) -> Array:
        square = jnp.sum((unit - unit[i][None]) ** 2, axis=1)
        return jnp.sqrt(jnp.min(jnp.where(jnp.arange(h) == i, jnp.inf, square)))

    chords = lax.map(chord, jnp.arange(h), batch_size=TILE)
    return 2 * jnp.arcsin(jnp.minimum(chords / 2, 1))
