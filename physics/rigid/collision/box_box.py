"""Two boxes: the axis of largest separation, then the clipped face or the crossing edges.

As in MuJoCo since 3.12, 15 axes are compared, a face wins ties over a pair of edges, and a face is
clipped against the one that it lies on. All edges and sides are clipped together; the result is the
rest of each edge of one face (Liang & Barsky 1984, doi:10.1145/357332.357333), and the corners of
the other face inside it.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry.vectors import Vec, dot

from .planes import as_vectors
from .shape import (
    FAR,
    Collision,
    VecLike,
    VecShape,
    barrier,
    collision,
    kernel,
    minus,
    plus,
    ratio,
    select,
    times,
)

PARALLEL = 1e-16  # squared sine below which edges have no common normal, if above rounding
EDGE_BIAS = 1e-6  # fraction by which an edge must beat the faces
ALIAS, ALIAS_SHARE = 0.99, 0.05  # an edge axis close to the best face's must win by more
SAME_POINT = 1e-7  # fraction of a face within which two corners are the same, if above rounding
FACE_CORNERS = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])  # [4, 2] corners of a face, in order
FACE_EDGES = np.roll(FACE_CORNERS, -1, 0) - FACE_CORNERS  # [4, 2] from each corner to the next


class _BestAxis(NamedTuple):
    """The axis that separates two boxes most."""

    face: Array  # [] 0..2 of box 1, 3..5 of box 2
    i: Array  # [] axis of box 1 perpendicular to the edges' normal
    j: Array  # [] axis of box 2 perpendicular to the edges' normal
    by_edge: Array  # [] whether the edges' normal separates more than the face's


def select_scalar(k: Array, values: VecLike) -> Array:
    """Select one of three values by its index."""
    return jnp.where(k == 0, values[0], jnp.where(k == 1, values[1], values[2]))


def select_vector(k: Array, rows: tuple[VecLike, ...]) -> Vec:
    """Select one of three vectors by its index."""
    return tuple(select_scalar(k, column) for column in zip(*rows))


@kernel
def box_box(one: VecShape, two: VecShape) -> Collision:
    """Return the contacts of two boxes, eight rows."""
    best, normal = _find_best_axis(one, two)
    gap, middle = _edge_contact(one, two, best, normal)
    dist, pos, upright = _face_contacts(one, two, best.face)
    first = jnp.arange(8) == 0
    dist = jnp.where(best.by_edge, jnp.where(first, gap, FAR), dist)
    return collision(dist, select(best.by_edge, middle, pos), select(best.by_edge, normal, upright))


def _find_best_axis(one: VecShape, two: VecShape) -> tuple[_BestAxis, Vec]:
    """Return the best axis, and the unit normal of the best pair of edges, from box 1 to box 2."""
    apart = minus(two.pos, one.pos)
    offset, back = one.from_world(apart), two.from_world(apart)
    turn = tuple(one.from_world(axis) for axis in two.axes)  # turn[j][i]
    bare = tuple(tuple(jnp.abs(x) for x in column) for column in turn)
    s, t = one.size, two.size
    faces = [
        *(jnp.abs(offset[i]) - s[i] - sum(bare[j][i] * t[j] for j in range(3)) for i in range(3)),
        *(jnp.abs(back[j]) - t[j] - dot(bare[j], s) for j in range(3)),
    ]
    by_face, face = faces[0], jnp.zeros_like(faces[0], jnp.int32)
    for k in range(1, 6):
        face = jnp.where(faces[k] > by_face, k, face)
        by_face = jnp.maximum(by_face, faces[k])
    parallel = max(PARALLEL, float(jnp.finfo(by_face.dtype).eps))
    most, pair, by_edge = by_face, jnp.zeros_like(face), jnp.zeros_like(face, bool)
    for i in range(3):
        for j in range(3):
            i1, i2, j1, j2 = (i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3
            square = turn[j][i1] ** 2 + turn[j][i2] ** 2
            regular = square >= parallel
            reach = s[i1] * bare[j][i2] + s[i2] * bare[j][i1]
            reach = reach + t[j1] * bare[j2][i] + t[j2] * bare[j1][i]
            gap = jnp.abs(offset[i2] * turn[j][i1] - offset[i1] * turn[j][i2]) - reach
            gap = gap / jnp.sqrt(jnp.where(regular, square, 1))
            better = regular & (gap - EDGE_BIAS * jnp.abs(gap) > most) & (gap > by_face)
            most, pair = jnp.where(better, gap, most), jnp.where(better, 3 * i + j, pair)
            by_edge |= better
    face, pair, by_edge = barrier((face, pair, by_edge))
    i, j = pair // 3, pair % 3
    normal = _cross_direction(i, select_vector(j, turn))
    normal = times(normal, _sign(dot(normal, offset)))
    upright = select_vector(face % 3, turn)
    on_face = jnp.abs(jnp.where(face < 3, select_scalar(face, normal), dot(normal, upright)))
    aliased = (on_face > ALIAS) & (most < by_face + ALIAS_SHARE * jnp.abs(by_face))
    return barrier((_BestAxis(face, i, j, by_edge & ~aliased), one.turn(normal)))


def _cross_direction(i: Array, v: Vec) -> Vec:
    """Return the unit vector along e_i x v, or one perpendicular to e_i if they are parallel."""
    crossed = select_vector(i, ((0.0, -v[2], v[1]), (v[2], 0.0, -v[0]), (-v[1], v[0], 0.0)))
    spare = select_vector(i, ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)))
    square = dot(crossed, crossed)
    regular = square > 0
    scaled = times(crossed, 1 / jnp.sqrt(jnp.where(regular, square, 1)))
    return select(regular, scaled, spare)


def _edge_contact(one: VecShape, two: VecShape, best: _BestAxis, normal: Vec) -> tuple[Array, Vec]:
    """Return the distance of the two edges farthest along the normal, and the point midway.

    No component of the normal across an edge is zero: it would be a face's normal, which wins.
    """
    a, p, reach = _support_edge(one, best.i, normal)
    b, q, span = _support_edge(two, best.j, times(normal, -1.0))
    apart = minus(q, p)
    u, v, ab = dot(a, apart), dot(b, apart), dot(a, b)
    s = jnp.clip(ratio(u - ab * v, 1 - ab * ab), -reach, reach)
    t = jnp.clip(ab * s - v, -span, span)
    s = jnp.clip(u + ab * t, -reach, reach)
    p, q = plus(p, a, s), plus(q, b, t)
    return dot(minus(q, p), normal), times(plus(p, q), 0.5)


def _support_edge(box: VecShape, k: Array, normal: Vec) -> tuple[Vec, Vec, Array]:
    """Return the edge along axis `k` farthest along a normal: direction, centre, half length."""
    inner = box.from_world(normal)
    middle = tuple(jnp.where(k == i, 0, _sign(inner[i]) * box.size[i]) for i in range(3))
    return select_vector(k, box.axes), box.point_to_world(middle), select_scalar(k, box.size)


def _face_contacts(one: VecShape, two: VecShape, face: Array) -> tuple[Array, Vec, Vec]:
    """Return contacts of a face with the part above it of the other box's most opposed face.

    The result has distances and positions, components [8], and the normal.
    """
    of_one = face < 3
    select_vectors = lambda a, b: tuple(select(of_one, x, y) for x, y in zip(a, b))
    base = VecShape(
        select(of_one, one.pos, two.pos),
        select_vectors(one.axes, two.axes),
        select(of_one, one.size, two.size),
    )
    over = VecShape(
        select(of_one, two.pos, one.pos),
        select_vectors(two.axes, one.axes),
        select(of_one, two.size, one.size),
    )
    # The axes of the face have its normal last, towards the other box.
    apart = minus(over.pos, base.pos)
    base, over = _cycle_axes(base, face % 3), _cycle_axes(over, _opposed_axis(base, over, face % 3))
    up = times(base.z_axis, _sign(dot(base.z_axis, apart)))
    base = VecShape(base.pos, (base.axes[0], base.axes[1], up), base.size)
    inner = tuple(base.from_world(axis) for axis in over.axes)
    centre = plus(base.from_world(apart), inner[2], -_sign(inner[2][2]) * over.size[2])
    edges = (times(inner[0], over.size[0]), times(inner[1], over.size[1]))
    centre, edges, base = barrier((centre, edges, base))
    (x, y, z), valid = barrier(_clip_parallelogram(centre, edges, base.size))
    height = z - base.size[2]
    valid &= ~_is_repeated(
        (x, y), valid, _corner_tolerance(x) ** 2 * (base.size[0] ** 2 + base.size[1] ** 2)
    )
    rows = barrier(_pack_rows(valid, 8))
    gather = lambda values: jnp.sum(jnp.where(rows, values[None], 0), 1)
    pos = base.point_to_world((gather(x), gather(y), gather(height / 2) + base.size[2]))
    dist = jnp.where(jnp.any(rows, 1), gather(height), FAR)
    return dist, pos, select(of_one, up, times(up, -1.0))


def _opposed_axis(base: VecShape, over: VecShape, k: Array) -> Array:
    """Return the axis of the other box that is most parallel to the normal of a face."""
    x, y, z = (jnp.abs(dot(axis, select_vector(k, base.axes))) for axis in over.axes)
    return jnp.where(x >= jnp.maximum(y, z), 0, jnp.where(y >= z, 1, 2))


def _cycle_axes(box: VecShape, k: Array) -> VecShape:
    """Return the same box with axis `k` last."""
    a, s = box.axes, box.size
    axes = tuple(select_vector(k, (a[(i + 1) % 3], a[(i + 2) % 3], a[i])) for i in range(3))
    size = tuple(select_scalar(k, (s[(i + 1) % 3], s[(i + 2) % 3], s[i])) for i in range(3))
    return VecShape(box.pos, axes, size)


def _clip_parallelogram(centre: Vec, edges: tuple[Vec, Vec], size: Vec) -> tuple[Vec, Array]:
    """Return corners [12] of a parallelogram above a rectangle, and a mask of valid ones.

    The parallelogram has a centre and two half edges, the rectangle half edges about the origin.
    At most eight corners are valid, not counting repetitions.
    """
    (a, b), (da, db) = as_vectors(FACE_CORNERS, centre[0]), as_vectors(FACE_EDGES, centre[0])
    corner = tuple(c + a * e + b * f for c, e, f in zip(centre, *edges))
    way = tuple(da * e + db * f for e, f in zip(*edges))
    same = _corner_tolerance(a)
    slack = max(1e-3 * SAME_POINT, 10 * float(jnp.finfo(a.dtype).eps)) * (size[0] + size[1])
    # Find the part of each edge, from 0 to 1, within the four sides.
    enter, leave = jnp.zeros_like(corner[0]), jnp.ones_like(corner[0])
    away = jnp.zeros_like(corner[0], bool)
    for x, v, s in zip(corner[:2], way[:2], size):
        for sign in (1, -1):
            start = sign * x - s
            stop = start + sign * v
            hit = ratio(-start, sign * v)
            enter = jnp.where((start > slack) & (stop <= slack), jnp.maximum(enter, hit), enter)
            leave = jnp.where((start <= slack) & (stop > slack), jnp.minimum(leave, hit), leave)
            away |= (start > slack) & (stop > slack)
    left = ~away & (enter <= leave)
    # Find the rectangle's corners inside the parallelogram, lifted to its plane.
    (e, f), x, y = edges, a * size[0], b * size[1]
    u, v = x - centre[0], y - centre[1]
    det = e[0] * f[1] - e[1] * f[0]
    g, h = ratio(u * f[1] - v * f[0], det), ratio(v * e[0] - u * e[1], det)
    within = (jnp.abs(g) <= 1 + same) & (jnp.abs(h) <= 1 + same) & (det != 0)
    lifted = (x, y, centre[2] + g * e[2] + h * f[2])
    ends = plus(corner, way, enter), plus(corner, way, leave)
    points = tuple(jnp.concatenate(rows) for rows in zip(*ends, lifted))
    valid = jnp.concatenate([left, left & (leave < 1), within])
    return points, valid


def _corner_tolerance(like: Array) -> float:
    """Return the fraction of a face within which two corners are the same."""
    return max(SAME_POINT, 10 * float(jnp.finfo(like.dtype).eps))


def _is_repeated(points: tuple[Array, Array], valid: Array, near: Array) -> Array:
    """Return a mask [n] of points in a plane that coincide with a valid one before them."""
    gaps = [x[:, None] - x[None] for x in points]
    before = np.tri(valid.shape[0], k=-1, dtype=bool)
    return jnp.any((gaps[0] ** 2 + gaps[1] ** 2 < near) & valid[None] & before, 1)


def _pack_rows(valid: Array, k: int) -> Array:
    """Return a mask [k, n] of the candidate that fills each of k rows: the valid ones in order."""
    before = jnp.asarray(np.tri(valid.shape[0], k=-1, dtype=bool))
    rank = jnp.sum(before & valid[None], 1, dtype=jnp.int32)
    return valid[None] & (rank[None] == jnp.arange(k, dtype=jnp.int32)[:, None])


def _sign(x: Array) -> Array:
    """Return 1 or -1, with 1 at zero."""
    return jnp.where(x < 0, -1, 1).astype(x.dtype)
