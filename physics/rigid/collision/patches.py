"""Where two flats lie on one another: up to four points of what they share.

A shape's flat along a normal is the points that lie lower than its farthest one by less than
1.6e-3 of their distance from it, the angle within which MuJoCo takes faces for aligned. Both flats
are convex polygons in the plane across the normal; corners of each within the other and crossings
of their edges are the corners of what they share. Four of them are kept, far from one another.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .hull import HIGHEST, Hull, along, bulge, local, tangents, turned
from .shape import FAR

CORNERS = 8  # of a flat that are looked at: the outermost
SLANT = 1.6e-3  # rad
ROWS = 4
# in the plane across a normal, off its axes, along which sides of boxes often lie
_ANGLES = 2 * np.pi / CORNERS * (np.arange(CORNERS) + 0.3)
CIRCLE = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], 1)  # [8, 2]


class Flat(NamedTuple):
    """Part of the surface of a shape, as seen along a normal."""

    at: Array  # [N, 2] across the normal, in order, m; one corner may be there twice
    height: Array  # [N] along the normal, m
    slope: Array  # [2] of the height


class Shared(NamedTuple):
    """Contacts of two flats; those that are not there have the distance `FAR`."""

    dist: Array  # [4] m
    pos: Array  # [4, 3] about the centre of the first shape, m


class Kept(NamedTuple):
    """Four of many points."""

    rows: Array  # [4]
    there: Array  # [4] whether each is one of its own


def low(points: Array, height: Array, normal: Array) -> Kept:
    """The lowest of points [N, 3] above a plane, and up to three of those below it or as low.

    They are far from one another, so that a body that lies on many corners lies within them.
    """
    lowest = jnp.argmin(height)
    out = jnp.sqrt(along(points - points[lowest][None], points - points[lowest][None]))
    there = (height <= 0) | (height - height[lowest] <= SLANT * out)
    at = jnp.einsum("kj,ij->ki", points, tangents(normal), precision=HIGHEST)
    rows = _spread(at, there, lowest)
    return Kept(rows, there[rows] & ~_twice(at[rows], _square(at[rows])))


def patch(one: Hull, two: Hull, n: Array) -> Shared:
    """The contacts of the flats of two shapes along a normal from one to two."""
    axes = jnp.concatenate([tangents(n), n[None]])
    a, b = _flat(one, n, axes, jnp.zeros_like(n)), _flat(two, -n, axes, two.pos - one.pos)
    at, top, bottom, there = _corners(a, b)
    gap = bottom - top - one.radius - two.radius
    keep = _spread(*jax.lax.stop_gradient((at, there, _outer(at, there))))
    middle = (top + one.radius + bottom - two.radius) / 2
    pos = jnp.concatenate([at, middle[:, None]], 1)[keep]
    smaller = jnp.minimum(_square(a.at), _square(b.at))
    chosen = there[keep] & ~_twice(at[keep], smaller)
    return Shared(
        dist=jnp.where(chosen, gap[keep], FAR),
        pos=jnp.einsum("ki,ij->kj", pos, axes, precision=HIGHEST),
    )


def _flat(shape: Hull, n: Array, axes: Array, offset: Array) -> Flat:
    """The flat of a shape along `n`, in the axes of the contact: its corners in turn."""
    inner = local(shape.rot, n)
    ways = jnp.einsum("ij,ki->kj", shape.rot, axes[:2], precision=HIGHEST)
    ways = jnp.einsum("kc,cj->kj", jnp.asarray(CIRCLE, n.dtype), ways, precision=HIGHEST)
    corners = shape.points[_outermost(*jax.lax.stop_gradient((shape.points, inner, ways)))]
    ends_on = _ends_on(shape, inner)
    near = turned(shape.rot, jnp.where(ends_on, _rim(shape, inner, ways), corners))
    near = near + (offset + jnp.where(ends_on, 0, bulge(shape, n)))[None]
    seen = jnp.einsum("ij,kj->ki", axes, near, precision=HIGHEST)
    at, height = seen[:, :2], seen[:, 2]
    return Flat(at, height, _slope(at, height))


def _outermost(points: Array, inner: Array, ways: Array) -> Array:
    """Of the points of the flat along `inner` those that lie farthest along each of the ways."""
    height = along(points, inner[None])
    far = jnp.argmax(height)
    out = jnp.sqrt(along(points - points[far][None], points - points[far][None]))
    flat = height - height[far] >= -SLANT * out
    reach = jnp.einsum("kj,nj->kn", ways, points, precision=HIGHEST)
    return jnp.argmax(jnp.where(flat[None], reach, -jnp.inf), 1)


def _ends_on(shape: Hull, inner: Array) -> Array:
    """Whether a shape is a cylinder that is seen along its axis."""
    disk = (shape.radii[0] > 0) & (shape.radii[2] == 0)
    return disk & (jnp.abs(inner[2]) > 1 - SLANT**2 / 2)


def _rim(shape: Hull, inner: Array, ways: Array) -> Array:
    """Points [8, 3] around the cap of a cylinder, in turn."""
    high = jnp.argmax(shape.points[:, 2] * jnp.sign(inner[2]))
    flat = ways.at[:, 2].set(0)
    return shape.points[high][None] + shape.radii[0] * flat


def _slope(at: Array, height: Array) -> Array:
    """How the height rises across a polygon; zero if it is an edge or a corner."""
    x, y = (at[:, k] - at[0, k] for k in (0, 1))
    z = height - height[0]
    turn = lambda u, v: jnp.sum(u * jnp.roll(v, -1) - jnp.roll(u, -1) * v)
    area = turn(x, y)
    size = jnp.max(x**2 + y**2)
    wide = area > 1e-6 * size
    divide = lambda v: jnp.where(wide, v / jnp.where(wide, area, 1), 0)
    return jnp.stack([divide(-turn(y, z)), divide(turn(x, z))])


def _corners(a: Flat, b: Flat) -> tuple[Array, Array, Array, Array]:
    """Places [M, 2], heights on both and whether they are corners of what two flats share."""
    rise = lambda flat, at: (
        flat.height[0] + jnp.einsum("kj,j->k", at - flat.at[:1], flat.slope, precision=HIGHEST)
    )
    slack = 1e-5 * jnp.sqrt(_square(a.at))
    own = (a.at, a.height, rise(b, a.at), _within(a.at, b, slack))
    its = (b.at, rise(a, b.at), b.height, _within(b.at, a, slack))
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


def _within(points: Array, flat: Flat, slack: Array) -> Array:
    """Whether points lie in a polygon, to a slack; in an edge or a corner too."""
    side = jnp.roll(flat.at, -1, 0) - flat.at
    length = jnp.sqrt(jnp.sum(side**2, 1))
    rel = points[:, None] - flat.at[None]
    cross = side[None, :, 0] * rel[..., 1] - side[None, :, 1] * rel[..., 0]
    inside = jnp.all((cross >= (-slack * length)[None]) | (length == 0)[None], 1)
    # beyond the ends of an edge, all crosses are zero
    low, high = jnp.min(flat.at, 0)[None] - slack, jnp.max(flat.at, 0)[None] + slack
    return inside & jnp.all((points >= low) & (points <= high), 1)


def _spread(at: Array, there: Array, first: Array) -> Array:
    """Four of the points that are there, far from one another: the first, and some may be twice."""
    best = lambda value: jnp.argmax(jnp.where(there, value, -jnp.inf))
    second = best(jnp.sum((at - at[first][None]) ** 2, 1))
    line = at[second] - at[first]
    side = line[0] * (at[:, 1] - at[first, 1]) - line[1] * (at[:, 0] - at[first, 0])
    return jnp.stack([first, second, best(side), best(-side)])


def _outer(at: Array, there: Array) -> Array:
    """The point that is there farthest from the middle of them."""
    number = jnp.maximum(jnp.sum(there, dtype=at.dtype), 1)
    middle = jnp.sum(jnp.where(there[:, None], at, 0), 0) / number
    return jnp.argmax(jnp.where(there, jnp.sum((at - middle[None]) ** 2, 1), -jnp.inf))


def _square(at: Array) -> Array:
    """How far points [N, 2] go from the first, squared."""
    return jnp.max(jnp.sum((at - at[:1]) ** 2, 1))


def _twice(at: Array, square: Array) -> Array:
    """Which of four places are one of the earlier ones, to a thousandth of what lies there.

    Of the flats themselves, not of the places: two edges that cross do so in one place, though that
    is found from each of their sides, and rounding holds the four apart.
    """
    apart = jnp.sum((at[:, None] - at[None]) ** 2, -1)
    return jnp.any(jnp.tril(apart <= 1e-6 * square, -1), 1)
