"""Contacts of two flat faces on one another: up to four points of their intersection.

A shape's flat along a normal is the set of points that are lower than its farthest one by less than
1.6e-3 of their distance from it, the angle within which MuJoCo takes faces as aligned. Both flats
are convex polygons in the plane across the normal. The corners of each inside the other and the
crossings of their edges are the corners of the intersection; four of them, far apart, are kept.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .hull import HIGHEST, Hull, bulge, dot_rows, from_world, tangents, to_world
from .shape import FAR

MAX_CORNERS = 8  # outermost points of a flat that are used
FLAT_ANGLE = 1.6e-3  # rad
FACE_CONTACTS = 4
# directions in the plane across a normal, rotated off its axes, which sides of boxes often follow
_ANGLES = 2 * np.pi / MAX_CORNERS * (np.arange(MAX_CORNERS) + 0.3)
DIRECTIONS = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], 1)  # [8, 2]


class FlatFace(NamedTuple):
    """A flat part of a shape's surface, as seen along a normal."""

    at: Array  # [N, 2] corners across the normal, in order, m; a corner may be repeated
    height: Array  # [N] along the normal, m
    slope: Array  # [2] gradient of the height


class FlatContacts(NamedTuple):
    """Contacts of two flats; invalid ones have the distance `FAR`."""

    dist: Array  # [4] m
    pos: Array  # [4, 3] about the centre of the first shape, m


class Selection(NamedTuple):
    """Four points selected from many."""

    rows: Array  # [4] indices
    there: Array  # [4] whether each is valid and no repetition


def lowest_points(points: Array, height: Array, normal: Array) -> Selection:
    """Return the lowest of points [N, 3] above a plane, and up to three others below it or as low.

    They are far from one another, so that a body resting on many vertices is supported by them.
    """
    lowest = jnp.argmin(height)
    out = jnp.sqrt(dot_rows(points - points[lowest][None], points - points[lowest][None]))
    there = (height <= 0) | (height - height[lowest] <= FLAT_ANGLE * out)
    at = jnp.einsum("kj,ij->ki", points, tangents(normal), precision=HIGHEST)
    rows = _select_four(at, there, lowest)
    return Selection(rows, there[rows] & ~_is_duplicate(at[rows], _max_square_distance(at[rows])))


def flat_contacts(one: Hull, two: Hull, n: Array) -> FlatContacts:
    """Return the contacts of the flats of two shapes along a normal from one to two."""
    axes = jnp.concatenate([tangents(n), n[None]])
    a, b = _find_flat(one, n, axes, jnp.zeros_like(n)), _find_flat(two, -n, axes, two.pos - one.pos)
    at, top, bottom, there = _intersection_corners(a, b)
    gap = bottom - top - one.radius - two.radius
    keep = _select_four(*jax.lax.stop_gradient((at, there, _farthest_from_mean(at, there))))
    middle = (top + one.radius + bottom - two.radius) / 2
    pos = jnp.concatenate([at, middle[:, None]], 1)[keep]
    smaller = jnp.minimum(_max_square_distance(a.at), _max_square_distance(b.at))
    chosen = there[keep] & ~_is_duplicate(at[keep], smaller)
    return FlatContacts(
        dist=jnp.where(chosen, gap[keep], FAR),
        pos=jnp.einsum("ki,ij->kj", pos, axes, precision=HIGHEST),
    )


def _find_flat(shape: Hull, n: Array, axes: Array, offset: Array) -> FlatFace:
    """Return the flat of a shape along `n`, in the axes of the contact: its corners in order."""
    inner = from_world(shape.rot, n)
    ways = jnp.einsum("ij,ki->kj", shape.rot, axes[:2], precision=HIGHEST)
    ways = jnp.einsum("kc,cj->kj", jnp.asarray(DIRECTIONS, n.dtype), ways, precision=HIGHEST)
    corners = shape.points[_outermost_indices(*jax.lax.stop_gradient((shape.points, inner, ways)))]
    ends_on = _is_end_on(shape, inner)
    near = to_world(shape.rot, jnp.where(ends_on, _rim_points(shape, inner, ways), corners))
    near = near + (offset + jnp.where(ends_on, 0, bulge(shape, n)))[None]
    seen = jnp.einsum("ij,kj->ki", axes, near, precision=HIGHEST)
    at, height = seen[:, :2], seen[:, 2]
    return FlatFace(at, height, _height_gradient(at, height))


def _outermost_indices(points: Array, inner: Array, ways: Array) -> Array:
    """Return the indices of the flat's points along `inner` that are farthest along each way."""
    height = dot_rows(points, inner[None])
    far = jnp.argmax(height)
    out = jnp.sqrt(dot_rows(points - points[far][None], points - points[far][None]))
    flat = height - height[far] >= -FLAT_ANGLE * out
    reach = jnp.einsum("kj,nj->kn", ways, points, precision=HIGHEST)
    return jnp.argmax(jnp.where(flat[None], reach, -jnp.inf), 1)


def _is_end_on(shape: Hull, inner: Array) -> Array:
    """Return whether a shape is a cylinder that is seen along its axis."""
    disk = (shape.radii[0] > 0) & (shape.radii[2] == 0)
    return disk & (jnp.abs(inner[2]) > 1 - FLAT_ANGLE**2 / 2)


def _rim_points(shape: Hull, inner: Array, ways: Array) -> Array:
    """Return points [8, 3] around the cap of a cylinder, in order."""
    high = jnp.argmax(shape.points[:, 2] * jnp.sign(inner[2]))
    flat = ways.at[:, 2].set(0)
    return shape.points[high][None] + shape.radii[0] * flat


def _height_gradient(at: Array, height: Array) -> Array:
    """Return the gradient of the height over a polygon; zero if it is an edge or a corner."""
    x, y = (at[:, k] - at[0, k] for k in (0, 1))
    z = height - height[0]
    shoelace = lambda u, v: jnp.sum(u * jnp.roll(v, -1) - jnp.roll(u, -1) * v)
    area = shoelace(x, y)
    size = jnp.max(x**2 + y**2)
    wide = area > 1e-6 * size
    divide = lambda v: jnp.where(wide, v / jnp.where(wide, area, 1), 0)
    return jnp.stack([divide(-shoelace(y, z)), divide(shoelace(x, z))])


def _intersection_corners(a: FlatFace, b: FlatFace) -> tuple[Array, Array, Array, Array]:
    """Return corners of the intersection of two flats: positions [M, 2], both heights, validity."""
    rise = lambda flat, at: (
        flat.height[0] + jnp.einsum("kj,j->k", at - flat.at[:1], flat.slope, precision=HIGHEST)
    )
    slack = 1e-5 * jnp.sqrt(_max_square_distance(a.at))
    own = (a.at, a.height, rise(b, a.at), _is_inside_polygon(a.at, b, slack))
    its = (b.at, rise(a, b.at), b.height, _is_inside_polygon(b.at, a, slack))
    p, q = a.at[:, None], b.at[None]
    u, v = jnp.roll(a.at, -1, 0)[:, None] - p, jnp.roll(b.at, -1, 0)[None] - q
    wedge = lambda s, t: s[..., 0] * t[..., 1] - s[..., 1] * t[..., 0]
    det = wedge(u, v)
    cross = jnp.abs(det) > 1e-6 * jnp.sqrt(jnp.sum(u**2, -1) * jnp.sum(v**2, -1) + 1e-30)
    det = jnp.where(cross, det, 1)
    s, t = wedge(q - p, v) / det, wedge(q - p, u) / det
    cross = cross & (s > 0) & (s < 1) & (t > 0) & (t < 1)
    place = p + s[..., None] * u
    top = a.height[:, None] + s * (jnp.roll(a.height, -1) - a.height)[:, None]
    bottom = b.height[None] + t * (jnp.roll(b.height, -1) - b.height)[None]
    met = tuple(x.reshape(-1, *x.shape[2:]) for x in (place, top, bottom, cross))
    places, tops, bottoms, there = (jnp.concatenate(parts) for parts in zip(own, its, met))
    return places, tops, bottoms, there


def _is_inside_polygon(points: Array, flat: FlatFace, slack: Array) -> Array:
    """Return a mask of points inside a polygon, an edge or a corner, up to a slack."""
    side = jnp.roll(flat.at, -1, 0) - flat.at
    length = jnp.sqrt(jnp.sum(side**2, 1))
    rel = points[:, None] - flat.at[None]
    cross = side[None, :, 0] * rel[..., 1] - side[None, :, 1] * rel[..., 0]
    inside = jnp.all((cross >= (-slack * length)[None]) | (length == 0)[None], 1)
    # Outside the ends of an edge all cross products are zero, so the bounding box is tested too.
    low, high = jnp.min(flat.at, 0)[None] - slack, jnp.max(flat.at, 0)[None] + slack
    return inside & jnp.all((points >= low) & (points <= high), 1)


def _select_four(at: Array, there: Array, first: Array) -> Array:
    """Return indices of four valid points, far apart: the first, and three that may repeat."""
    best = lambda value: jnp.argmax(jnp.where(there, value, -jnp.inf))
    second = best(jnp.sum((at - at[first][None]) ** 2, 1))
    line = at[second] - at[first]
    side = line[0] * (at[:, 1] - at[first, 1]) - line[1] * (at[:, 0] - at[first, 0])
    return jnp.stack([first, second, best(side), best(-side)])


def _farthest_from_mean(at: Array, there: Array) -> Array:
    """Return the index of the valid point that is farthest from the mean of all valid ones."""
    number = jnp.maximum(jnp.sum(there, dtype=at.dtype), 1)
    middle = jnp.sum(jnp.where(there[:, None], at, 0), 0) / number
    return jnp.argmax(jnp.where(there, jnp.sum((at - middle[None]) ** 2, 1), -jnp.inf))


def _max_square_distance(at: Array) -> Array:
    """Return the largest squared distance of points [N, 2] from the first."""
    return jnp.max(jnp.sum((at - at[:1]) ** 2, 1))


def _is_duplicate(at: Array, square: Array) -> Array:
    """Return a mask of four points that repeat an earlier one, to a thousandth of the flats.

    The tolerance is relative to the flats, not to the points: two crossing edges meet in one point,
    but it is found from each of their sides, and rounding makes four distinct ones.
    """
    apart = jnp.sum((at[:, None] - at[None]) ** 2, -1)
    return jnp.any(jnp.tril(apart <= 1e-6 * square, -1), 1)
