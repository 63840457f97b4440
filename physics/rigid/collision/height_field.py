"""Contacts of a height field and a convex shape: a prism under each triangle of its grid.

The surface interpolates the heights over a grid, two triangles per cell, and the prisms under them
reach down to one base, as in MuJoCo. Each prism that a shape reaches is one contact, or up to four
with a box or a mesh, whose flat faces may lie on it. The cells that a shape can overlap are a
window of fixed size about its centre.

The separation of two convex shapes is the largest over all directions, and negative if they
overlap. For a prism and a sphere's centre or a capsule's axis, the best direction is normal to a
face, from an edge to an end, from a corner to the axis, or normal to an edge and the axis. All of
them are tried, and each one gives a lower bound.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.geometry.vectors import Vec, cross, dot
from jaxgpu.inputs.fields import number, pytree

from .convex import deepest_contact, hull_hull
from .flat_faces import FACE_CONTACTS
from .hull import Hull, bulge, dot_rows, from_world, rbound, support_index, to_world
from .shape import Collision, Shape, Z, collision, direction, min_length, minus, plus, ratio, times

ROUND_TYPES = ("sphere", "capsule")  # types with closed formulas
FLAT_TYPES = ("box", "mesh")  # types with flat faces
COLLIDING_TYPES = (*ROUND_TYPES, "ellipsoid", "cylinder", *FLAT_TYPES)


@pytree
class HeightField:
    """A surface over a grid, whose first corner has the least x and y."""

    z: Array = number(unit="m")  # [R, C] heights, rows along y, columns along x
    half: Array = number(above=0, unit="m")  # [2] half lengths along x and y
    base: Array = number(least=0, unit="m")  # [] depth of the prisms below zero


class Prisms(NamedTuple):
    """N prisms in the axes of the field."""

    top: Vec  # three corners, counter-clockwise, components [3, N]
    bottom: Vec  # below them, components [3, N]

    @property
    def corners(self) -> Vec:
        """All six corners, components [6, N]."""
        return _concatenate(self.top, self.bottom)


class Separation(NamedTuple):
    """Directions that may separate prisms from a rod (the axis of a capsule), [K, N]."""

    normal: Vec  # components
    at: Array  # position of the closest point on the rod, -1..1
    apart: Array  # separation, m, negative where they overlap
    score: Array  # the same, m, but reduced for directions that lose a tie


def collide_heights(
    kind: str,
    one: Shape,
    two: Shape,
    field: HeightField,
    other: Hull | None,
    limits: tuple[int, ...],
) -> tuple[Collision, Array]:
    """Return the contacts of a height field and a shape, and the dropped prisms and cells.

    Args:
        kind: type of the second shape.
        one: pose of the field.
        two: pose and size of the shape.
        field: the heights.
        other: the hull of the second shape, if it is neither a sphere nor a capsule.
        limits: cells of the window along y and x, and the maximum number of contacts of the pair.
    """
    window, most = (limits[0], limits[1]), limits[2]
    centre = from_world(one.rot, two.pos - one.pos)
    prisms = _window_prisms(field, centre, window)
    wide = _bounding_radius(kind, two, other)
    beyond = _count_missed_cells(field, wide, window)
    if other is None:
        found, more = _rod_contacts(kind, one, two, prisms, most)
    else:
        found, more = _hull_contacts(one, prisms, other, most, kind in FLAT_TYPES)
    return found, beyond + more


def num_contacts(kind: str, window: tuple[int, int], most: int) -> int:
    """Return the number of contacts that a height field and a shape of a type may have."""
    return min((FACE_CONTACTS if kind in FLAT_TYPES else 1) * 2 * window[0] * window[1], most)


def _window_prisms(field: HeightField, centre: Array, window: tuple[int, int]) -> Prisms:
    """Return the prisms of a window of cells about a point, two per cell."""
    shape = field.z.shape
    starts, places = [], []
    for axis in (0, 1):  # rows are along y
        cells, half = shape[axis] - 1, field.half[1 - axis]
        step = 2 * half / cells
        middle = (lax.stop_gradient(centre)[1 - axis] + half) / step
        start = jnp.clip(jnp.round(middle - window[axis] / 2), 0, cells - window[axis])
        starts.append(start.astype(jnp.int32))
        places.append(step * (start + np.arange(window[axis] + 1, dtype=step.dtype)) - half)
    z = lax.dynamic_slice(field.z, starts, [n + 1 for n in window])
    y, x = jnp.broadcast_arrays(places[0][:, None], places[1][None])
    grid = (x, y, z)
    here, right = (slice(0, -1), slice(0, -1)), (slice(0, -1), slice(1, None))
    up, across = (slice(1, None), slice(0, -1)), (slice(1, None), slice(1, None))
    triangles = ((up, here, across), (here, right, across))
    corner = lambda a, k: jnp.concatenate([a[each[k]].ravel() for each in triangles])
    top = tuple(jnp.stack([corner(a, k) for k in range(3)]) for a in grid)
    floor = jnp.full_like(top[2], 1) * -field.base
    return Prisms(top, (top[0], top[1], floor))


def _bounding_radius(kind: str, two: Shape, other: Hull | None) -> Array:
    """Return the radius of a ball about the shape, m."""
    if other is not None:
        return rbound(other)
    return two.size[0] + (two.size[1] if kind == "capsule" else 0)


def _count_missed_cells(field: HeightField, radius: Array, window: tuple[int, int]) -> Array:
    """Return the number of rows and columns that a shape can overlap outside its window."""
    total = jnp.zeros((), jnp.int32)
    for axis in (0, 1):
        cells = field.z.shape[axis] - 1
        wide = radius * cells / field.half[1 - axis] + 1
        missed = jnp.ceil(wide - window[axis] * (1 + 1e-4)).astype(jnp.int32)
        total = total + jnp.clip(missed, 0, cells - window[axis])
    return lax.stop_gradient(total)


def _rod_contacts(
    kind: str, one: Shape, two: Shape, prisms: Prisms, most: int
) -> tuple[Collision, Array]:
    """Return the contacts of a sphere or a capsule, and the number of dropped ones."""
    axes = tuple(tuple(one.rot[i, j] for i in range(3)) for j in range(3))
    to_field = lambda v: tuple(dot(tuple(v[i] for i in range(3)), axis) for axis in axes)
    middle, radius = to_field(two.pos - one.pos), two.size[0]
    rod = times(to_field(two.rot[:, 2]), two.size[1]) if kind == "capsule" else None
    best = _best_separation(prisms, middle, rod)
    dist = best.apart - radius
    place = middle if rod is None else plus(middle, rod, best.at)
    pos = plus(place, best.normal, -(best.apart + radius) / 2)
    dist, pos, normal, more = _deepest_contacts(dist, pos, best.normal, most)
    from_field = lambda v: tuple(dot(v, row) for row in zip(*axes))
    pos = plus(tuple(one.pos[i] for i in range(3)), from_field(pos))
    return collision(dist, pos, from_field(normal)), more


def _deepest_contacts(
    dist: Array, pos: Vec, normal: Vec, most: int
) -> tuple[Array, Vec, Vec, Array]:
    """Return the deepest contacts, and the number of further overlaps."""
    if len(dist) <= most:
        return dist, pos, normal, jnp.zeros((), jnp.int32)
    _, rows = lax.top_k(-lax.stop_gradient(dist), most)
    more = jnp.maximum(jnp.sum(dist < 0, dtype=jnp.int32) - most, 0)
    pick = lambda v: tuple(a[rows] for a in v)
    return dist[rows], pick(pos), pick(normal), more


def _best_separation(prisms: Prisms, middle: Vec, rod: Vec | None) -> Separation:
    """Return the direction that separates each prism most from a rod, or from its centre alone."""
    slack = min_length(middle[0]) * jnp.max(
        jnp.stack([jnp.max(jnp.abs(c)) for c in prisms.corners])
    )
    slack = lax.stop_gradient(slack)
    ways = [_face_directions(prisms, middle, rod, slack), *_end_directions(prisms, middle, rod)]
    if rod is not None:
        ways += [
            _corner_directions(prisms, middle, rod),
            *_edge_directions(prisms, middle, rod, slack),
        ]
    every = jax.tree.map(lambda *parts: jnp.concatenate(parts), *ways)
    best = jnp.argmax(lax.stop_gradient(every.score), 0)[None]
    return jax.tree.map(lambda a: jnp.take_along_axis(a, best, 0)[0], every)


def _separation_along(
    prisms: Prisms, middle: Vec, rod: Vec | None, normal: Vec, at: Array
) -> Separation:
    """Return the separation of prisms and a rod along directions [K, N]."""
    far = [dot(normal, tuple(c[k][None] for c in prisms.corners)) for k in range(6)]
    while len(far) > 1:
        far = [jnp.maximum(*far[:2]), *far[2:]]
    apart = dot(normal, middle) - far[0]
    if rod is not None:
        apart = apart - jnp.abs(dot(normal, rod))
    return Separation(normal, jnp.broadcast_to(at, apart.shape), apart, apart)


def _face_directions(prisms: Prisms, middle: Vec, rod: Vec | None, slack: Array) -> Separation:
    """Return the directions normal to the five faces, which lose ties to edges and ends."""
    top = prisms.top
    side = minus(tuple(jnp.roll(c, -1, 0) for c in top), top)
    first, last = (tuple(c[k] for c in side) for k in (0, 2))
    upper = direction(cross(last, first), Z)[0]
    still = jnp.zeros_like(side[0])
    out = direction((side[1], -side[0], still), Z)[0]
    down = (still[0], still[0], still[0] - 1)
    normal = tuple(jnp.concatenate([a[None], b, c[None]]) for a, b, c in zip(upper, out, down))
    at = still[0] if rod is None else -jnp.sign(dot(normal, rod))
    way = _separation_along(prisms, middle, rod, normal, at)
    return way._replace(score=way.apart - slack)


def _prism_edges(prisms: Prisms) -> tuple[Vec, Vec]:
    """Return the starts of the nine edges, and their vectors, [9, N]."""
    next_corner = lambda v: tuple(jnp.roll(c, -1, 0) for c in v)
    start = _concatenate(prisms.top, prisms.bottom, prisms.top)
    end = _concatenate(next_corner(prisms.top), next_corner(prisms.bottom), prisms.bottom)
    return start, minus(end, start)


def _end_directions(prisms: Prisms, middle: Vec, rod: Vec | None) -> list[Separation]:
    """Return the directions from the closest points of edges to the ends of the rod."""
    start, side = _prism_edges(prisms)
    square = dot(side, side)
    ways = []
    for end in (0,) if rod is None else (-1, 1):
        point = middle if rod is None else plus(middle, rod, end)
        share = jnp.clip(ratio(dot(side, minus(point, start)), square), 0, 1)
        normal = direction(minus(point, plus(start, side, share)), Z)[0]
        ways.append(_separation_along(prisms, middle, rod, normal, jnp.asarray(end, square.dtype)))
    return ways


def _corner_directions(prisms: Prisms, middle: Vec, rod: Vec) -> Separation:
    """Return the directions from corners to the closest points of the rod."""
    away = minus(middle, prisms.corners)
    at = jnp.clip(ratio(-dot(away, rod), dot(rod, rod)), -1, 1)
    return _separation_along(prisms, middle, rod, direction(plus(away, rod, at), Z)[0], at)


def _edge_directions(prisms: Prisms, middle: Vec, rod: Vec, slack: Array) -> list[Separation]:
    """Return the directions normal to an edge and the rod, where both cross in projection."""
    start, side = _prism_edges(prisms)
    across = cross(side, rod)
    normal, length = direction(across, Z)
    square = length * length
    away = minus(middle, start)
    # closest points of two lines
    at = ratio(dot(cross(away, side), across), square)
    share = ratio(dot(cross(away, rod), across), square)
    crossed = (jnp.abs(at) <= 1) & (share >= 0) & (share <= 1) & (length > 0)
    ways = []
    for sign in (-1, 1):
        way = _separation_along(prisms, middle, rod, times(normal, sign), at)
        # The edge itself must be the farthest part of the prism.
        own = dot(way.normal, away) - jnp.abs(dot(way.normal, rod))
        sound = crossed & (own - way.apart <= slack)
        ways.append(way._replace(score=jnp.where(sound, way.apart, -jnp.inf)))
    return ways


def _hull_contacts(
    one: Shape, prisms: Prisms, other: Hull, most: int, flat: bool
) -> tuple[Collision, Array]:
    """Return the contacts of a convex shape with prisms that no face separates from it.

    A prism has one contact, or several between flat faces. The number of dropped ones is second.
    """
    corners = jnp.stack(prisms.corners, -1)  # [6, N, 3]
    far = lax.stop_gradient(_distance_bound(one, prisms, other))
    more = jnp.zeros((), jnp.int32)
    if corners.shape[1] > most:
        _, rows = lax.top_k(-far, most)
        more = jnp.maximum(jnp.sum(far < 0, dtype=jnp.int32) - most, 0)
        corners = corners[:, rows]

    def collide_prism(points: Array) -> Collision:
        centre = jnp.mean(points, 0)
        zero = jnp.zeros_like(centre)
        prism = Hull(
            points=points - centre[None],
            radii=zero,
            radius=zero[0],
            pos=one.pos + to_world(one.rot, centre),
            rot=one.rot,
        )
        if flat:
            return hull_hull(prism, other)
        dist, pos, normal = deepest_contact(prism, other)
        return collision(dist[None], tuple(pos), tuple(normal))

    found = jax.vmap(collide_prism, 1)(corners)
    found = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), found)
    if len(found.dist) > most:
        _, rows = lax.top_k(-lax.stop_gradient(found.dist), most)
        more = more + jnp.maximum(jnp.sum(found.dist < 0, dtype=jnp.int32) - most, 0)
        found = jax.tree.map(lambda a: a[rows], found)
    return found, more


def _distance_bound(one: Shape, prisms: Prisms, other: Hull) -> Array:
    """Return a lower bound [N] of the distance of prisms to a shape, along face normals."""
    still = jnp.zeros_like(other.pos)
    faces = _face_directions(prisms, tuple(still), None, still[0])
    offset = other.pos - one.pos

    def support_distance(inner: Array) -> Array:
        n = to_world(one.rot, inner)
        far = (
            to_world(other.rot, other.points[support_index(other, -n)]) + bulge(other, -n) + offset
        )
        return dot_rows(n, far) - other.radius

    normals = jnp.stack(faces.normal, -1)  # [5, N, 3]
    low: Callable[[Array], Array] = jax.vmap(jax.vmap(support_distance))
    return jnp.max(low(normals) + faces.apart, 0)


def _concatenate(*parts: Vec) -> Vec:
    return tuple(jnp.concatenate(each) for each in zip(*parts))
