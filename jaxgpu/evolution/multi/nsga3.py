"""NSGA-III and U-NSGA-III: survival of the least dominated, spread over reference directions.

Deb & Jain (2014), doi:10.1109/TEVC.2013.2281535; constraints and the tournament of feasibility:
Jain & Deb (2014), doi:10.1109/TEVC.2013.2281534; U-NSGA-III's niching tournament: Seada & Deb
(2016), doi:10.1109/TEVC.2015.2459718.

The intercepts are guarded as in the authors' later work (Blank, Deb & Roy 2019,
doi:10.1007/978-3-030-12598-1_19): where the extreme points span no proper plane, or one that
reaches beyond the worst point seen, the nadir is the worst of the first front.
Association and niching take O(N) memory: see `lattice` and `niching`.
"""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.evolution import pareto
from jaxgpu.evolution.lattice import Directions, associate
from jaxgpu.evolution.niching import fill
from jaxgpu.evolution.population import (
    Population,
    chosen,
    distinct,
    merge,
    permutation,
    sample,
    take,
)
from jaxgpu.evolution.problem import Box, Problem
from jaxgpu.evolution.protocol import ask, init, tell
from jaxgpu.evolution.variation import Variation, children
from jaxgpu.pytree import pytree, static


@pytree
class NSGA3:
    """What to run; the paper's operators by default."""

    directions: Directions  # H of them
    variation: Variation = Variation(eta_crossover=30.0, eta_mutation=20.0, crossover=1.0)
    population: int = static(default=92)  # N, even, about H
    unified: bool = static(default=False)  # U-NSGA-III: parents win a tournament in their niche

    def __post_init__(self) -> None:
        if self.population < 4 or self.population % 2:
            raise ValueError(f"NSGA3: population={self.population}; it must be even, at least 4")


@pytree
class Scale:
    """What the objectives are normalised by."""

    ideal: Array  # [m] best value seen of each objective
    worst: Array  # [m] worst value seen of each
    extreme: Array  # [m, m] member nearest to each axis, a row each
    nadir: Array  # [m] worst value on the front, by the plane through the extremes


@pytree
class State:
    """Where the run is."""

    population: Population
    rank: Array  # [N] front
    niche: Array  # [N] nearest direction
    distance: Array  # [N] to it, normalised
    scale: Scale
    box: Box
    key: Array  # [] of the niching ties
    generation: Array  # []


@init.register
def _(spec: NSGA3, key: Array, problem: Problem) -> State:
    n, m = spec.population, problem.objectives
    if spec.directions.w.shape[1] != m:
        raise ValueError(
            f"NSGA3: directions of {spec.directions.w.shape[1]} objectives; the problem has {m}"
        )
    k_sample, k_tell = jax.random.split(key)
    members = sample(k_sample, problem, n)
    dtype = members.x.dtype
    zero, far = jnp.zeros(n, jnp.int32), jnp.full(m, jnp.inf, dtype)
    scale = Scale(far, -far, jnp.full((m, m), jnp.inf, dtype), far)
    distance = jnp.zeros(n, dtype)
    return State(members, zero, zero, distance, scale, problem.box, k_tell, jnp.int32(0))


@ask.register
def _(spec: NSGA3, state: State, key: Array) -> Array:
    """Children of random parents; of two, a less violating one is preferred."""
    k_first, k_second, k_vary = jax.random.split(key, 3)
    n = spec.population
    a, b = permutation(k_first, n), permutation(k_second, n)
    entrants = jnp.concatenate([a, b]).reshape(2, -1)
    violation = state.population.violation[entrants]
    win = violation[0] <= violation[1]
    if spec.unified:
        same = (state.niche[entrants[0]] == state.niche[entrants[1]]) & (
            violation[0] == violation[1]
        )
        rank, distance = state.rank[entrants], state.distance[entrants]
        nearer = (rank[0] == rank[1]) & (distance[0] <= distance[1])
        win = jnp.where(same, (rank[0] < rank[1]) | nearer, win)
    x = state.population.x[jnp.where(win, entrants[0], entrants[1])]
    x = children(k_vary, spec.variation, x[: n // 2], x[n // 2 :], state.box)
    return jnp.where(state.generation == 0, state.population.x, x)


@tell.register
def _(spec: NSGA3, state: State, x: Array, f: Array, violation: Array) -> State:
    n = spec.population
    both = merge(Population(x, f, violation), state.population)
    known = distinct(both)
    rank = pareto.ranks(*known, stop=n)
    scale = rescale(state.scale, both.f, (rank == 0) & (both.violation <= 0))
    span = (scale.nadir - scale.ideal)[None]
    g = jnp.where(jnp.isfinite(both.f), (both.f - scale.ideal[None]) / span, 0)
    niche, distance = associate(spec.directions, jnp.maximum(g, 0))
    cut = jnp.sort(rank.astype(jnp.uint32))[n - 1].astype(jnp.int32)
    kept = rank < cut
    taken = jnp.zeros(spec.directions.w.shape[0], jnp.int32).at[niche].add(kept.astype(jnp.int32))
    key = jax.random.fold_in(state.key, state.generation)
    more = n - jnp.sum(kept, dtype=jnp.int32)
    kept |= fill(key, niche, distance, taken, rank == cut, more)
    best = chosen(kept, n)
    return State(
        take(both, best),
        rank[best],
        niche[best],
        distance[best],
        scale,
        state.box,
        state.key,
        state.generation + 1,
    )


def rescale(scale: Scale, f: Array, front: Array) -> Scale:
    """The scale after the members f [n, m], those of the first feasible front marked."""
    m = f.shape[1]
    known = jnp.all(jnp.isfinite(f), axis=1, keepdims=True)
    ideal = jnp.minimum(scale.ideal, jnp.min(f, axis=0))
    worst = jnp.maximum(scale.worst, jnp.max(jnp.where(known, f, -jnp.inf), axis=0))
    origin = jnp.where(jnp.isfinite(ideal), ideal, 0)
    front = front[:, None] & known
    points = jnp.concatenate([scale.extreme, jnp.where(front, f, jnp.inf)])
    away = points - origin[None]
    # equation 4: an axis weighs 1, the others 1e6; a thousandth of the range counts as on the axis
    away = jnp.where(away < 1e-3, 0, away)
    weight = jnp.where(jnp.eye(m, dtype=bool), 1, 1e6).astype(f.dtype)
    reach = [jnp.max(away * weight[k][None], axis=1) for k in range(m)]
    extreme = points[jnp.stack([jnp.argmin(r) for r in reach])]
    edge = jnp.max(jnp.where(front, f, -jnp.inf), axis=0)
    nadir = jnp.where(jnp.isfinite(edge), edge, worst)
    nadir = _intercepts(extreme, origin, nadir, worst)
    flat = ~jnp.isfinite(nadir) | (nadir - origin <= 1e-6)
    nadir = jnp.where(flat, jnp.where(worst > origin + 1e-6, worst, origin + 1), nadir)
    return Scale(ideal, worst, extreme, nadir)


def _intercepts(extreme: Array, origin: Array, fallback: Array, worst: Array) -> Array:
    """Where the plane through the extremes meets the axes, or the fallback where it does not."""
    m = origin.shape[0]
    rows = extreme - origin[None]
    sound = jnp.all(jnp.isfinite(rows))
    rows = jnp.where(sound, rows, jnp.eye(m, dtype=rows.dtype))
    plane = jnp.linalg.solve(rows, jnp.ones(m, rows.dtype))
    reach = 1 / plane
    off = jnp.sum(rows * plane[None], axis=1) - 1
    sound &= jnp.all(jnp.isfinite(reach) & (reach > 1e-6) & (jnp.abs(off) < 1e-2))
    sound &= jnp.all(origin + reach <= worst * (1 + 1e-6) + 1e-12)
    return jnp.where(sound, origin + reach, fallback)
