"""Spheres, capsules and cylinders against spheres and capsules: points of their axes."""

import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry.vectors import Vec, cross, dot

from .planes import stack_points
from .shape import (
    FAR,
    Collision,
    VecShape,
    X,
    collision,
    direction,
    kernel,
    minus,
    plus,
    ratio,
    select,
    times,
)

PARALLEL = 1e-8  # squared sine of the angle below which two capsules touch twice


def sphere_contacts(one: VecShape, two: VecShape, p: Vec, q: Vec, r: Array, s: Array) -> Collision:
    """Return the contacts of spheres of radius r about `p` and s about `q`, components [k].

    Where centres coincide, the normal is perpendicular to both shapes' z axes, or (1, 0, 0).
    """
    spare = direction(cross(one.z_axis, two.z_axis), X)[0]
    normal, apart = direction(minus(q, p), spare)
    dist = apart - r - s
    return collision(dist, plus(p, normal, r + dist / 2), normal)


@kernel
def sphere_sphere(one: VecShape, two: VecShape) -> Collision:
    """Return the contact of two spheres, one row."""
    p, q = stack_points(one.pos), stack_points(two.pos)
    return sphere_contacts(one, two, p, q, one.size[0], two.size[0])


@kernel
def sphere_capsule(sphere: VecShape, capsule: VecShape) -> Collision:
    """Return the contact of a sphere and the closest sphere of a capsule, one row."""
    half = capsule.size[1]
    nearest = jnp.clip(dot(capsule.z_axis, minus(sphere.pos, capsule.pos)), -half, half)
    p, q = stack_points(sphere.pos), stack_points(plus(capsule.pos, capsule.z_axis, nearest))
    return sphere_contacts(sphere, capsule, p, q, sphere.size[0], capsule.size[0])


@kernel
def sphere_cylinder(sphere: VecShape, cylinder: VecShape) -> Collision:
    """Return the contact of a sphere and the side, a cap or a rim of a cylinder, one row."""
    along, (radius, half, _), r = cylinder.z_axis, cylinder.size, sphere.size[0]
    offset = minus(sphere.pos, cylinder.pos)
    height = dot(along, offset)
    out, away = direction(plus(offset, along, -height), cylinder.axes[0])
    level, over = jnp.abs(height) < half, away < radius
    cap = over & ~(level & (half - jnp.abs(height) >= radius - away))
    side = level & ~cap
    up = select(height > 0, along, times(along, -1.0))
    rim = plus(plus(cylinder.pos, up, half), out, radius)
    centre = select(side, plus(cylinder.pos, along, height), rim)
    # The normal points to the axis or to the rim, or perpendicularly to a cap.
    spare = direction(cross(sphere.z_axis, along), X)[0]
    normal, apart = direction(minus(centre, sphere.pos), spare)
    normal = select(cap, times(up, -1.0), normal)
    apart = jnp.where(cap, jnp.abs(height) - half, apart - jnp.where(side, radius, 0))
    dist = apart - r
    pos = plus(sphere.pos, normal, r + dist / 2)
    return collision(dist[None], stack_points(pos), normal)


@kernel
def capsule_capsule(one: VecShape, two: VecShape) -> Collision:
    """Return the contacts of two capsules, two rows: the second only if axes are parallel.

    Parallel capsules touch at both ends of the part of axis 1 that overlaps axis 2.
    """
    a, b = times(one.z_axis, one.size[1]), times(two.z_axis, two.size[1])
    aa, ab, bb = dot(a, a), dot(a, b), dot(b, b)
    apart = minus(two.pos, one.pos)
    u, v = dot(a, apart), -dot(b, apart)
    normal = cross(a, b)
    det = dot(normal, normal)
    parallel = det < PARALLEL * aa * bb
    # In half lengths, find the crossing, then each point again with the other one clipped.
    x = jnp.clip(ratio(dot(cross(apart, b), normal), jnp.where(parallel, 0, det)), -1, 1)
    y = jnp.clip(ratio(v + ab * x, bb), -1, 1)
    x = jnp.clip(ratio(u + ab * y, aa), -1, 1)
    # Project the ends of axis 2 on axis 1, the lower first, and clip each.
    upper, lower = ratio(u + ab, aa), ratio(u - ab, aa)
    ends = jnp.stack([jnp.minimum(upper, lower), jnp.maximum(upper, lower)])
    first = jnp.where(upper < lower, 1.0, -1.0).astype(x.dtype)
    xs = jnp.clip(ends, -1, 1)
    ys = jnp.clip(ratio(v + ab * xs, bb), -1, 1)
    ys = jnp.where(jnp.abs(ends) > 1, ys, jnp.stack([first, -first]))
    xs, ys = jnp.where(parallel, xs, x), jnp.where(parallel, ys, y)
    p, q = plus(one.pos, a, xs), plus(two.pos, b, ys)
    found = sphere_contacts(one, two, p, q, one.size[0], two.size[0])
    spare = jnp.stack([jnp.asarray(False), ~parallel])
    return Collision(jnp.where(spare, FAR, found.dist), found.pos, found.frame)
