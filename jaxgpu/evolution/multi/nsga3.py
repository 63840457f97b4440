"""NSGA-III and U-NSGA-III: survival of the least dominated, spread over reference directions.

Deb & Jain (2014), doi:10.1109/TEVC.2013.2281535; constraints and the tournament of feasibility:
Jain & Deb (2014), doi:10.1109/TEVC.2013.2281534; U-NSGA-III's niching tournament: Seada & Deb
(2016), doi:10.1109/TEVC.2015.2459718.

The intercepts are guarded as in the authors' later work (Blank, Deb & Roy 2019,
doi:10.1007/978-3-030-12598-1_19): extreme points are remembered, and no intercept is beyond the
worst point seen; `guarded=False` leaves both out. Where the extreme points span no proper plane,
the nadir is the worst of the first front. Infeasible members set no scale. Where the paper takes
random members, further ones of a direction or of equal directions, `spaced=True` takes those with
the most room around them, by NSGA-II's crowding distance.
Association and niching take O(N) memory: see `lattice` and `niching`.
"""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import pytree, size, static

from ..pareto.crowding import crowding
from ..population import Population, chosen, even, sample, take
from ..problem import Box, Problem
from ..protocol import ask, init, tell
from .lattice import Directions, associate
from .mating import brood, ranked, tournaments
from .niching import fill
from .variation import Variation


@pytree
class NSGA3:
    """What to run; the paper's operators by default."""

    directions: Directions  # H of them
    variation: Variation = Variation(30.0, 20.0, crossover=1.0, bounded=False)
    # N, even, about H; by default the least multiple of four that is not below H
    population: int | None = size(default=None, least=4, none=True)
    unified: bool = static(default=False)  # U-NSGA-III: parents win a tournament in their niche
    guarded: bool = static(default=True)  # the plane of the later work, or the paper's own
    spaced: bool = static(default=False)  # by room where the paper's choice is random

    def __post_init__(self) -> None:
        even("NSGA3", self.population)

    @property
    def members(self) -> int:
        """N."""
        lines = self.directions.w.shape[-2]
        return max(4, -(-lines // 4) * 4) if self.population is None else self.population


@pytree
class Scale:
    """What the objectives are normalised by."""

    ideal: Array  # [m] best value seen of each objective, of feasible members; infinite before
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
    n, m = spec.members, problem.objectives
    if spec.directions.w.ndim != 2 or spec.directions.w.shape[1] != m:
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
    k_meet, k_vary = jax.random.split(key)
    pair = tournaments(k_meet, spec.members)
    violation = state.population.violation[pair]
    win = violation[0] <= violation[1]
    if spec.unified:
        niche, rank, distance = state.niche[pair], state.rank[pair], state.distance[pair]
        nearer = (rank[0] == rank[1]) & (distance[0] <= distance[1])
        same = (niche[0] == niche[1]) & (violation[0] == violation[1])
        win = jnp.where(same, (rank[0] < rank[1]) | nearer, win)
    return brood(k_vary, spec.variation, state, jnp.where(win, pair[0], pair[1]))


@tell.register
def _(spec: NSGA3, state: State, x: Array, f: Array, violation: Array) -> State:
    n = spec.members
    both, rank, cut = ranked(state, Population(x, f, violation))
    feasible = both.violation <= 0
    scale = rescale(state.scale, both.f, feasible, rank == 0, spec.guarded)
    origin = _known(scale.ideal)[None]
    g = jnp.where(jnp.isfinite(both.f), (both.f - origin) / (scale.nadir[None] - origin), 0)
    niche, distance = associate(spec.directions, jnp.maximum(g, 0))
    kept = rank < cut
    taken = jnp.zeros(spec.directions.w.shape[0], jnp.int32).at[niche].add(kept.astype(jnp.int32))
    key = jax.random.fold_in(state.key, state.generation)
    more = n - jnp.sum(kept, dtype=jnp.int32)
    room = crowding(g, (rank > cut).astype(jnp.int32)) if spec.spaced else None
    kept |= fill(key, niche, distance, taken, rank == cut, more, room)
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


def rescale(scale: Scale, f: Array, feasible: Array, front: Array, guarded: bool = True) -> Scale:
    """The scale after the members f [n, m], given which are feasible and in the first front.

    A front may be nearly flat in one objective, as in the first generations of DTLZ4, and its
    members must still spread along it: no range is too small to be normalised by.
    """
    m = f.shape[1]
    known = jnp.all(jnp.isfinite(f), axis=1, keepdims=True) & feasible[:, None]
    ideal = jnp.minimum(scale.ideal, jnp.min(jnp.where(known, f, jnp.inf), axis=0))
    worst = jnp.maximum(scale.worst, jnp.max(jnp.where(known, f, -jnp.inf), axis=0))
    origin = _known(ideal)
    front = front[:, None] & known
    edge = jnp.max(jnp.where(front, f, -jnp.inf), axis=0)
    nadir = jnp.where(jnp.isfinite(edge), edge, worst)
    span = jnp.where(jnp.isfinite(nadir) & (nadir > origin), nadir - origin, 1)
    points = jnp.where(front, f, jnp.inf)
    points = jnp.concatenate([scale.extreme, points]) if guarded else points
    away = points - origin[None]
    # equation 4: an axis weighs 1, the others 1e6; 1e-3, or a hundredth of the range where that
    # is less, counts as on the axis
    away = jnp.where(away < jnp.minimum(1e-3, 1e-2 * span)[None], 0, away)
    weight = jnp.where(jnp.eye(m, dtype=bool), 1, 1e6).astype(f.dtype)
    reach = [jnp.max(away * weight[k][None], axis=1) for k in range(m)]
    extreme = points[jnp.stack([jnp.argmin(r) for r in reach])]
    farthest = worst if guarded else jnp.full_like(worst, jnp.inf)
    nadir = _intercepts(extreme, origin, span, nadir, farthest)
    nadir = jnp.where(jnp.isfinite(nadir) & (nadir > origin), nadir, worst)
    return Scale(ideal, worst, extreme, jnp.where(nadir > origin, nadir, origin + 1))


def _known(ideal: Array) -> Array:
    """0 where no feasible member has been seen: all are then ranked by their violations."""
    return jnp.where(jnp.isfinite(ideal), ideal, 0)


def _intercepts(
    extreme: Array, origin: Array, span: Array, fallback: Array, farthest: Array
) -> Array:
    """Where the plane through the extremes meets the axes, or the fallback where it does not."""
    m = origin.shape[0]
    rows = (extreme - origin[None]) / span[None]
    sound = jnp.all(jnp.isfinite(rows))
    rows = jnp.where(sound, rows, jnp.eye(m, dtype=rows.dtype))
    plane = jnp.linalg.solve(rows, jnp.ones(m, rows.dtype))
    reach = 1 / plane
    off = jnp.sum(rows * plane[None], axis=1) - 1
    sound &= jnp.all(jnp.isfinite(reach) & (reach > 1e-6) & (jnp.abs(off) < 1e-2))
    return jnp.where(sound, jnp.minimum(origin + reach * span, farthest), fallback)
