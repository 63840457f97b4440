"""Distances along rays to shapes in closed form: boxes, capsules, balls and planes.

A ray is eye + t way, with a unit vector `way`. The result is the least t > 0 at which the ray
enters the shape, or `FAR`. A ray that starts inside a shape does not hit it. Vectors are tuples of
arrays that broadcast against each other, and each formula is written by components. A program then
fuses it with the minimum over many shapes, and stores nothing of the size shapes x rays.
"""

import jax.numpy as jnp
from jax import Array

from .vectors import Vec, dot, unit

FAR = 1e3  # m; the far plane, which stands for no hit
PARALLEL = 1e-9  # minimum component of a direction: 1 / way is large, not inf, along a face


def box(eye: Vec, way: Vec, half: Vec) -> Array:
    """Return the distance to a box along rays given in its frame, m, or `FAR`.

    The three pairs of faces are slabs. A ray is in the box from its entry into the last slab until
    it leaves the first (Kay & Kajiya 1986, doi:10.1145/15886.15916).

    Args:
        eye: origins of the rays minus the center of the box: 3 x [...], m.
        way: directions of the rays: 3 x [...].
        half: half the size of the box, 3 x [...], m.

    >>> one = jnp.ones(())
    >>> float(box((-3 * one, 0 * one, 0 * one), (one, 0 * one, 0 * one), (one, one, one)))
    2.0
    """
    low = tuple(-h - e for e, h in zip(eye, half))
    high = tuple(h - e for e, h in zip(eye, half))
    return slabs(low, high, tuple(1 / avoid_zero(w) for w in way))


def slabs(low: Vec, high: Vec, slope: Vec, branches: bool = False) -> Array:
    """Return `box` for faces at `low` and `high` relative to the eye and for 1 / way, in its frame.

    Args:
        low: faces with the lowest coordinates, 3 x [...], m.
        high: faces with the highest coordinates.
        slope: 1 / way, 3 x [...].
        branches: compare and select instead of a minimum that checks for nan. This is twice as fast
            on a CPU, but the compilers of accelerators cannot fuse it within a minute.

    >>> float(slabs((2.0, -1.0, -1.0), (4.0, 1.0, 1.0), (jnp.float32(1), 1e9, 1e9)))
    2.0
    """
    least, most = (fast_min, fast_max) if branches else (jnp.minimum, jnp.maximum)
    a = tuple(s * x for s, x in zip(slope, low))
    b = tuple(s * x for s, x in zip(slope, high))
    near, far = ([f(x, y) for x, y in zip(a, b)] for f in (least, most))
    first = most(most(near[0], near[1]), near[2])
    last = least(least(far[0], far[1]), far[2])
    return jnp.where((last >= first) & (first > 0), first, FAR)


def fast_min(a: Array, b: Array) -> Array:
    """Return the smaller of two numbers in one instruction; `jnp.minimum` also checks for nan.

    >>> float(fast_min(jnp.float32(1), jnp.float32(2)))
    1.0
    """
    return jnp.where(a < b, a, b)


def fast_max(a: Array, b: Array) -> Array:
    """Return the larger of two numbers in one instruction; `jnp.maximum` also checks for nan.

    >>> float(fast_max(jnp.float32(1), jnp.float32(2)))
    2.0
    """
    return jnp.where(a > b, a, b)


def slab_entries(low: Vec, high: Vec, slope: Vec) -> Vec:
    """Return the distances at which rays enter slabs, 3 x [...] m; arguments as in `slabs`."""
    return tuple(jnp.minimum(s * x, s * y) for s, x, y in zip(slope, low, high))


def avoid_zero(w: Array) -> Array:
    """Return the component of a direction, at least `PARALLEL` from 0, with its sign kept.

    >>> float(avoid_zero(jnp.zeros(()))) > 0
    True
    """
    return jnp.where(jnp.abs(w) < PARALLEL, jnp.where(w < 0, -PARALLEL, PARALLEL), w)


def capsule(start: Vec, end: Vec, radius: Array, eye: Vec, way: Vec) -> Array:
    """Return the distance along rays to a capsule of `radius` about a segment, m, or `FAR`.

    Args:
        start: one end of the segment, 3 x [...], m; a segment of length 0 is a ball.
        end: the other end.
        radius: [...] m.
        eye: origins of the rays, 3 x [...], m.
        way: unit vectors, 3 x [...].

    >>> one = jnp.ones(())
    >>> ends = (0 * one, 0 * one, -one), (0 * one, 0 * one, one)
    >>> float(capsule(*ends, 0.5 * one, (3 * one, 0 * one, 0 * one), (-one, 0 * one, 0 * one)))
    2.5
    """
    along, off = _subtract(end, start), _subtract(eye, start)
    length, up, side = dot(along, along), dot(along, way), dot(along, off)
    ahead, square = dot(way, off), dot(off, off)
    A = length - up * up
    B = length * ahead - side * up
    C = length * square - side * side - radius * radius * length
    h = B * B - A * C
    crosses = (h > 0) & (A > 1e-6 * length)
    t = (-B - jnp.sqrt(jnp.where(crosses, h, 1.0))) / jnp.where(crosses, A, 1.0)
    place = side + t * up
    t = jnp.where(crosses & (t > 0) & (place > 0) & (place < length), t, FAR)
    caps = jnp.minimum(ball(off, radius, way), ball(_subtract(eye, end), radius, way))
    return jnp.minimum(t, caps)


def capsule_normal(start: Vec, end: Vec, x: Vec) -> Vec:
    """Return unit vectors 3 x [...] from a capsule's segment towards points x, 3 x [...].

    >>> one = jnp.ones(())
    >>> [float(a) for a in capsule_normal((0, 0, 0), (0, 0, 1), (0 * one, 2 * one, one / 2))]
    [0.0, 1.0, 0.0]
    """
    along, off = _subtract(end, start), _subtract(x, start)
    square = dot(along, along)
    part = jnp.clip(dot(off, along) / jnp.where(square > 0, square, 1), 0, 1)
    return unit(tuple(o - part * a for o, a in zip(off, along)))


def ball(off: Vec, radius: Array, way: Vec) -> Array:
    """Return the distance along rays to a ball, m, or `FAR`; `off` is the eye minus its center.

    >>> one = jnp.ones(())
    >>> float(ball((-3 * one, 0 * one, 0 * one), one, (one, 0 * one, 0 * one)))
    2.0
    """
    ahead = dot(way, off)
    # squared distance from the center to the ray, without cancellation
    side = tuple(o - ahead * w for o, w in zip(off, way))
    h = radius * radius - dot(side, side)
    t = -ahead - jnp.sqrt(jnp.where(h > 0, h, 1.0))
    return jnp.where((h > 0) & (t > 0), t, FAR)


def plane(normal: Vec, height: Array, eye: Vec, way: Vec) -> Array:
    """Return the distance along rays to the plane normal . x = height, from either side, or `FAR`.

    >>> one = jnp.ones(())
    >>> up, eye, way = (0 * one, 0 * one, one), (0 * one, 0 * one, 3 * one), (0.6, 0.0, -0.8)
    >>> float(plane(up, one, eye, way))
    2.5
    """
    t = (height - dot(normal, eye)) / avoid_zero(dot(normal, way))
    return jnp.where((t > 0) & (t < FAR), t, FAR)


def _subtract(a: Vec, b: Vec) -> Vec:
    return tuple(p - q for p, q in zip(a, b))
