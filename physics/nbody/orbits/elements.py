"""Conversion between Keplerian orbital elements and positions and velocities.

Murray & Dermott, Solar System Dynamics (1999), sections 2.3, 2.4 and 2.8. Angles in radians; any
units in which the gravitational parameter is that of the two bodies together.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.devices import allocation
from jaxgpu.geometry.vectors import cross
from jaxgpu.inputs import ranges
from jaxgpu.inputs.calls import defer_check
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import number, pytree

from .. import validation
from . import universal

_ROUNDS = 40  # maximum iterations for Kepler's equation; 2 to 6 are needed
_PI = float(np.float32(np.pi))  # upper bound of angles: float32 rounds pi up
_TURNS = 4 * _PI  # bound for node and pericentre: two turns, which detects angles in degrees


@pytree
class Elements:
    """Elliptic orbits; every field has the shape of the batch, and every angle is in radians.

    The fields are the semi-major axis a, the eccentricity e, the inclination i to the x-y plane,
    the longitude of the ascending node, the argument of the pericentre from the node, and the mean
    anomaly. From a longitude of the pericentre, subtract that of the node; from a mean longitude,
    that of the pericentre.

    >>> import jax.numpy as jnp
    >>> circle = Elements(*(jnp.array(value) for value in (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)))
    >>> x, v = to_state(circle, 1.0)
    >>> x.round(3), v.round(3)
    (Array([1., 0., 0.], dtype=float32), Array([-0.,  1.,  0.], dtype=float32))
    """

    a: Array = number(above=0, unit="length")  # [...] semi-major axis
    e: Array = number(least=0, below=1)  # [...] eccentricity
    i: Array = number(least=0, most=_PI, unit="rad")  # [...] inclination to the x-y plane
    # [...] longitude of the ascending node
    node: Array = number(least=-_TURNS, most=_TURNS, unit="rad")
    # [...] argument of the pericentre, from the node
    peri: Array = number(least=-_TURNS, most=_TURNS, unit="rad")
    mean: Array = number(unit="rad")  # [...] mean anomaly


@explain_errors
def from_state(x: Array, v: Array, gm: Array | float) -> Elements:
    """Return the osculating elements [...] of relative positions and velocities [..., 3].

    The pericentre of a circular orbit, and the node of one in the x-y plane, are set to the x axis.
    The mean anomaly is nan where the orbit is not bound (e >= 1).

    Raises:
        ValueError: inconsistent shapes, values that are not finite, bodies at one position, a
            parameter that is not positive, two floating types.
    """
    x, v, gm = _check_relative("elements.from_state", x, v, gm)
    r, v2 = jnp.sqrt(jnp.sum(x * x, 0)), jnp.sum(v * v, 0)
    h = jnp.stack(cross(x, v))
    ecc = _eccentricity_vector(x, v, gm)
    a = 1 / (2 / r - v2 / gm)
    e = jnp.sqrt(jnp.sum(ecc * ecc, 0))
    i = jnp.arctan2(jnp.sqrt(h[0] * h[0] + h[1] * h[1]), h[2])
    node = jnp.arctan2(h[0], -h[1])
    node = jnp.where((h[0] == 0) & (h[1] == 0), 0, node)
    c, s = jnp.cos(node), jnp.sin(node)
    height = jnp.sqrt(jnp.sum(h * h, 0))
    # axes in the orbital plane: p points to the node, q is a quarter turn ahead
    p = jnp.stack([c, s, jnp.zeros_like(c)])
    q = jnp.stack(cross(h, p)) / height[None]
    peri = jnp.arctan2(jnp.sum(ecc * q, 0), jnp.sum(ecc * p, 0))
    peri = jnp.where(e == 0, 0, peri)
    latitude = jnp.arctan2(jnp.sum(x * q, 0), jnp.sum(x * p, 0))
    half = jnp.sqrt((1 - e) / (1 + e)) * jnp.tan((latitude - peri) / 2)
    eccentric = 2 * jnp.arctan(half)
    mean = jnp.where(e < 1, eccentric - e * jnp.sin(eccentric), jnp.nan)
    return Elements(a=a, e=e, i=i, node=node, peri=peri, mean=mean)


@explain_errors
def eccentricity_vector(x: Array, v: Array, gm: Array | float) -> Array:
    """Return the eccentricity vector [..., 3], which points to the pericentre and has length e.

    Raises:
        ValueError: as `from_state`.
    """
    vector = _eccentricity_vector(*_check_relative("elements.eccentricity_vector", x, v, gm))
    return jnp.moveaxis(vector, 0, -1)


def _check_relative(name: str, x: Array, v: Array, gm: Array | float) -> tuple[Array, Array, Array]:
    """Return checked relative positions and velocities [3, ...] and the gravitational parameter."""
    x, v = validation.check_relative(name, x, v)
    gm = validation.per_pair(f"{name}: gm", gm, x.shape[:-1], x.dtype, above=0)
    return jnp.moveaxis(x, -1, 0), jnp.moveaxis(v, -1, 0), gm


def _eccentricity_vector(x: Array, v: Array, gm: Array) -> Array:
    r, v2, xv = jnp.sqrt(jnp.sum(x * x, 0)), jnp.sum(v * v, 0), jnp.sum(x * v, 0)
    return ((v2 - gm / r)[None] * x - xv[None] * v) / gm[None]


@explain_errors
@allocation.limit_memory
def to_state(orbit: Elements, gm: Array | float) -> tuple[Array, Array]:
    """Return the relative position and velocity of the elements, both [..., 3].

    Raises:
        ValueError: an orbit that is not an ellipse, or angles that are not finite.
    """
    a, e, i, node, peri, mean = _check_elements("elements.to_state", orbit)
    gm = validation.per_pair("elements.to_state: gm", gm, a.shape, a.dtype, above=0)
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
    return jnp.moveaxis(x, 0, -1), jnp.moveaxis(v, 0, -1)


def _check_elements(name: str, orbit: Elements) -> tuple[Array, ...]:
    """Return the six elements after checks, in one precision and one shape."""
    if not isinstance(orbit, Elements):
        raise TypeError(f"{name}: orbit is a {type(orbit).__name__}; it must be an Elements")
    ranges.check(name, orbit)
    fields = {field: jnp.asarray(value) for field, value in vars(orbit).items()}
    shapes = {field: value.shape for field, value in fields.items()}
    try:
        shape = np.broadcast_shapes(*shapes.values())
    except ValueError:
        given = ", ".join(f"{field} {list(shape)}" for field, shape in shapes.items())
        raise ValueError(f"{name}: {given}; all elements must have one shape") from None
    values = validation.unify_dtypes(name, **fields)
    return tuple(jnp.broadcast_to(value, shape) for value in values)


@explain_errors
@allocation.limit_memory
def sample_uniform(
    key: Array, count: int, a: tuple[float, float], e: Array | float, i: Array | float
) -> Elements:
    """Sample orbits [count] uniformly in every element, in the default precision.

    Args:
        key: JAX random key.
        count: number of orbits.
        a: minimum and maximum semi-major axis.
        e: maximum eccentricity.
        i: maximum inclination, radians.
    """
    name = "elements.sample_uniform"
    ranges.numbers(f"{name}: count", count, (), whole=True, least=0)
    low, high = (ranges.numbers(f"{name}: a", value, (), above=0) for value in a)
    ranges.numbers(f"{name}: e", e, (), least=0, below=1)
    ranges.numbers(f"{name}: i", i, (), least=0, most=_PI, unit="rad")
    defer_check(partial(_refuse_order, name), low, high)
    lows = jnp.array([a[0], 0, 0, 0, 0, 0], float)[:, None]
    highs = jnp.array([a[1], e, i, *[2 * jnp.pi] * 3], float)[:, None]
    drawn = lows + (highs - lows) * jax.random.uniform(key, (6, count))
    return Elements(a=drawn[0], e=drawn[1], i=drawn[2], node=drawn[3], peri=drawn[4], mean=drawn[5])


def _refuse_order(name: str, low: Array | float, high: Array | float) -> None:
    if low > high:
        raise ValueError(f"{name}: a={(low, high)}; the smallest must come first")


@explain_errors
def eccentric_anomaly(mean: Array, e: Array) -> Array:
    """Solve Kepler's equation E - e sin E = M for E, to rounding, for 0 <= e < 1.

    Args:
        mean: mean anomaly M [...], of any number of turns.
        e: eccentricity [...].

    The iteration is `universal.solve`; a Newton step after it carries derivatives.

    >>> float(eccentric_anomaly(jnp.float32(1.0), jnp.float32(0.0)))
    1.0
    """
    ranges.numbers("elements.eccentric_anomaly: mean", mean)
    ranges.numbers("elements.eccentric_anomaly: e", e, least=0, below=1)
    mean, e = jnp.broadcast_arrays(jnp.asarray(mean), jnp.asarray(e))
    turns = jnp.floor(mean / (2 * jnp.pi) + 0.5) * (2 * jnp.pi)
    m = mean - turns  # -pi .. pi
    known_e, known_m = lax.stop_gradient((e, m))

    def flight(E: Array) -> tuple[Array, Array, Array]:
        return E - known_e * jnp.sin(E), 1 - known_e * jnp.cos(E), known_e * jnp.sin(E)

    precise = 4 * float(jnp.finfo(m.dtype).eps)
    is_converged = lambda E, step, error: ~(jnp.abs(step) > precise * jnp.abs(E))
    # E has the sign of M and differs from it by at most e
    E = universal.solve(flight, known_m, known_m, jnp.abs(known_m) + known_e, is_converged, _ROUNDS)
    return E - (E - e * jnp.sin(E) - m) / (1 - e * jnp.cos(E)) + turns
