"""The face of the difference of two convex shapes that is nearest to the origin.

The shapes overlap where the set of all a - b, a of the one and b of the other, holds the origin;
how deep, and along which normal, the nearest point of that set's surface says. A polytope within
the set grows by its farthest point along the direction in which the origin is nearest to it, a
fixed number of times, whether the origin is inside (van den Bergen's expanding polytope) or
outside (the distance of Gilbert, Johnson and Keerthi, doi:10.1109/56.2083).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from .hull import Hull, along, bulge, farthest, tangents, turned

TURNS = 24  # points that are added to the four of the beginning
CANDIDATES = 8  # faces whose overlap is looked at in the end
_POINTS = 4 + TURNS
_FACES = 2 * _POINTS - 4  # by Euler's formula
_START = ((0, 1, 2), (0, 3, 1), (0, 2, 3), (1, 3, 2))


type Ends = tuple[Array, Array, Array]  # a point of the difference, and which of the shapes' it is


class Found(NamedTuple):
    """The face nearest to the origin: which points of the shapes span it, and a normal."""

    one: Array  # [3] points of the first shape
    two: Array  # [3] points of the second
    normal: Array  # [3] from the first shape to the second, along which they overlap least


class _Polytope(NamedTuple):
    w: Array  # [N, 3] points of the difference, m
    one: Array  # [N] points of the first shape that they come from
    two: Array  # [N] and of the second
    faces: Array  # [F, 3] points, in order about the outward normal
    normal: Array  # [F, 3] outward, of length one
    offset: Array  # [F] of the face along its normal, m
    alive: Array  # [F]


def nearest_face(one: Hull, two: Hull) -> Found:
    """The face of the difference of two shapes nearest to the origin, without derivatives.

    Balls are left out: they move no normal.
    """
    one, two = jax.lax.stop_gradient((one, two))

    def support(n: Array) -> Ends:
        i, j = farthest(one, n), farthest(two, -n)
        a = turned(one.rot, one.points[i]) + bulge(one, n)
        b = turned(two.rot, two.points[j]) + bulge(two, -n) + (two.pos - one.pos)
        return a - b, i, j

    start = _start(support, two.pos - one.pos)
    scale = jnp.max(jnp.abs(start.w[:4]))
    # no face so small is made that its normal is rounding: what it seemed to see tore the polytope
    slack = max(32 * float(jnp.finfo(scale.dtype).eps), 3e-13) * scale
    grown = jax.lax.fori_loop(4, _POINTS, lambda k, p: _grown(support, slack, p, k), start)
    # where round shapes overlap in two ways the polytope may be nearer to the origin in the worse
    score, ways = _scored(grown)
    _, nearest = jax.lax.top_k(-score, CANDIDATES)
    overlap = lambda n: along(support(n)[0], n)
    # a face that is not there, or without area, has no way
    deep = jnp.where(jnp.isfinite(score[nearest]), jax.vmap(overlap)(ways[nearest]), jnp.inf)
    face = nearest[jnp.argmin(deep)]
    ends = grown.faces[face]
    return Found(one=grown.one[ends], two=grown.two[ends], normal=ways[face])


def _unit(v: Array, otherwise: Array) -> Array:
    square = along(v, v)
    long = square > jnp.finfo(v.dtype).tiny * 1e8
    return jnp.where(long, v / jnp.sqrt(jnp.where(long, square, 1)), otherwise)


def _start(support: Callable[[Array], Ends], towards: Array) -> _Polytope:
    """A tetrahedron within the difference, of points far from one another."""
    both_ways = lambda n: jax.vmap(support)(jnp.stack([n, -n]))
    first = _unit(towards, jnp.asarray([1.0, 0, 0], towards.dtype))
    w0, w1 = (jax.tree.map(lambda a, k=k: a[k], both_ways(first)) for k in (0, 1))
    line = _unit(w1[0] - w0[0], first)
    # towards the origin, and away from it: whichever is farther from the line
    to_origin = _unit(-w0[0] + along(w0[0], line) * line, tangents(line)[0])
    ways = both_ways(to_origin)
    out = ways[0] - w0[0][None]
    out = out - along(out, line[None])[:, None] * line[None]
    w2 = jax.tree.map(lambda a: a[jnp.argmax(along(out, out))], ways)
    normal = _unit(jnp.cross(line, w2[0] - w0[0]), tangents(line)[0])
    ways = both_ways(normal)
    w3 = jax.tree.map(
        lambda a: a[jnp.argmax(jnp.abs(along(ways[0] - w0[0][None], normal[None])))], ways
    )
    pad = lambda *rows: jnp.concatenate(
        [jnp.stack(rows), jnp.zeros((_POINTS - 4, *rows[0].shape), rows[0].dtype)]
    )
    w, one, two = (pad(*rows) for rows in zip(w0, w1, w2, w3))
    faces = jnp.asarray(_START, jnp.int32)
    outward = along(w[3] - w[0], jnp.cross(w[1] - w[0], w[2] - w[0])) <= 0
    faces = jnp.where(outward, faces, faces[:, ::-1])
    faces = jnp.concatenate([faces, jnp.zeros((_FACES - 4, 3), jnp.int32)])
    alive = jnp.arange(_FACES) < 4
    return _Polytope(w, one, two, faces, *_planes(w, faces), alive)


def _planes(w: Array, faces: Array) -> tuple[Array, Array]:
    """Outward normals and offsets of faces; a face without area is seen from nowhere."""
    a, b, c = (w[faces[:, k]] for k in range(3))
    area = jnp.cross(b - a, c - a)
    square = along(area, area)
    there = square > jnp.finfo(w.dtype).tiny
    normal = area * jnp.where(there, 1 / jnp.sqrt(jnp.where(there, square, 1)), 0)[:, None]
    return normal, jnp.where(there, along(normal, a), jnp.inf)


def _scored(p: _Polytope) -> tuple[Array, Array]:
    """How near faces are to the origin [F], and in which directions the polytope is to grow."""
    behind = p.alive & (p.offset < 0)
    outside = jnp.any(behind)
    points = _nearest(p)
    apart = along(points, points)
    score = jnp.where(outside, apart, p.offset)
    score = jnp.where(jnp.where(outside, behind, p.alive), score, jnp.inf)
    # a point that touches the surface has no direction of its own
    clear = outside & (apart > (1e3 * jnp.finfo(apart.dtype).eps) ** 2 * jnp.max(p.w**2))
    way = -points / jnp.sqrt(jnp.where(clear, apart, 1))[:, None]
    return score, jnp.where(clear[:, None], way, p.normal)


def _nearest(p: _Polytope) -> Array:
    """The point of each face nearest to the origin, [F, 3]."""
    ends = p.w[p.faces]  # [F, 3, 3]
    finite = jnp.isfinite(p.offset)
    on_plane = p.normal * jnp.where(finite, p.offset, 0)[:, None]
    sides = jnp.roll(ends, -1, 1) - ends
    length = along(sides, sides)
    share = jnp.clip(-along(ends, sides) / jnp.where(length > 0, length, 1), 0, 1)
    on_side = ends + share[..., None] * sides  # [F, 3, 3]
    best = jnp.argmin(along(on_side, on_side), 1)
    edge = jnp.take_along_axis(on_side, best[:, None, None], 1)[:, 0]
    inward = jnp.cross(p.normal[:, None], sides)
    within = jnp.all(along(inward, on_plane[:, None] - ends) >= 0, 1) & finite
    return jnp.where(within[:, None], on_plane, edge)


def _grown(support: Callable[[Array], Ends], slack: Array, p: _Polytope, k: Array) -> _Polytope:
    """The polytope with one more point, in the direction in which the origin is nearest."""
    score, ways = _scored(p)
    face = jnp.argmin(score)
    way = ways[face]
    w, one, two = support(way)
    gains = along(w, way) > jnp.max(along(p.w[p.faces[face]], way[None])) + slack
    seen = p.alive & (along(p.normal, w[None]) - p.offset > slack / 8) & gains
    # edges between a face that is seen and one that is not: the horizon
    start, end = p.faces, jnp.roll(p.faces, -1, 1)
    code = jnp.where(seen[:, None], start * _POINTS + end, _POINTS**2)
    there = jnp.zeros(_POINTS**2, bool).at[code.ravel()].set(True, mode="drop")
    edge = (seen[:, None] & ~there[end * _POINTS + start]).ravel()
    rank = jnp.cumsum(edge) - 1
    order = jnp.zeros(3 * _FACES, jnp.int32)
    order = order.at[jnp.where(edge, rank, 3 * _FACES)].set(
        jnp.arange(3 * _FACES, dtype=jnp.int32), mode="drop"
    )
    # a face from each of them to the new point, in the places of those that are gone
    free = ~p.alive | seen
    place = jnp.cumsum(free) - 1
    taken = free & (place < jnp.sum(edge))
    source = order[jnp.where(taken, place, 0)]
    fresh = jnp.stack([start.ravel()[source], end.ravel()[source], jnp.full_like(source, k)], 1)
    faces = jnp.where(taken[:, None], fresh, p.faces)
    grown = p.w.at[k].set(w)
    normal, offset = _planes(grown, faces)
    keep = lambda new, old: jnp.where(taken.reshape(-1, *(1,) * (old.ndim - 1)), new, old)
    return _Polytope(
        w=grown,
        one=p.one.at[k].set(one),
        two=p.two.at[k].set(two),
        faces=faces,
        normal=keep(normal, p.normal),
        offset=keep(offset, p.offset),
        alive=(p.alive & ~seen) | taken,
    )
