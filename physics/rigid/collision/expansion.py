"""The face of the difference of two convex shapes that is closest to the origin.

The shapes overlap if the set of all a - b, with a in one and b in the other, contains the origin;
the closest point of that set's surface gives depth and normal. A polytope inside the set grows by
the set's farthest point along the direction in which the origin is closest to it, a fixed number of
times, whether the origin is inside (van den Bergen's expanding polytope) or outside (the distance
of Gilbert, Johnson and Keerthi, doi:10.1109/56.2083).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from .hull import Hull, bulge, dot_rows, support_index, tangents, to_world

ITERATIONS = 24  # points that are added to the first four
CANDIDATES = 8  # faces whose overlap is evaluated at the end
_POINTS = 4 + ITERATIONS
_FACES = 2 * _POINTS - 4  # by Euler's formula
_START = ((0, 1, 2), (0, 3, 1), (0, 2, 3), (1, 3, 2))


type SupportPoint = tuple[
    Array, Array, Array
]  # a point of the difference, and its point in each shape


class NearestFace(NamedTuple):
    """The face closest to the origin: the points of the shapes that span it, and a normal."""

    one: Array  # [3] indices of points of the first shape
    two: Array  # [3] indices of points of the second
    normal: Array  # [3] from the first shape to the second, of least overlap


class _Polytope(NamedTuple):
    w: Array  # [N, 3] points of the difference, m
    one: Array  # [N] indices of their points in the first shape
    two: Array  # [N] and in the second
    faces: Array  # [F, 3] indices of points, in order about the outward normal
    normal: Array  # [F, 3] outward, of length one
    offset: Array  # [F] of the face along its normal, m
    alive: Array  # [F]


def nearest_face(one: Hull, two: Hull) -> NearestFace:
    """Return the difference's face that is closest to the origin, without derivatives.

    Balls are ignored, because they do not change the normal.
    """
    one, two = jax.lax.stop_gradient((one, two))

    def support(n: Array) -> SupportPoint:
        i, j = support_index(one, n), support_index(two, -n)
        a = to_world(one.rot, one.points[i]) + bulge(one, n)
        b = to_world(two.rot, two.points[j]) + bulge(two, -n) + (two.pos - one.pos)
        return a - b, i, j

    start = _initial_tetrahedron(support, two.pos - one.pos)
    scale = jnp.max(jnp.abs(start.w[:4]))
    # Faces too small for an accurate normal are never made; they would break the polytope.
    slack = max(32 * float(jnp.finfo(scale.dtype).eps), 3e-13) * scale
    grown = jax.lax.fori_loop(4, _POINTS, lambda k, p: _grow(support, slack, p, k), start)
    # If round shapes overlap in two ways, the polytope may be closer to the origin in the worse.
    score, ways = _score_faces(grown)
    _, nearest = jax.lax.top_k(-score, CANDIDATES)
    overlap = lambda n: dot_rows(support(n)[0], n)
    # A face that does not exist, or has no area, has no direction.
    deep = jnp.where(jnp.isfinite(score[nearest]), jax.vmap(overlap)(ways[nearest]), jnp.inf)
    face = nearest[jnp.argmin(deep)]
    ends = grown.faces[face]
    return NearestFace(one=grown.one[ends], two=grown.two[ends], normal=ways[face])


def _unit(v: Array, otherwise: Array) -> Array:
    square = dot_rows(v, v)
    long = square > jnp.finfo(v.dtype).tiny * 1e8
    return jnp.where(long, v / jnp.sqrt(jnp.where(long, square, 1)), otherwise)


def _initial_tetrahedron(support: Callable[[Array], SupportPoint], towards: Array) -> _Polytope:
    """Return a tetrahedron inside the difference, with corners far from one another."""
    both_ways = lambda n: jax.vmap(support)(jnp.stack([n, -n]))
    first = _unit(towards, jnp.asarray([1.0, 0, 0], towards.dtype))
    w0, w1 = (jax.tree.map(lambda a, k=k: a[k], both_ways(first)) for k in (0, 1))
    line = _unit(w1[0] - w0[0], first)
    # Search towards the origin and away from it; take the point farther from the line.
    to_origin = _unit(-w0[0] + dot_rows(w0[0], line) * line, tangents(line)[0])
    ways = both_ways(to_origin)
    out = ways[0] - w0[0][None]
    out = out - dot_rows(out, line[None])[:, None] * line[None]
    w2 = jax.tree.map(lambda a: a[jnp.argmax(dot_rows(out, out))], ways)
    normal = _unit(jnp.cross(line, w2[0] - w0[0]), tangents(line)[0])
    ways = both_ways(normal)
    w3 = jax.tree.map(
        lambda a: a[jnp.argmax(jnp.abs(dot_rows(ways[0] - w0[0][None], normal[None])))], ways
    )
    pad = lambda *rows: jnp.concatenate(
        [jnp.stack(rows), jnp.zeros((_POINTS - 4, *rows[0].shape), rows[0].dtype)]
    )
    w, one, two = (pad(*rows) for rows in zip(w0, w1, w2, w3))
    faces = jnp.asarray(_START, jnp.int32)
    outward = dot_rows(w[3] - w[0], jnp.cross(w[1] - w[0], w[2] - w[0])) <= 0
    faces = jnp.where(outward, faces, faces[:, ::-1])
    faces = jnp.concatenate([faces, jnp.zeros((_FACES - 4, 3), jnp.int32)])
    alive = jnp.arange(_FACES) < 4
    return _Polytope(w, one, two, faces, *_face_planes(w, faces), alive)


def _face_planes(w: Array, faces: Array) -> tuple[Array, Array]:
    """Return outward normals and offsets of faces; inf without area, visible from nowhere."""
    a, b, c = (w[faces[:, k]] for k in range(3))
    area = jnp.cross(b - a, c - a)
    square = dot_rows(area, area)
    there = square > jnp.finfo(w.dtype).tiny
    normal = area * jnp.where(there, 1 / jnp.sqrt(jnp.where(there, square, 1)), 0)[:, None]
    return normal, jnp.where(there, dot_rows(normal, a), jnp.inf)


def _score_faces(p: _Polytope) -> tuple[Array, Array]:
    """Return how close faces are to the origin [F], and the directions in which to grow."""
    behind = p.alive & (p.offset < 0)
    outside = jnp.any(behind)
    points = _closest_points(p)
    apart = dot_rows(points, points)
    score = jnp.where(outside, apart, p.offset)
    score = jnp.where(jnp.where(outside, behind, p.alive), score, jnp.inf)
    # If the origin is on the surface, the face's normal is the direction.
    clear = outside & (apart > (1e3 * jnp.finfo(apart.dtype).eps) ** 2 * jnp.max(p.w**2))
    way = -points / jnp.sqrt(jnp.where(clear, apart, 1))[:, None]
    return score, jnp.where(clear[:, None], way, p.normal)


def _closest_points(p: _Polytope) -> Array:
    """Return the point of each face that is closest to the origin, [F, 3]."""
    ends = p.w[p.faces]  # [F, 3, 3]
    finite = jnp.isfinite(p.offset)
    on_plane = p.normal * jnp.where(finite, p.offset, 0)[:, None]
    sides = jnp.roll(ends, -1, 1) - ends
    length = dot_rows(sides, sides)
    share = jnp.clip(-dot_rows(ends, sides) / jnp.where(length > 0, length, 1), 0, 1)
    on_side = ends + share[..., None] * sides  # [F, 3, 3]
    best = jnp.argmin(dot_rows(on_side, on_side), 1)
    edge = jnp.take_along_axis(on_side, best[:, None, None], 1)[:, 0]
    inward = jnp.cross(p.normal[:, None], sides)
    within = jnp.all(dot_rows(inward, on_plane[:, None] - ends) >= 0, 1) & finite
    return jnp.where(within[:, None], on_plane, edge)


def _grow(
    support: Callable[[Array], SupportPoint], slack: Array, p: _Polytope, k: Array
) -> _Polytope:
    """Return the polytope with one more point, in the direction where the origin is closest."""
    score, ways = _score_faces(p)
    face = jnp.argmin(score)
    way = ways[face]
    w, one, two = support(way)
    gains = dot_rows(w, way) > jnp.max(dot_rows(p.w[p.faces[face]], way[None])) + slack
    seen = p.alive & (dot_rows(p.normal, w[None]) - p.offset > slack / 8) & gains
    # The horizon is the set of edges between a visible face and an invisible one.
    start, end = p.faces, jnp.roll(p.faces, -1, 1)
    code = jnp.where(seen[:, None], start * _POINTS + end, _POINTS**2)
    there = jnp.zeros(_POINTS**2, bool).at[code.ravel()].set(True, mode="drop")
    edge = (seen[:, None] & ~there[end * _POINTS + start]).ravel()
    rank = jnp.cumsum(edge) - 1
    order = jnp.zeros(3 * _FACES, jnp.int32)
    order = order.at[jnp.where(edge, rank, 3 * _FACES)].set(
        jnp.arange(3 * _FACES, dtype=jnp.int32), mode="drop"
    )
    # New faces from these edges to the new point take the slots of the removed faces.
    free = ~p.alive | seen
    place = jnp.cumsum(free) - 1
    taken = free & (place < jnp.sum(edge))
    source = order[jnp.where(taken, place, 0)]
    fresh = jnp.stack([start.ravel()[source], end.ravel()[source], jnp.full_like(source, k)], 1)
    faces = jnp.where(taken[:, None], fresh, p.faces)
    grown = p.w.at[k].set(w)
    normal, offset = _face_planes(grown, faces)
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
