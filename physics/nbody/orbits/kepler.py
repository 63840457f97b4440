"""Motion of two bodies about each other over any time: ellipse, parabola, hyperbola, one formula.

Universal variables in the form of Wisdom & Hernandez (2015), doi:10.1093/mnras/stv1862: with s the
integral of dt / r, positions are linear in the Stumpff functions of beta s^2. Kepler's equation is
solved by the method of Laguerre as Conway (1986), doi:10.1007/BF01230852, uses it, which converges
from any start; orbits closed several times in the interval are first brought to one period.

Derivatives do not run through the iteration: one step of Newton's method from the converged value
carries them, as exactly as the solution itself (the implicit function theorem, by hand).
"""

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .. import bodies, layout
from ..layout import Columns, Rows

_ROUNDS = 40  # rounding is reached in 3 to 6; a radial fall through the centre never gets there
_SERIES = 9  # terms of a Stumpff function up to |z| = 1: the tenth is below rounding


def drift(
    x: Array | Rows | Columns, v: Array | Rows | Columns, gm: Array | float, dt: Array | float
) -> tuple[Array, Array]:
    """Relative position and velocity [3, ...] after a time dt, of two bodies alone.

    Args:
        x: relative position [3, ...], not zero.
        v: relative velocity [3, ...].
        gm: gravitational parameter of both together [...], not negative; 0 is a straight line.
        dt: time [...], of either sign.

    Of three pairs say which way they lie: `layout.Rows(x)` has a row [3] a pair, and so has then
    the result; `layout.Columns(x)` has the components first.

    Raises:
        ValueError: shapes that do not fit or can be read both ways, values that are not finite,
            bodies at one place, a negative parameter.

    Differentiable in all four, in both modes. Relative error some 1e-15 a drift, times 1 / (1 - e)
    near the pericentre of a narrow orbit.

    >>> x, v = drift(jnp.array([1.0, 0, 0]), jnp.array([0, 1.0, 0]), jnp.float32(1.0), 2 * jnp.pi)
    >>> jnp.round(x, 5).tolist(), jnp.round(v, 5).tolist()
    ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    """
    given = x
    x, v, gm = _pair("kepler.drift", x, v, gm, least=0)
    dt = bodies.each("kepler.drift: dt", dt, x)
    r = jnp.sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
    radial = x[0] * v[0] + x[1] * v[1] + x[2] * v[2]
    beta = 2 * gm / r - (v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    dt = _within_a_period(beta, gm, dt)
    orbit = r, radial, gm - beta * r, beta
    known = lax.stop_gradient((orbit, dt))
    still = lax.stop_gradient(gm)
    starts = _guesses(*known, still, lax.stop_gradient(_spin(x, v)))
    s = _solved(*known, starts, _most(*known, still))
    time, distance = _flight(orbit, s)[:2]
    s = s - (time - dt) / distance
    time, distance, (_, g1, g2, g3) = _flight(orbit, s)
    # f - 1 and g' - 1, so that a short drift changes little with few roundings
    f, g = -gm * g2 / r, dt - gm * g3
    df, dg = -gm * g1 / (r * distance), -gm * g2 / distance
    x, v = x + (f[None] * x + g[None] * v), v + (df[None] * x + dg[None] * v)
    return layout.like(given, x), layout.like(given, v)


def pericentre(
    x: Array | Rows | Columns, v: Array | Rows | Columns, gm: Array | float
) -> tuple[Array, Array]:
    """Time to the nearest pericentre, negative where it is past, and its distance; both [...].

    Args:
        x: relative position [3, ...].
        v: relative velocity [3, ...].
        gm: gravitational parameter of both together [...], positive.

    On a circle every place is a pericentre, and the time means nothing.

    >>> time, q = pericentre(jnp.array([3.0, 0, 0]), jnp.array([0, 1.0, 0]), jnp.float32(1.0))
    >>> round(float(time), 4), float(q)
    (0.0, 3.0)
    """
    x, v, gm = _pair("kepler.pericentre", x, v, gm, above=0)
    r = jnp.sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
    radial = x[0] * v[0] + x[1] * v[1] + x[2] * v[2]
    beta = 2 * gm / r - (v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    zeta = gm - beta * r
    spin = _spin(x, v)
    e = jnp.sqrt(jnp.maximum(1 - beta * spin / (gm * gm), 0))
    # where radial G0 + zeta G1, the product r dr/dt, is zero
    closed = beta > 0
    k = jnp.sqrt(jnp.where(beta == 0, 1, jnp.abs(beta)))
    turn = jnp.arctan2(jnp.where(closed, -radial * k, 0), zeta)
    rise = jnp.arctanh(jnp.where(closed, 0, -radial * k / jnp.where(closed, 1, zeta)))
    s = jnp.where(beta == 0, -radial / gm, jnp.where(closed, turn, rise) / k)
    return _flight((r, radial, zeta, beta), s)[0], spin / (gm * (1 + e))


def stumpff(z: Array) -> tuple[Array, Array]:
    """c2 = (1 - cos sqrt z) / z and c3 = (sqrt z - sin sqrt z) / z^(3/2), for any sign of z.

    >>> c2, c3 = stumpff(jnp.zeros(()))
    >>> float(c2), round(float(6 * c3), 6)
    (0.5, 1.0)
    """
    near, closed = jnp.abs(z) < 1, z > 0
    small = jnp.where(near, z, 0)
    series = []
    for first in (2, 3):
        term = 1.0
        for k in range(_SERIES, 0, -1):
            term = 1 - small * term / ((first + 2 * k) * (first + 2 * k - 1))
        series.append(term / first / (first - 1))
    root = jnp.sqrt(jnp.where(near, 1, jnp.abs(z)))
    half = jnp.where(closed, jnp.sin(root / 2), jnp.sinh(jnp.where(closed, 1, root / 2)))
    whole = jnp.where(closed, jnp.sin(root), jnp.sinh(jnp.where(closed, 1, root)))
    c2 = 2 * half * half / (root * root)
    c3 = jnp.where(closed, root - whole, whole - root) / (root * root * root)
    return jnp.where(near, series[0], c2), jnp.where(near, series[1], c3)


def _pair(name: str, x: Array, v: Array, gm: Array, **bounds: float) -> tuple[Array, Array, Array]:
    """Relative positions and velocities [3, ...] and parameters [...], checked."""
    x, v = layout.columns(f"{name}: x", x), layout.columns(f"{name}: v", v)
    if x.shape != v.shape:
        raise ValueError(f"{name}: x {list(x.shape)}, v {list(v.shape)}; both must be [3, ...]")
    bodies.away(f"{name}: x", x)
    x, v = bodies.one_precision(name, x=x, v=v)
    return x, v, bodies.each(f"{name}: gm", gm, x, **bounds)


def _spin(x: Array, v: Array) -> Array:
    """The square of the angular momentum."""
    h = [x[k - 2] * v[k - 1] - x[k - 1] * v[k - 2] for k in range(3)]
    return h[0] * h[0] + h[1] * h[1] + h[2] * h[2]


def _within_a_period(beta: Array, gm: Array, dt: Array) -> Array:
    """The time less whole periods; differentiable, for a period depends on the orbit."""
    bound = beta > 0
    b = jnp.where(bound, beta, 1)
    period = 2 * np.pi * gm / (b * jnp.sqrt(b))
    turns = jnp.round(dt / jnp.where(bound & (period > 0), period, jnp.inf))
    return jnp.where(turns == 0, dt, dt - turns * period)


def _flight(
    orbit: tuple[Array, Array, Array, Array], s: Array
) -> tuple[Array, Array, tuple[Array, Array, Array, Array]]:
    """Time since the start, distance, and Stumpff's G0 to G3, at `s`."""
    r, radial, zeta, beta = orbit
    z = beta * s * s
    c2, c3 = stumpff(z)
    g = 1 - z * c2, s * (1 - z * c3), s * s * c2, s * s * s * c3
    time = r * s + radial * g[2] + zeta * g[3]
    return time, r + radial * g[1] + zeta * g[2], g


def _solved(
    orbit: tuple[Array, Array, Array, Array], dt: Array, starts: tuple, most: Array
) -> Array:
    """The `s` at which the time is dt; no farther from 0 than `most`.

    By the iteration of Laguerre and Conway (1986), doi:10.1007/BF01230852, between bounds that
    close in: from a pericentre it leaps 1 / (1 - e).
    """
    r, radial, zeta, beta = (q[None] for q in orbit)
    wrong = jnp.abs(_flight((r, radial, zeta, beta), jnp.stack(starts))[0] - dt[None])
    s = jnp.where(wrong[0] < wrong[1], starts[0], starts[1])  # nan, an overflow, loses
    precise = 4 * float(jnp.finfo(s.dtype).eps)

    def unfinished(carry: tuple[Array, ...]) -> Array:
        k, s, step, _, _ = carry
        return (k < _ROUNDS) & jnp.any(jnp.abs(step) > precise * jnp.abs(s))

    def laguerre(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        k, s, _, low, high = carry
        time, distance, (g0, g1, _, _) = _flight(orbit, s)
        error, bend = time - dt, orbit[1] * g0 + orbit[2] * g1
        low, high = jnp.where(error < 0, s, low), jnp.where(error > 0, s, high)
        root = jnp.sqrt(jnp.abs(16 * distance * distance - 20 * error * bend))
        leap = s - 5 * error / (distance + root)
        middle = (low + high) / 2
        nearer = jnp.where(jnp.isfinite(middle), middle, s / 2)  # where sinh overflows
        after = jnp.where((low <= leap) & (leap <= high), leap, nearer)
        return k + 1, after, s - after, low, high

    low, high = jnp.where(dt < 0, -most, 0), jnp.where(dt > 0, most, 0)
    start = jnp.int32(0), jnp.clip(s, low, high), jnp.full_like(s, jnp.inf), low, high
    return lax.while_loop(unfinished, laguerre, start)[1]


def _most(orbit: tuple[Array, Array, Array, Array], dt: Array, gm: Array) -> Array:
    """The largest `s` that can be: eccentric and mean anomaly differ by at most 2, r'' >= gm."""
    bound, heavy = orbit[3] > 0, gm > 0
    beta, gm = jnp.where(bound, orbit[3], 1), jnp.where(heavy, gm, 1)
    closed = jnp.abs(dt) * beta / gm + 2 / jnp.sqrt(beta)
    open_ = jnp.where(heavy, jnp.cbrt(24 * jnp.abs(dt) / gm), jnp.inf)
    return jnp.where(bound, closed, open_)


def _guesses(
    orbit: tuple[Array, Array, Array, Array], dt: Array, gm: Array, spin: Array
) -> tuple[Array, Array]:
    """Two places to start: for a short time, and for a long one. The better is taken."""
    r, radial, _, beta = orbit
    short = dt / r * (1 - radial * dt / (2 * r * r))
    mean = beta * dt / jnp.where(gm > 0, gm, 1)
    # a hyperbola: e sinh H - H = M, and H is about asinh(M / e)
    open_ = (beta < 0) & (gm > 0)
    k, mu = jnp.sqrt(jnp.where(open_, -beta, 1)), jnp.where(open_, gm, 1)
    rise = radial * k / mu
    e = jnp.sqrt(1 + spin * k * k / (mu * mu))
    begin = jnp.arcsinh(rise / e)
    far = (jnp.arcsinh((rise - begin + k * k * k / mu * dt) / e) - begin) / k
    return short, jnp.where(open_, far, mean)
