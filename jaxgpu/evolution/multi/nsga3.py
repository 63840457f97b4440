"""NSGA-III and U-NSGA-III: non-dominated survival, spread over reference directions.

Deb & Jain (2014), doi:10.1109/TEVC.2013.2281535; constraints and the tournament of feasibility:
Jain & Deb (2014), doi:10.1109/TEVC.2013.2281534; U-NSGA-III's niching tournament: Seada & Deb
(2016), doi:10.1109/TEVC.2015.2459718.

The intercepts are guarded as in the authors' later work (Blank, Deb & Roy 2019,
doi:10.1007/978-3-030-12598-1_19): extreme points are retained between generations, and intercepts
do not exceed the worst point so far. `guarded=False` disables both. If the extreme points span no
proper plane, the nadir is the worst of the first front. Infeasible members do not affect the scale.
Where the paper selects random members, further ones of a direction or of equal directions,
`spaced=True` selects those with the most room around them, by NSGA-II's crowding distance.
Association and niching take O(N) memory: see `reference_directions` and `niching`.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree, size, static

from ..pareto.crowding import crowding_distance
from ..population import Population, flatnonzero, key_from, take
from .mating import Elitist, ElitistState
from .niching import fill_niches
from .reference_directions import ReferenceDirections, associate
from .variation import SBX, PolynomialMutation


@pytree
class NSGA3(Elitist["State"]):
    """NSGA-III (Deb & Jain 2014) and U-NSGA-III; the defaults are the paper's operators."""

    ref_dirs: ReferenceDirections  # H directions
    # N, even, about H; by default the smallest multiple of four that is at least H
    pop_size: int | None = size(default=None, least=4, none=True)
    crossover: SBX = SBX(30.0, 1.0, bounded=False)
    mutation: PolynomialMutation = PolynomialMutation()
    unified: bool = static(default=False)  # U-NSGA-III: tournaments within niches
    guarded: bool = static(default=True)  # intercepts of the later work, else the paper's
    spaced: bool = static(default=False)  # select by room where the paper's choice is random

    @property
    def batch_size(self) -> int:
        lines = self.ref_dirs.w.shape[-2]
        return max(4, -(-lines // 4) * 4) if self.pop_size is None else self.pop_size

    def begin(self, members: Population, rank: Array, **placed: Any) -> "State":
        self.ref_dirs.check_objectives("NSGA3", members.f.shape[1])
        m, dtype = members.f.shape[1], members.x.dtype
        far = jnp.full(m, jnp.inf, dtype)
        return State(
            population=members,
            rank=rank,
            niche=rank,
            distance=jnp.zeros(self.batch_size, dtype),
            scale=Scale(far, -far, jnp.full((m, m), jnp.inf, dtype), far),
            **placed,
        )

    def wins(self, state: "State", pair: Array) -> Array:
        """Return whether the first of each pair violates less; if `unified`, wins in its niche."""
        violation = state.population.violation[pair]
        win = violation[0] <= violation[1]
        if self.unified:
            niche, rank, distance = state.niche[pair], state.rank[pair], state.distance[pair]
            nearer = (rank[0] == rank[1]) & (distance[0] <= distance[1])
            same = (niche[0] == niche[1]) & (violation[0] == violation[1])
            win = jnp.where(same, (rank[0] < rank[1]) | nearer, win)
        return win

    def survive(self, state: "State", merged: Population, rank: Array, cut: Array) -> "State":
        """Keep the first fronts, and from the last one the members selected by niching."""
        n = self.batch_size
        scale = rescale(state.scale, merged.f, merged.violation <= 0, rank == 0, self.guarded)
        origin = _finite_ideal(scale.ideal)[None]
        g = jnp.where(jnp.isfinite(merged.f), (merged.f - origin) / (scale.nadir[None] - origin), 0)
        niche, distance = associate(self.ref_dirs, jnp.maximum(g, 0))
        survives = rank < cut
        count = jnp.zeros(self.ref_dirs.w.shape[0], jnp.int32)
        count = count.at[niche].add(survives.astype(jnp.int32))
        key = jax.random.fold_in(key_from(merged.x[:n]), state.generation)
        more = n - jnp.sum(survives, dtype=jnp.int32)
        room = crowding_distance(g, (rank > cut).astype(jnp.int32)) if self.spaced else None
        survives |= fill_niches(key, niche, distance, count, rank == cut, more, room)
        best = flatnonzero(survives, n)
        return replace(
            state,
            population=take(merged, best),
            rank=rank[best],
            niche=niche[best],
            distance=distance[best],
            scale=scale,
        )


@pytree
class Scale:
    """Normalisation of the objectives."""

    ideal: Array  # [m] best value so far, of feasible members; infinite at first
    worst: Array  # [m] worst value so far of each objective
    extreme: Array  # [m, m] member nearest to each axis, one per row
    nadir: Array  # [m] worst value on the front, from the plane through the extremes


@pytree
class State(ElitistState):
    """State of an NSGA-III run."""

    niche: Array  # [N] nearest direction of each member
    distance: Array  # [N] normalised distance to it
    scale: Scale


def rescale(scale: Scale, f: Array, feasible: Array, front: Array, guarded: bool = True) -> Scale:
    """Update the scale with the members f [n, m], given masks of feasible and first-front ones.

    A front may be nearly flat in one objective, as in the first generations of DTLZ4, and its
    members must still spread along it, so there is no lower limit on the normalised range.
    """
    m = f.shape[1]
    known = jnp.all(jnp.isfinite(f), axis=1, keepdims=True) & feasible[:, None]
    ideal = jnp.minimum(scale.ideal, jnp.min(jnp.where(known, f, jnp.inf), axis=0))
    worst = jnp.maximum(scale.worst, jnp.max(jnp.where(known, f, -jnp.inf), axis=0))
    origin = _finite_ideal(ideal)
    front = front[:, None] & known
    edge = jnp.max(jnp.where(front, f, -jnp.inf), axis=0)
    nadir = jnp.where(jnp.isfinite(edge), edge, worst)
    span = jnp.where(jnp.isfinite(nadir) & (nadir > origin), nadir - origin, 1)
    points = jnp.where(front, f, jnp.inf)
    points = jnp.concatenate([scale.extreme, points]) if guarded else points
    away = points - origin[None]
    # equation 4: the axis has weight 1, the others 1e6; values below 1e-3, or below a hundredth
    # of the range if that is less, count as on the axis
    away = jnp.where(away < jnp.minimum(1e-3, 1e-2 * span)[None], 0, away)
    weight = jnp.where(jnp.eye(m, dtype=bool), 1, 1e6).astype(f.dtype)
    reach = [jnp.max(away * weight[k][None], axis=1) for k in range(m)]
    extreme = points[jnp.stack([jnp.argmin(r) for r in reach])]
    farthest = worst if guarded else jnp.full_like(worst, jnp.inf)
    nadir = _intercepts(extreme, origin, span, nadir, farthest)
    nadir = jnp.where(jnp.isfinite(nadir) & (nadir > origin), nadir, worst)
    return Scale(ideal, worst, extreme, jnp.where(nadir > origin, nadir, origin + 1))


def _finite_ideal(ideal: Array) -> Array:
    """Return the ideal point, with 0 before any feasible member; all then rank by violation."""
    return jnp.where(jnp.isfinite(ideal), ideal, 0)


def _intercepts(
    extreme: Array, origin: Array, span: Array, fallback: Array, farthest: Array
) -> Array:
    """Return the intercepts of the plane through the extremes, or the fallback without a plane."""
    m = origin.shape[0]
    rows = (extreme - origin[None]) / span[None]
    sound = jnp.all(jnp.isfinite(rows))
    rows = jnp.where(sound, rows, jnp.eye(m, dtype=rows.dtype))
    plane = jnp.linalg.solve(rows, jnp.ones(m, rows.dtype))
    reach = 1 / plane
    off = jnp.sum(rows * plane[None], axis=1) - 1
    sound &= jnp.all(jnp.isfinite(reach) & (reach > 1e-6) & (jnp.abs(off) < 1e-2))
    return jnp.where(sound, jnp.minimum(origin + reach * span, farthest), fallback)
