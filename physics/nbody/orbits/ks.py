"""Two-body motion in regular variables, linear and smooth even in a collision.

Kustaanheimo & Stiefel (1965), doi:10.1515/crll.1965.218.204, as in Stiefel & Scheifele (1971),
Linear and Regular Celestial Mechanics, sections 9 and 10. With x = L(u) u and ds = dt / r the
relative motion is the oscillator u'' = h u / 2, where h is the energy over the reduced mass. It is
solved exactly with Stumpff functions, so ellipses, parabolas and hyperbolas share one expression.

The functions are kernels for the pairs of a cluster: components come first, [3, ...] and [4, ...],
and trailing axes are a batch. Units in which G = 1.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry.vectors import length
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import pytree

from .. import validation
from . import universal

_ROUNDS = 61  # maximum iterations for Kepler's equation; 3 to 8 are needed
_FAR = 500.0  # hyperbolic mean anomaly; below it, arguments at the solution are at most 40


@pytree
class Orbit:
    """Relative orbit of two bodies in Kustaanheimo-Stiefel variables."""

    u: Array  # [4, ...] position: x = L(u) u, length^(1/2)
    w: Array  # [4, ...] its derivative by s: v = 2 L(u) w / r, velocity length^(1/2)
    h: Array  # [...] energy over the reduced mass, v^2 / 2 - m / r
    m: Array  # [...] mass of both


@explain_errors
def from_cartesian(x: Array, v: Array, m: Array | float) -> Orbit:
    """Convert relative position and velocity [3, ...], of total mass m [...], to a KS orbit.

    >>> orbit = from_cartesian(jnp.array([2.0, 0, 0]), jnp.array([0, 1.0, 0]), jnp.array(2.0))
    >>> float(orbit.h), round(float(period(orbit)), 3)
    (-0.5, 12.566)

    Raises:
        ValueError: inconsistent shapes, values that are not finite, bodies at one position, a mass
            that is not positive, two floating types.
    """
    x, v = validation.check_relative("ks.from_cartesian", x, v, axis=0)
    m = validation.per_pair("ks.from_cartesian: m", m, x.shape[1:], x.dtype, above=0)
    r = length(x)
    right = x[0] >= 0
    big = jnp.sqrt((r + jnp.abs(x[0])) / 2)
    y, z, none = x[1] / (2 * big), x[2] / (2 * big), jnp.zeros_like(r)
    # the fibre over x is a circle; the points selected here divide by no small number
    u = jnp.stack([jnp.where(right, p, q) for p, q in ((big, y), (y, big), (z, none), (none, z))])
    h = jnp.sum(v * v, 0) / 2 - m / r
    return Orbit(u=u, w=_transpose_product(u, v) / 2, h=h, m=jnp.broadcast_to(m, r.shape))


@explain_errors
def to_cartesian(orbit: Orbit) -> tuple[Array, Array]:
    """Convert a KS orbit to relative position and velocity, both [3, ...]."""
    r = distance(orbit)
    return _product(orbit.u, orbit.u), 2 * _product(orbit.u, orbit.w) / r[None]


@explain_errors
def distance(orbit: Orbit) -> Array:
    """Return the distance [...] of the two bodies."""
    return jnp.sum(orbit.u * orbit.u, 0)


@explain_errors
def period(orbit: Orbit) -> Array:
    """Return the period [...] of an ellipse; infinite if the orbit is not bound."""
    bound = orbit.h < 0
    size = -2 * jnp.where(bound, orbit.h, -1)
    return jnp.where(bound, 2 * jnp.pi * orbit.m / (size * jnp.sqrt(size)), jnp.inf)


@explain_errors
def apocenter(orbit: Orbit) -> Array:
    """Return the maximum distance [...]; infinite if the orbit is not bound."""
    bound = orbit.h < 0
    a = -orbit.m / (2 * jnp.where(bound, orbit.h, -1))
    return jnp.where(bound, a * (1 + jnp.sqrt(_eccentricity2(orbit, a))), jnp.inf)


def _eccentricity2(orbit: Orbit, a: Array) -> Array:
    """Return e^2 from e cos E = 1 - r / a and e sin E = r' / sqrt(m a)."""
    c, eta = 1 - distance(orbit) / a, 2 * jnp.sum(orbit.u * orbit.w, 0)
    return c * c + eta * eta / (orbit.m * a)


@explain_errors
def drift(orbit: Orbit, s: Array) -> tuple[Orbit, Array]:
    """Advance the orbit by the regular time `s` [...]; also return the physical time elapsed."""
    s = jnp.asarray(ranges.numbers("ks.drift: s", s), orbit.h.dtype)
    u, w, half = orbit.u, orbit.w, -orbit.h / 2
    c0, c1, c2, c3 = universal.stumpff_doubled(half * s * s)
    later = Orbit(
        u=c0[None] * u + (s * c1)[None] * w,
        w=c0[None] * w - (half * s * c1)[None] * u,
        h=orbit.h,
        m=orbit.m,
    )
    # the physical time, the integral of r ds, in functions of the doubled angle
    r, eta = distance(orbit), 2 * jnp.sum(u * w, 0)
    g1, g2, g3 = s * c0 * c1, s * s * c1 * c1 / 2, s * s * s * (c2 + c0 * c3) / 4
    return later, r * g1 + eta * g2 + orbit.m * g3


@explain_errors
def kick(orbit: Orbit, s: Array, a: Array) -> Orbit:
    """Apply a relative acceleration `a` [3, ...] for a regular time `s`, at constant position.

    u and the physical time do not change. h changes by exactly the work done, so the identity
    2 |w|^2 - h r = m holds after any kick.
    """
    pull = _transpose_product(orbit.u, a)
    w = orbit.w + (s * distance(orbit) / 2)[None] * pull
    return Orbit(orbit.u, w, orbit.h + s * jnp.sum((orbit.w + w) * pull, 0), orbit.m)


@explain_errors
def advance(orbit: Orbit, t: Array) -> Orbit:
    """Advance the unperturbed orbit by a physical time `t` [...] of either sign, to rounding."""
    return drift(orbit, regular_time(orbit, t))[0]


@explain_errors
def regular_time(orbit: Orbit, t: Array) -> Array:
    """Return the regular time [...] that corresponds to a physical time `t` [...] of either sign.

    Whole revolutions are removed first. `universal.solve` then solves Kepler's equation within
    these bounds. On an ellipse, eccentric and mean anomaly differ by at most 2. On other orbits
    r'' >= m, so t >= m s^3 / 24. Far out on a hyperbola, t n >= 2 sinh(n' s / 2) - n' s with
    n' = sqrt(2 h) and n = n'^3 / m.
    """
    t = jnp.asarray(ranges.numbers("ks.regular_time: t", t), orbit.h.dtype)
    turn = period(orbit)
    bound = jnp.isfinite(turn)
    turn = jnp.where(bound, turn, 1)
    t = t - jnp.where(bound, jnp.round(t / turn) * turn, 0)
    fast = jnp.sqrt(jnp.where(orbit.h > 0, 2 * orbit.h, 0))
    mean_far = fast * fast * fast * jnp.abs(t) / orbit.m
    far = mean_far > _FAR
    angle = 2 * jnp.arcsinh(jnp.where(far, mean_far, 1))
    # far out, the time is only as accurate as the angle, to a few eps of the angle
    tolerance = 4 * jnp.finfo(t.dtype).eps * jnp.abs(t) * jnp.where(far, angle, 1)

    def flight(s: Array) -> tuple[Array, Array, Array]:
        later, time = drift(orbit, s)
        return time, distance(later), 2 * jnp.sum(later.u * later.w, 0)

    # the criterion is the time, not s: near a collision s is more accurate than necessary
    is_converged = lambda s, step, error: ~(jnp.abs(error) > tolerance)
    mean, pace = -2 * orbit.h * t / orbit.m, jnp.sqrt(jnp.where(bound, -2 * orbit.h, 1))
    start = jnp.where(bound, mean, t / (distance(orbit) + jnp.cbrt(orbit.m * t * t)))
    most = jnp.where(bound, jnp.abs(mean) + 2 / pace, jnp.cbrt(24 * jnp.abs(t) / orbit.m))
    most = jnp.where(far, angle / jnp.where(far, fast, 1), most)
    return universal.solve(flight, start, t, most, is_converged, _ROUNDS)


def _product(u: Array, q: Array) -> Array:
    """Return the first three components of L(u) q."""
    return jnp.stack(
        [
            u[0] * q[0] - u[1] * q[1] - u[2] * q[2] + u[3] * q[3],
            u[1] * q[0] + u[0] * q[1] - u[3] * q[2] - u[2] * q[3],
            u[2] * q[0] + u[3] * q[1] + u[0] * q[2] + u[1] * q[3],
        ]
    )


def _transpose_product(u: Array, a: Array) -> Array:
    """Return L(u)^T (a, 0)."""
    return jnp.stack(
        [
            u[0] * a[0] + u[1] * a[1] + u[2] * a[2],
            -u[1] * a[0] + u[0] * a[1] + u[3] * a[2],
            -u[2] * a[0] - u[3] * a[1] + u[0] * a[2],
            u[3] * a[0] - u[2] * a[1] + u[1] * a[2],
        ]
    )
