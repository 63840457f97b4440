"""A sphere or a capsule against a box."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry.vectors import Vec, dot

from .planes import CORNERS, as_vectors, stack_points
from .shape import (
    FAR,
    Collision,
    VecShape,
    barrier,
    collision,
    direction,
    kernel,
    min_length,
    minus,
    plus,
    ratio,
    select,
    times,
)

SLACK = 1e-15  # MuJoCo's tolerance for determinants, m^4, and for squared distances, m^2
# the twelve edges of a box: the axis of each edge, and the index of its lower corner
EDGES = [(j, i) for j in range(3) for i in range(8) if not i >> j & 1]
EDGE_AXIS = np.array([[j == k for k in range(3)] for j, _ in EDGES])  # [12, 3]
LOWER_END = np.array([CORNERS[i] for _, i in EDGES])  # [12, 3]


class _ClosestPoint(NamedTuple):
    """The point of a capsule's axis closest to a box, and the feature of the box that it faces."""

    axis: Array  # [] position on the axis, -1..1
    edge: Array  # [] position on the edge, -1..1
    at_end: Array  # [] whether it is an end of the axis, above a face or inside
    at_corner: Array  # [] whether it faces a corner of the box
    own: Vec  # mask of the edge's axis
    upper: Vec  # mask of the axes on whose upper side the corner or edge is
    face: Vec  # mask of the face's axis


@kernel
def sphere_box(sphere: VecShape, box: VecShape) -> Collision:
    """Return the contact of a sphere and a box, one row."""
    return _spheres_box(stack_points(sphere.pos), sphere.size[0], box)


def _spheres_box(centres: Vec, radius: Array, box: VecShape) -> Collision:
    """Return the contacts of a box and spheres about world points, components [k]."""
    centre = box.from_world(minus(centres, box.pos))
    size = box.size
    nearest = tuple(jnp.where(s > 0, jnp.clip(c, -s, s), c) for c, s in zip(centre, size))
    inward, apart = direction(minus(nearest, centre), (0.0, 0.0, 0.0))
    inside = apart <= 0
    # Inside, use the closest face, and in a tie the first of -x, +x, -y, ...
    sides = [jnp.where(c > 0, -1.0, 1.0).astype(c.dtype) for c in centre]
    depths = [s - jnp.abs(c) for c, s in zip(centre, size)]
    x = (depths[0] <= depths[1]) & (depths[0] <= depths[2])
    y = ~x & (depths[1] <= depths[2])
    out = tuple(jnp.where(k, side, 0) for k, side in zip((x, y, ~x & ~y), sides))
    normal = select(inside, out, inward)
    depth = jnp.minimum(jnp.minimum(depths[0], depths[1]), depths[2])
    dist = jnp.where(inside, -depth, apart) - radius
    pos = plus(centre, normal, dist / 2 + radius)
    return collision(dist, box.point_to_world(pos), box.turn(normal))


@kernel
def capsule_box(capsule: VecShape, box: VecShape) -> Collision:
    """Return the contacts of a capsule and a box, two rows.

    They are those of two spheres: at the point of the capsule's axis closest to the box, and at the
    far end of the part of the axis next to the box.
    """
    pos = box.from_world(minus(capsule.pos, box.pos))
    half = times(box.from_world(capsule.z_axis), capsule.size[1])
    pos, half = barrier((pos, half))
    near = _find_closest_point(pos, half, box.size)
    step, found = barrier(_second_contact_step(pos, half, box.size, near))
    places = jnp.stack([near.axis, near.axis + step]) * capsule.size[1]
    result = _spheres_box(plus(capsule.pos, capsule.z_axis, places), capsule.size[0], box)
    spare = jnp.stack([jnp.asarray(False), ~found])
    return Collision(jnp.where(spare, FAR, result.dist), result.pos, result.frame)


def _find_closest_point(pos: Vec, half: Vec, size: Vec) -> _ClosestPoint:
    """Return the point of an axis pos + x half, |x| <= 1, that is closest to the box.

    Ends above one face, or inside, come first; then the twelve edges, a later one only if it is
    closer by more than the slack.
    """
    low, high = _end_distance(minus(pos, half), size), _end_distance(plus(pos, half), size)
    end_square = jnp.minimum(low[0], high[0])
    x, y, side, square = barrier(_closest_on_edges(pos, half, size))
    least = jnp.min(square)
    slack = SLACK + min_length(square) * least
    # Take an end, or the first of the closest edges.
    at_end, lower, edge = barrier(
        (end_square <= least + slack, low[0] <= high[0], jnp.argmax(square <= least + slack))
    )
    mask = jnp.arange(12) == edge
    pick = lambda values: jnp.sum(jnp.where(mask, values, 0))
    own = tuple(jnp.any(mask & column) for column in jnp.asarray(EDGE_AXIS.T))
    side = pick(side)
    upper = tuple(jnp.any(mask & column) for column in jnp.asarray(LOWER_END.T > 0))
    near = _ClosestPoint(
        axis=jnp.where(at_end, jnp.where(lower, -1, 1).astype(x.dtype), pick(x)),
        edge=pick(y),
        at_end=at_end,
        at_corner=side != 0,
        own=own,
        upper=select(side > 0, tuple(a | b for a, b in zip(own, upper)), upper),
        face=select(lower, low[1], high[1]),
    )
    return barrier(near)


def _end_distance(point: Vec, size: Vec) -> tuple[Array, Vec]:
    """Return a point's squared distance to a face, inf if it is above several, and these faces."""
    beyond = tuple(jnp.abs(p) > s for p, s in zip(point, size))
    gap = tuple(jnp.where(b, jnp.abs(p) - s, 0) for b, p, s in zip(beyond, point, size))
    two = (beyond[0] & beyond[1]) | (beyond[1] & beyond[2]) | (beyond[2] & beyond[0])
    return jnp.where(two, jnp.inf, dot(gap, gap)), beyond


def _closest_on_edges(pos: Vec, half: Vec, size: Vec) -> tuple[Array, Array, Array, Array]:
    """Return the closest points of the axis and of each edge, [12]: positions on both, -1..1.

    They are followed by the end of the edge (-1, 1, or 0 between them) and the squared distance. An
    edge parallel to the axis is excluded by an infinite distance.
    """
    own, lower = as_vectors(EDGE_AXIS, pos[0]), as_vectors(LOWER_END * ~EDGE_AXIS, pos[0])
    length, lean = dot(own, size), dot(own, half)
    apart = tuple(low * s - p for low, s, p in zip(lower, size, pos))
    aa, bb, ab = length * length, dot(half, half), length * lean
    u, v = -length * dot(own, apart), dot(half, apart)
    # bb - lean^2 without cancellation
    across = tuple((1 - o) * h for o, h in zip(own, half))
    det = aa * dot(across, across)
    regular = det >= SLACK + min_length(det) * aa * bb
    free = ratio(bb * u + ab * v, jnp.where(regular, det, 0))
    y = jnp.clip(free, -1, 1)
    x = ratio(v + ab * y, bb)
    again = ratio(u + ab * jnp.clip(x, -1, 1), aa)
    # An end of the edge from the first clipping remains unless the second one selects an end.
    end_sign = lambda t: jnp.where(t > 1, 1, jnp.where(t < -1, -1, 0))
    side = jnp.where((jnp.abs(x) > 1) & (end_sign(again) != 0), end_sign(again), end_sign(free))
    y = jnp.where(jnp.abs(x) > 1, jnp.clip(again, -1, 1), y)
    x = jnp.clip(x, -1, 1)
    gap = tuple(g + o * (length * y) - h * x for g, o, h in zip(apart, own, half))
    return x, y, side, jnp.where(regular, dot(gap, gap), jnp.inf)


def _second_contact_step(
    pos: Vec, half: Vec, size: Vec, near: _ClosestPoint
) -> tuple[Array, Array]:
    """Return the offset along the axis of the second contact, and whether there is one."""
    # Components at rounding level have no direction.
    agree = tuple((h > min_length(h)) == upper for h, upper in zip(half, near.upper))
    # The span is the length along the axis that crosses the box, per axis of the box.
    span = tuple(_crossing_time(2 * s, jnp.abs(h), 1e3) for s, h in zip(size, half))
    corner = _corner_step(near.axis, agree, half, span)
    edge = _edge_step(half, agree, span, near)
    face = _face_step(pos, half, size, near)
    choose = lambda a, b, c: jnp.where(near.at_end, a, jnp.where(near.at_corner, b, c))
    return choose(face[0], corner[0], edge[0]), choose(face[1], corner[1], edge[1])


def _crossing_time(distance: Array, speed: Array, never: float) -> Array:
    """Return the time in which a distance is covered, at most `never`."""
    soon = (speed > 0) & (speed * never > distance)
    return jnp.where(soon, distance / jnp.where(soon, speed, 1), never)


def _masked_min(values: Vec, mask: Vec, most: Array) -> Array:
    """Return the minimum of `most` and the values that are in the mask."""
    for value, chosen in zip(values, mask):
        most = jnp.where(chosen, jnp.minimum(most, value), most)
    return most


def _corner_step(x: Array, agree: Vec, half: Vec, span: Vec) -> tuple[Array, Array]:
    """Return the step along the edge or face less inclined to the axis; none if it points away."""
    same = _count_true(agree)
    odd = tuple(a != (same == 2) for a in agree)  # axis that differs from the other two
    others = tuple(~a for a in odd)
    sign = jnp.where(same == 2, 1.0, -1.0).astype(x.dtype)
    reach = dot(mask_vector(odd, half), half)
    edgewise = _masked_min(span, odd, 1 - sign * x)
    facewise = _masked_min(span, others, 1 + sign * x)
    step = jnp.where(reach > 0.5 * dot(half, half), sign * edgewise, -sign * facewise)
    return step, (same == 1) | (same == 2)


def mask_vector(mask: Vec, v: Vec) -> Vec:
    """Return a vector with the components outside a mask set to zero."""
    return tuple(jnp.where(m, x, 0) for m, x in zip(mask, v))


def _edge_step(half: Vec, agree: Vec, span: Vec, near: _ClosestPoint) -> tuple[Array, Array]:
    """Return the step across the face less inclined to the axis; invalid if it crosses like a T."""
    x, own = near.axis, near.own
    reach = [jnp.where(o, -1, jnp.abs(h)) for o, h in zip(own, half)]
    most = jnp.maximum(jnp.maximum(reach[0], reach[1]), reach[2])
    across = tuple(r >= most for r in reach)
    forward = _any(tuple(a & ~b for a, b in zip(across, agree)))
    sign = jnp.where(forward, 1.0, -1.0).astype(x.dtype)
    upward = _any(tuple(o & (h > min_length(h)) for o, h in zip(own, half)))
    left = jnp.where(upward == forward, 1 - near.edge, 1 + near.edge) / 2
    step = _masked_min(span, across, 1 - sign * x)
    step = _masked_min(tuple(left * s for s in span), own, step)
    differ = tuple(~a & ~o for a, o in zip(agree, own))
    return sign * step, _count_true(differ) == 1


def _count_true(mask: Vec) -> Array:
    one, two, three = (m.astype(jnp.int32) for m in mask)
    return one + two + three


def _any(mask: Vec) -> Array:
    return mask[0] | mask[1] | mask[2]


def _face_step(pos: Vec, half: Vec, size: Vec, near: _ClosestPoint) -> tuple[Array, Array]:
    """Return how far along the axis a capsule stays above the box's face, and a mask of faces."""
    sign = -near.axis
    speed = times(half, sign)
    start = minus(pos, speed)
    # The room is the distance to the side that each component moves to.
    room = tuple(jnp.where(v > 0, s - p, s + p) for v, s, p in zip(speed, size, start))
    leaves = tuple(_crossing_time(r, jnp.abs(v), 2.0) for r, v in zip(room, speed))
    beside = tuple(~f & (r > 0) for f, r in zip(near.face, room))
    return sign * _masked_min(leaves, beside, jnp.full_like(sign, 2)), _any(near.face)
