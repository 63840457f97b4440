"""A capsule against a cylinder: the deepest point of the capsule's axis.

The signed distance to a convex body is convex along a line, so bisection finds its minimum. One
Newton step from there carries the derivatives, by the implicit function theorem.
"""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry.vectors import Vec, dot

from .shape import (
    FAR,
    Collision,
    VecShape,
    barrier,
    collision,
    direction,
    kernel,
    minus,
    plus,
    ratio,
    select,
    times,
)

KINK_TOLERANCE = (
    2.0**-20
)  # fraction of a half axis within which the minimum is taken to be at a kink
FLAT_SINE = 0.0872  # sine of the angle to a cap, 5 degrees, below which a capsule lies on it


def cylinder_distance(p: Vec, radius: Array, half: Array) -> tuple[Array, Vec]:
    """Return a point's signed distance to a cylinder, in its axes, and the unit normal there."""
    zero = jnp.zeros_like(p[0])
    out, away = direction((p[0], p[1], zero), (1.0, 0.0, 0.0))
    up = (zero, zero, jnp.where(p[2] < 0, -1.0, 1.0).astype(away.dtype))
    side, cap = away - radius, jnp.abs(p[2]) - half
    rim, apart = direction(plus(times(out, jnp.maximum(side, 0)), up, jnp.maximum(cap, 0)), up)
    corner, by_cap = (side > 0) & (cap > 0), cap >= side
    distance = jnp.where(corner, apart, jnp.where(by_cap, cap, side))
    return distance, select(corner, rim, select(by_cap, up, out))


@kernel
def capsule_cylinder(capsule: VecShape, cylinder: VecShape) -> Collision:
    """Return the contacts of a capsule and a cylinder, two rows: the second if it lies on a cap.

    If the capsule's axis is inside, the depth is that of its deepest point; MuJoCo returns the way
    out of the whole axis, which is longer.
    """
    pos = cylinder.from_world(minus(capsule.pos, cylinder.pos))
    half = times(cylinder.from_world(capsule.z_axis), capsule.size[1])
    pos, half = barrier((pos, half))
    (radius, height, _), r = cylinder.size, capsule.size[0]
    t = _deepest_axis_point(pos, half, radius, height)
    distance, normal = cylinder_distance(plus(pos, half, t), radius, height)
    # On a cap, the contacts are both ends of the part above it.
    low, high, above = _clip_to_disc(pos, half, radius)
    ends = jnp.stack([low, high])
    up = jnp.where(pos[2] < 0, -1.0, 1.0).astype(t.dtype)
    slope = half[2] ** 2 <= FLAT_SINE**2 * dot(half, half)
    flat = barrier(above & slope & (jnp.abs(normal[2]) > 1 - FLAT_SINE**2))
    place = plus(pos, half, jnp.where(flat, ends, t))
    distance = jnp.where(flat, place[2] * up - height, distance)
    normal = select(flat, (0.0, 0.0, up), normal)
    dist = distance - r
    pos = cylinder.point_to_world(plus(place, normal, -r - dist / 2))
    spare = jnp.stack([jnp.asarray(False), ~flat])
    return collision(jnp.where(spare, FAR, dist), pos, cylinder.turn(times(normal, -1.0)))


def _clip_to_disc(pos: Vec, half: Vec, radius: Array) -> tuple[Array, Array, Array]:
    """Return where an axis pos + t half, |t| <= 1, enters and leaves a circle, and if it does."""
    aa = half[0] ** 2 + half[1] ** 2
    ab = half[0] * pos[0] + half[1] * pos[1]
    det = ab * ab - aa * (pos[0] ** 2 + pos[1] ** 2 - radius**2)
    cuts = (det > 0) & (aa > 0)
    root = jnp.sqrt(jnp.where(cuts, det, 1))
    bottom = jnp.where(cuts, aa, 1)
    low, high = jnp.clip((-ab - root) / bottom, -1, 1), jnp.clip((root - ab) / bottom, -1, 1)
    return low, high, cuts & (low < high)


def _deepest_axis_point(pos: Vec, half: Vec, radius: Array, height: Array) -> Array:
    """Return the t of the axis pos + t half, |t| <= 1, with the least distance to the cylinder."""

    def slope(t, pos, half, radius, height):
        return dot(cylinder_distance(plus(pos, half, t), radius, height)[1], half)

    fixed = jax.lax.stop_gradient((pos, half, radius, height))

    def bisect(_, ends):
        low, high = ends
        middle = (low + high) / 2
        rises = slope(middle, *fixed) > 0
        return jnp.where(rises, low, middle), jnp.where(rises, middle, high)

    ends = (jnp.full_like(radius, -1), jnp.full_like(radius, 1))
    low, high = jax.lax.fori_loop(
        0, jnp.finfo(radius.dtype).nmant + 1, bisect, jax.lax.stop_gradient(ends), unroll=8
    )
    t = jnp.where(high == 1, 1, jnp.where(low == -1, -1, (low + high) / 2)).astype(radius.dtype)
    free = (high < 1) & (low > -1)
    bend = jax.jvp(lambda t: slope(t, *fixed), (t,), (jnp.ones_like(t),))[1]
    smooth = ratio(-slope(t, pos, half, radius, height), jnp.where(bend > 0, bend, 0))
    bent, kink = _find_kink(plus(pos, half, t), half, radius, height)
    step = jnp.where(bent, kink, smooth)
    return t + jnp.where(free & (jnp.abs(step) < KINK_TOLERANCE), step, 0)


def _find_kink(p: Vec, half: Vec, radius: Array, height: Array) -> tuple[Array, Array]:
    """Return whether the distance is least at a kink near a point inside, and the step to it.

    At a kink two surfaces are equally close: a cap and the round side, or the two caps.
    """
    square = p[0] ** 2 + p[1] ** 2
    away = jnp.sqrt(jnp.where(square > 0, square, 1))
    side, cap = away - radius, jnp.abs(p[2]) - height
    sign = jnp.where(p[2] < 0, -1.0, 1.0).astype(away.dtype)
    leave, rise = (p[0] * half[0] + p[1] * half[1]) / away, sign * half[2]
    inside = (side < 0) & (cap < 0) & (square > 0)
    divide = lambda a, b, mask: ratio(a, jnp.where(mask, jax.lax.stop_gradient(b), 0))
    edge = divide(side - cap, rise - leave, inside & (rise * leave < 0))
    middle = divide(-p[2], half[2], inside)
    at_edge = inside & (rise * leave < 0) & (jnp.abs(edge) < KINK_TOLERANCE)
    at_middle = inside & (cap > side) & (half[2] != 0) & (jnp.abs(middle) < KINK_TOLERANCE)
    return at_edge | at_middle, jnp.where(at_edge, edge, middle)
