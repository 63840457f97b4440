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
from .mating import Elitist, Ranked
from .niching import fill
from .reference_directions import ReferenceDirections, associate
from .variation import SBX, PolynomialMutation


@pytree
class NSGA3(Elitist["State"]):
    """What to run; the paper's operators by default."""

    ref_dirs: ReferenceDirections  # H of them
    # N, even, about H; by default the least multiple of four that is not below H
    pop_size: int | None = size(default=None, least=4, none=True)
    crossover: SBX = SBX(30.0, 1.0, bounded=False)
    mutation: PolynomialMutation = PolynomialMutation()
    unified: bool = static(default=False)  # U-NSGA-III: parents win a tournament in their niche
    guarded: bool = static(default=True)  # the plane of the later work, or the paper's own
    spaced: bool = static(default=False)  # by room where the paper's choice is random

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
        """The less violating one wins; if `unified`, within a niche the better."""
        violation = state.population.violation[pair]
        win = violation[0] <= violation[1]
        if self.unified:
            niche, rank, distance = state.niche[pair], state.rank[pair], state.distance[pair]
            nearer = (rank[0] == rank[1]) & (distance[0] <= distance[1])
            same = (niche[0] == niche[1]) & (violation[0] == violation[1])
            win = jnp.where(same, (rank[0] < rank[1]) | nearer, win)
        return win

    def survive(self, state: "State", merged: Population, rank: Array, cut: Array) -> "State":
        """The first fronts survive, of the last those that niching takes."""
        n = self.batch_size
        scale = rescale(state.scale, merged.f, merged.violation <= 0, rank == 0, self.guarded)
        origin = _known(scale.ideal)[None]
        g = jnp.where(jnp.isfinite(merged.f), (merged.f - origin) / (scale.nadir[None] - origin), 0)
        niche, distance = associate(self.ref_dirs, jnp.maximum(g, 0))
        survives = rank < cut
        count = jnp.zeros(self.ref_dirs.w.shape[0], jnp.int32)
        count = count.at[niche].add(survives.astype(jnp.int32))
        key = jax.random.fold_in(key_from(merged.x[:n]), state.generation)
        more = n - jnp.sum(survives, dtype=jnp.int32)
        room = crowding_distance(g, (rank > cut).astype(jnp.int32)) if self.spaced else None
        survives |= fill(key, niche, distance, count, rank == cut, more, room)
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
    """What the objectives are normalised by."""

    ideal: Array  # [m] best value seen of each objective, of feasible members; infinite before
    worst: Array  # [m] worst value seen of each
    extreme: Array  # [m, m] member nearest to each axis, a row each
    nadir: Array  # [m] worst value on the front, by the plane through the extremes


@pytree
class State(Ranked):
    """Where the run is."""

    niche: Array  # [N] nearest direction
    distance: Array  # [N] to it, normalised
    scale: Scale


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
