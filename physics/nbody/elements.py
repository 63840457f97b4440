"""Kepler's elements of an orbit, from position and velocity and back.

Murray & Dermott, Solar System Dynamics (1999), sections 2.3, 2.4 and 2.8. Angles in radians; any
units in which the gravitational parameter is that of the two bodies together.
"""

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.pytree import pytree


@pytree
class Elements:
    """Elliptic orbits; every field has the shape of the batch."""

    a: Array  # [...] semi-major axis
    e: Array  # [...] eccentricity, 0 <= e < 1
    i: Array  # [...] inclination to the x-y plane, 0 to pi
    node: Array  # [...] longitude of the ascending node
    peri: Array  # [...] argument of the pericentre, from the node
    mean: Array  # [...] mean anomaly


def from_state(x: Array, v: Array, gm: Array) -> Elements:
    """Osculating elements of relative positions and velocities [3, ...].

    For a circular orbit the pericentre, and for one in the x-y plane the node, is where the x axis
    is; mean anomaly and pericentre are nan where the orbit is not bound (e >= 1).
    """
    r, v2 = jnp.sqrt(jnp.sum(x * x, 0)), jnp.sum(v * v, 0)
    h = jnp.stack([x[k - 2] * v[k - 1] - x[k - 1] * v[k - 2] for k in range(3)])
    ecc = towards_pericentre(x, v, gm)
    a = 1 / (2 / r - v2 / gm)
    e = jnp.sqrt(jnp.sum(ecc * ecc, 0))
    i = jnp.arctan2(jnp.sqrt(h[0] * h[0] + h[1] * h[1]), h[2])
    node = jnp.arctan2(h[0], -h[1])
    node = jnp.where((h[0] == 0) & (h[1] == 0), 0, node)
    c, s = jnp.cos(node), jnp.sin(node)
    height = jnp.sqrt(jnp.sum(h * h, 0))
    # axes in the plane of the orbit: towards the node, and a quarter turn ahead
    p = jnp.stack([c, s, jnp.zeros_like(c)])
    q = jnp.stack([h[k - 2] * p[k - 1] - h[k - 1] * p[k - 2] for k in range(3)]) / height[None]
    peri = jnp.arctan2(jnp.sum(ecc * q, 0), jnp.sum(ecc * p, 0))
    peri = jnp.where(e == 0, 0, peri)
    latitude = jnp.arctan2(jnp.sum(x * q, 0), jnp.sum(x * p, 0))
    half = jnp.sqrt((1 - e) / (1 + e)) * jnp.tan((latitude - peri) / 2)
    eccentric = 2 * jnp.arctan(half)
    return Elements(a, e, i, node, peri, eccentric - e * jnp.sin(eccentric))


def towards_pericentre(x: Array, v: Array, gm: Array) -> Array:
    """The eccentricity vector [3, ...]: towards the pericentre, as long as e."""
    r, v2, xv = jnp.sqrt(jnp.sum(x * x, 0)), jnp.sum(v * v, 0), jnp.sum(x * v, 0)
    return ((v2 - gm / r)[None] * x - xv[None] * v) / jnp.broadcast_to(gm, r.shape)[None]


def to_state(orbit: Elements, gm: Array) -> tuple[Array, Array]:
    """Relative position and velocity, both [3, ...]."""
    a, e = orbit.a, orbit.e
    anomaly = eccentric_anomaly(orbit.mean, e)
    c, s = jnp.cos(anomaly), jnp.sin(anomaly)
    minor = jnp.sqrt((1 - e) * (1 + e))
    speed = jnp.sqrt(gm / a) / (1 - e * c)
    plane_x = (a * (c - e), a * minor * s)
    plane_v = (-speed * s, speed * minor * c)
    (cn, sn), (cp, sp), (ci, si) = (
        (jnp.cos(angle), jnp.sin(angle)) for angle in (orbit.node, orbit.peri, orbit.i)
    )
    p = jnp.stack([cn * cp - sn * sp * ci, sn * cp + cn * sp * ci, sp * si])
    q = jnp.stack([-cn * sp - sn * cp * ci, -sn * sp + cn * cp * ci, cp * si])
    x, v = (u[None] * p + w[None] * q for u, w in (plane_x, plane_v))
    return x, v


def uniform(
    key: Array, count: int, a: tuple[float, float], e: Array | float, i: Array | float
) -> Elements:
    """Orbits [count] drawn uniformly in every element, in the default precision.

    Args:
        key: of the draw.
        count: how many.
        a: smallest and largest semi-major axis.
        e: largest eccentricity.
        i: largest inclination, radians.
    """
    lows = jnp.array([a[0], 0, 0, 0, 0, 0], float)[:, None]
    highs = jnp.array([a[1], e, i, *[2 * jnp.pi] * 3], float)[:, None]
    return Elements(*(lows + (highs - lows) * jax.random.uniform(key, (6, count))))


def eccentric_anomaly(mean: Array, e: Array) -> Array:
    """Solve Kepler's equation E - e sin E = M for E, to rounding, for 0 <= e < 1.

    Newton's method from pi, where it converges for every e and M: the equation is convex on each
    half of the orbit.

    >>> float(eccentric_anomaly(jnp.float32(1.0), jnp.float32(0.0)))
    1.0
    """
    turns = jnp.floor(mean / (2 * jnp.pi) + 0.5) * (2 * jnp.pi)
    m = mean - turns  # -pi .. pi
    side = jnp.where(m < 0, -1, 1).astype(m.dtype)

    def newton(_, E):
        return E - (E - e * jnp.sin(E) - m) / (1 - e * jnp.cos(E))

    start = jnp.broadcast_to(side * jnp.pi, jnp.broadcast_shapes(m.shape, jnp.shape(e)))
    return lax.fori_loop(0, 30, newton, start.astype(m.dtype)) + turns
