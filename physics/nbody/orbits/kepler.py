"""Motion of two bodies over any time: ellipses, parabolas and hyperbolas with one formula.

Universal variables in the form of Wisdom & Hernandez (2015), doi:10.1093/mnras/stv1862: with s the
integral of dt / r, positions are linear in the Stumpff functions of beta s^2. Kepler's equation is
solved by `universal.solve`, after the time has been reduced by whole periods.

Derivatives do not pass through the iteration. A Newton step from the converged value carries them,
as accurately as the solution itself (the implicit function theorem, by hand).
"""

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.geometry.vectors import cross, dot, length
from jaxgpu.inputs.explanations import explain_errors

from .. import validation
from . import universal

_ROUNDS = 40  # 3 to 6 reach rounding; a radial fall through the centre never converges


@explain_errors
def drift(x: Array, v: Array, gm: Array | float, dt: Array | float) -> tuple[Array, Array]:
    """Return the relative position and velocity [..., 3] of two isolated bodies after a time dt.

    Args:
        x: relative position [..., 3], not zero.
        v: relative velocity [..., 3].
        gm: gravitational parameter of the two together [...], not negative; 0 is a straight line.
        dt: time [...], of either sign.

    Raises:
        ValueError: inconsistent shapes, values that are not finite, bodies at one position, a
            negative parameter, two floating types.

    Differentiable in all four, in both modes. The relative error is about 1e-15 per drift, times
    1 / (1 - e) near the pericentre of a highly eccentric orbit.

    >>> x, v = drift(jnp.array([1.0, 0, 0]), jnp.array([0, 1.0, 0]), jnp.float32(1.0), 2 * jnp.pi)
    >>> jnp.round(x, 5).tolist(), jnp.round(v, 5).tolist()
    ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    """
    x, v = validation.check_relative("kepler.drift", x, v)
    gm = validation.per_pair("kepler.drift: gm", gm, x.shape[:-1], x.dtype, least=0)
    dt = validation.per_pair("kepler.drift: dt", dt, x.shape[:-1], x.dtype)
    x, v = drift_components(jnp.moveaxis(x, -1, 0), jnp.moveaxis(v, -1, 0), gm, dt)
    return jnp.moveaxis(x, 0, -1), jnp.moveaxis(v, 0, -1)


def drift_components(x: Array, v: Array, gm: Array, dt: Array) -> tuple[Array, Array]:
    """Compute `drift` without checks, components first: [3, ...]."""
    r, radial, v2 = length(x), dot(x, v), dot(v, v)
    beta = 2 * gm / r - v2
    dt = _reduce_time(beta, gm, dt)
    orbit = r, radial, gm - beta * r, beta
    # the iteration works on constants; the Newton step after it carries all derivatives
    known = lax.stop_gradient((orbit, dt))
    still = lax.stop_gradient(gm)
    starts = _initial_guesses(*known, still, lax.stop_gradient(_angular_momentum2(x, v)))
    s = _solve_kepler(*known, starts, _upper_bound(*known, still))
    time, distance, _ = _flight(orbit, s)
    s = s - (time - dt) / distance
    time, distance, (_, g1, g2, g3) = _flight(orbit, s)
    # f - 1 and g' - 1 instead of f and g', so that short drifts have small rounding errors
    f, g = -gm * g2 / r, dt - gm * g3
    df, dg = -gm * g1 / (r * distance), -gm * g2 / distance
    return x + (f[None] * x + g[None] * v), v + (df[None] * x + dg[None] * v)


@explain_errors
def pericenter(x: Array, v: Array, gm: Array | float) -> tuple[Array, Array]:
    """Return the time to the nearest pericentre, negative if past, and its distance; both [...].

    Args:
        x: relative position [..., 3].
        v: relative velocity [..., 3].
        gm: gravitational parameter of the two together [...], positive.

    On a circle every position is a pericentre, and the time is arbitrary.

    Raises:
        ValueError: as `drift`.

    >>> time, q = pericenter(jnp.array([3.0, 0, 0]), jnp.array([0, 1.0, 0]), jnp.float32(1.0))
    >>> round(float(time), 4), float(q)
    (0.0, 3.0)
    """
    x, v = validation.check_relative("kepler.pericenter", x, v)
    gm = validation.per_pair("kepler.pericenter: gm", gm, x.shape[:-1], x.dtype, above=0)
    return pericenter_components(jnp.moveaxis(x, -1, 0), jnp.moveaxis(v, -1, 0), gm)


def pericenter_components(x: Array, v: Array, gm: Array) -> tuple[Array, Array]:
    """Compute `pericenter` without checks, components first: [3, ...]."""
    r, radial = length(x), dot(x, v)
    beta = 2 * gm / r - dot(v, v)
    zeta = gm - beta * r
    spin = _angular_momentum2(x, v)
    e = jnp.sqrt(jnp.maximum(1 - beta * spin / (gm * gm), 0))
    # the pericentre is the zero of radial G0 + zeta G1, the product r dr/dt
    closed = beta > 0
    k = jnp.sqrt(jnp.where(beta == 0, 1, jnp.abs(beta)))
    turn = jnp.arctan2(jnp.where(closed, -radial * k, 0), zeta)
    rise = jnp.arctanh(jnp.where(closed, 0, -radial * k / jnp.where(closed, 1, zeta)))
    s = jnp.where(beta == 0, -radial / gm, jnp.where(closed, turn, rise) / k)
    return _flight((r, radial, zeta, beta), s)[0], spin / (gm * (1 + e))


def _angular_momentum2(x: Array, v: Array) -> Array:
    """Return the squared specific angular momentum."""
    h = cross(x, v)
    return dot(h, h)


def _reduce_time(beta: Array, gm: Array, dt: Array) -> Array:
    """Reduce the time by whole periods; differentiable, since the period depends on the orbit."""
    bound = beta > 0
    b = jnp.where(bound, beta, 1)
    period = 2 * np.pi * gm / (b * jnp.sqrt(b))
    turns = jnp.round(dt / jnp.where(bound & (period > 0), period, jnp.inf))
    return jnp.where(turns == 0, dt, dt - turns * period)


def _flight(
    orbit: tuple[Array, Array, Array, Array], s: Array
) -> tuple[Array, Array, tuple[Array, Array, Array, Array]]:
    """Return the time since the start, the distance and the Stumpff functions G0 to G3 at `s`."""
    r, radial, zeta, beta = orbit
    z = beta * s * s
    c2, c3 = universal.stumpff(z)
    g = 1 - z * c2, s * (1 - z * c3), s * s * c2, s * s * s * c3
    time = r * s + radial * g[2] + zeta * g[3]
    return time, r + radial * g[1] + zeta * g[2], g


def _solve_kepler(
    orbit: tuple[Array, Array, Array, Array], dt: Array, starts: tuple, most: Array
) -> Array:
    """Return the `s` at which the time is dt, no farther from 0 than `most`."""
    r, radial, zeta, beta = (q[None] for q in orbit)
    wrong = jnp.abs(_flight((r, radial, zeta, beta), jnp.stack(starts))[0] - dt[None])
    s = jnp.where(wrong[0] < wrong[1], starts[0], starts[1])  # a nan, from overflow, loses
    precise = 4 * float(jnp.finfo(s.dtype).eps)

    def flight(s: Array) -> tuple[Array, Array, Array]:
        time, distance, (g0, g1, _, _) = _flight(orbit, s)
        return time, distance, orbit[1] * g0 + orbit[2] * g1

    is_converged = lambda s, step, error: ~(jnp.abs(step) > precise * jnp.abs(s))
    return universal.solve(flight, s, dt, most, is_converged, _ROUNDS)


def _upper_bound(orbit: tuple[Array, Array, Array, Array], dt: Array, gm: Array) -> Array:
    """Return a bound of |s|: eccentric and mean anomaly differ by at most 2, or r'' >= gm."""
    bound, heavy = orbit[3] > 0, gm > 0
    beta, gm = jnp.where(bound, orbit[3], 1), jnp.where(heavy, gm, 1)
    closed = jnp.abs(dt) * beta / gm + 2 / jnp.sqrt(beta)
    open_ = jnp.where(heavy, jnp.cbrt(24 * jnp.abs(dt) / gm), jnp.inf)
    return jnp.where(bound, closed, open_)


def _initial_guesses(
    orbit: tuple[Array, Array, Array, Array], dt: Array, gm: Array, spin: Array
) -> tuple[Array, Array]:
    """Return initial guesses of s, for short and long times; `_solve_kepler` takes the better."""
    r, radial, _, beta = orbit
    short = dt / r * (1 - radial * dt / (2 * r * r))
    mean = beta * dt / jnp.where(gm > 0, gm, 1)
    # on a hyperbola e sinh H - H = M, so H is about asinh(M / e)
    open_ = (beta < 0) & (gm > 0)
    k, mu = jnp.sqrt(jnp.where(open_, -beta, 1)), jnp.where(open_, gm, 1)
    rise = radial * k / mu
    e = jnp.sqrt(1 + spin * k * k / (mu * mu))
    begin = jnp.arcsinh(rise / e)
    far = (jnp.arcsinh((rise - begin + k * k * k / mu * dt) / e) - begin) / k
    return short, jnp.where(open_, far, mean)
