"""Kepler's elements of an orbit, from position and velocity and back.

Murray & Dermott, Solar System Dynamics (1999), sections 2.3, 2.4 and 2.8. Angles in radians; any
units in which the gravitational parameter is that of the two bodies together.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu import ranges
from jaxgpu.pytree import number, pytree

from .. import bodies, layout
from ..layout import Columns, Rows

_PI = float(np.float32(np.pi))  # the largest that is meant: in float32, pi is rounded up


@pytree
class Elements:
    """Elliptic orbits; every field has the shape of the batch."""

    a: Array = number(above=0, unit="length")  # [...] semi-major axis
    e: Array = number(least=0, below=1)  # [...] eccentricity
    i: Array = number(least=0, most=_PI, unit="rad")  # [...] inclination to the x-y plane
    node: Array = number(unit="rad")  # [...] longitude of the ascending node
    peri: Array = number(unit="rad")  # [...] argument of the pericentre, from the node
    mean: Array = number(unit="rad")  # [...] mean anomaly


def from_state(x: Array | Rows | Columns, v: Array | Rows | Columns, gm: Array | float) -> Elements:
    """Osculating elements of relative positions and velocities [3, ...].

    Of three orbits say which way they lie: `layout.Rows(x)` or `layout.Columns(x)`.

    For a circular orbit the pericentre, and for one in the x-y plane the node, is where the x axis
    is; the mean anomaly is nan where the orbit is not bound (e >= 1).
    """
    x, v, gm = _relative("elements.from_state", x, v, gm)
    r, v2 = jnp.sqrt(jnp.sum(x * x, 0)), jnp.sum(v * v, 0)
    h = jnp.stack([x[k - 2] * v[k - 1] - x[k - 1] * v[k - 2] for k in range(3)])
    ecc = _towards(x, v, gm)
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
    mean = jnp.where(e < 1, eccentric - e * jnp.sin(eccentric), jnp.nan)
    return Elements(a, e, i, node, peri, mean)


def towards_pericentre(
    x: Array | Rows | Columns, v: Array | Rows | Columns, gm: Array | float
) -> Array:
    """The eccentricity vector [3, ...], laid as `x`: towards the pericentre, as long as e."""
    name = "elements.towards_pericentre"
    return layout.like(x, _towards(*_relative(name, x, v, gm)))


def _relative(name: str, x: Array, v: Array, gm: Array) -> tuple[Array, Array, Array]:
    """Relative positions and velocities [3, ...] and the parameter, checked."""
    laid = layout.columns(f"{name}: x", x), layout.columns(f"{name}: v", v)
    if laid[0].shape != laid[1].shape:
        shapes = f"x {list(laid[0].shape)}, v {list(laid[1].shape)}"
        raise ValueError(f"{name}: {shapes}; both must be [3, ...]")
    bodies.away(f"{name}: x", laid[0])
    x, v = bodies.one_precision(name, x=laid[0], v=laid[1])
    return x, v, bodies.each(f"{name}: gm", gm, x, above=0)


def _towards(x: Array, v: Array, gm: Array) -> Array:
    r, v2, xv = jnp.sqrt(jnp.sum(x * x, 0)), jnp.sum(v * v, 0), jnp.sum(x * v, 0)
    return ((v2 - gm / r)[None] * x - xv[None] * v) / jnp.broadcast_to(gm, r.shape)[None]


def to_state(orbit: Elements, gm: Array | float) -> tuple[Array, Array]:
    """Relative position and velocity, both [3, ...]: components first, also of three orbits.

    Raises:
        ValueError: an orbit that is no ellipse, or angles that are not finite.
    """
    a, e, i, node, peri, mean = _batch("elements.to_state", orbit)
    gm = bodies.each("elements.to_state: gm", gm, a[None], above=0)
    anomaly = eccentric_anomaly(mean, e)
    c, s = jnp.cos(anomaly), jnp.sin(anomaly)
    minor = jnp.sqrt((1 - e) * (1 + e))
    speed = jnp.sqrt(gm / a) / (1 - e * c)
    plane_x = (a * (c - e), a * minor * s)
    plane_v = (-speed * s, speed * minor * c)
    (cn, sn), (cp, sp), (ci, si) = ((jnp.cos(angle), jnp.sin(angle)) for angle in (node, peri, i))
    p = jnp.stack([cn * cp - sn * sp * ci, sn * cp + cn * sp * ci, sp * si])
    q = jnp.stack([-cn * sp - sn * cp * ci, -sn * sp + cn * cp * ci, cp * si])
    x, v = (u[None] * p + w[None] * q for u, w in (plane_x, plane_v))
    return x, v


def _batch(name: str, orbit: Elements) -> tuple[Array, ...]:
    """The six elements, checked, in one precision and of one shape."""
    ranges.check(name, orbit)
    fields = {field: jnp.asarray(value) for field, value in vars(orbit).items()}
    shapes = {field: value.shape for field, value in fields.items()}
    try:
        shape = np.broadcast_shapes(*shapes.values())
    except ValueError:
        given = ", ".join(f"{field} {list(shape)}" for field, shape in shapes.items())
        raise ValueError(f"{name}: {given}; all elements must be of one shape") from None
    values = bodies.one_precision(name, **fields)
    return tuple(jnp.broadcast_to(value, shape) for value in values)


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
    name = "elements.uniform"
    ranges.numbers(f"{name}: count", count, (), whole=True, least=0)
    low, high = (ranges.numbers(f"{name}: a", value, (), above=0) for value in a)
    ranges.numbers(f"{name}: e", e, (), least=0, below=1)
    ranges.numbers(f"{name}: i", i, (), least=0, most=_PI, unit="rad")
    if (
        not isinstance(low, jax.core.Tracer)
        and not isinstance(high, jax.core.Tracer)
        and low > high
    ):
        raise ValueError(f"{name}: a={a}; the smallest must come first")
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
    ranges.numbers("elements.eccentric_anomaly: mean", mean)
    ranges.numbers("elements.eccentric_anomaly: e", e, least=0, below=1)
    mean, e = jnp.asarray(mean), jnp.asarray(e)
    turns = jnp.floor(mean / (2 * jnp.pi) + 0.5) * (2 * jnp.pi)
    m = mean - turns  # -pi .. pi
    side = jnp.where(m < 0, -1, 1).astype(m.dtype)

    def newton(_, E):
        return E - (E - e * jnp.sin(E) - m) / (1 - e * jnp.cos(E))

    start = jnp.broadcast_to(side * jnp.pi, jnp.broadcast_shapes(m.shape, jnp.shape(e)))
    return lax.fori_loop(0, 30, newton, start.astype(m.dtype)) + turns
