"""First post-Newtonian gravity of point masses: the Einstein-Infeld-Hoffmann equations.

Einstein, Infeld & Hoffmann (1938), doi:10.2307/1968714, in the form that planetary ephemerides
integrate (Park et al. 2021, doi:10.3847/1538-3881/abd414, eq. 27) with the parameters of general
relativity, beta = gamma = 1. With an infinite speed of light they reduce to Newton's equations.
"""

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.geometry.vectors import dot
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors

from .. import validation

SPEED_OF_LIGHT = 299792.458 * 86400 / 149597870.7  # astronomical units per day


@explain_errors
def newton(x: Array, gm: Array) -> Array:
    """Return the acceleration [N, 3] of each body, sum_j GM_j (x_j - x_i) / r_ij^3.

    Args:
        x: positions [N, 3].
        gm: gravitational parameters [N].

    >>> newton(jnp.array([[0.0, 0, 0], [2, 0, 0]]), jnp.array([4.0, 0]))
    Array([[ 0.,  0.,  0.],
           [-1.,  0.,  0.]], dtype=float32)
    """
    x, _, gm, _ = _validate_bodies("relativity.newton", x, x, gm, jnp.inf)
    d, u = _separations(x)
    return jnp.sum((gm[None] * u * u * u)[..., None] * d, 1)


@explain_errors
def einstein_infeld_hoffmann(x: Array, v: Array, gm: Array, light: Array | float) -> Array:
    """Return the acceleration [N, 3] of each body by all others, to first order in 1 / light^2.

    Args:
        x: barycentric positions [N, 3].
        v: barycentric velocities [N, 3].
        gm: gravitational parameters [N].
        light: speed of light in the units of `v`; infinity gives Newton's gravity.

    Raises:
        ValueError: inconsistent shapes, values that are not finite, two bodies at one position, two
            floating types.
    """
    x, v, gm, light = _validate_bodies("relativity.einstein_infeld_hoffmann", x, v, gm, light)
    d, u = _separations(x)
    pull = gm[None] * u * u * u
    a = jnp.sum(pull[..., None] * d, 1)  # Newtonian: corrections to it would be of second order
    depth = jnp.sum(gm[None] * u, 1)
    v2 = jnp.sum(v * v, 1)
    apart_speed = jnp.sum(d * v[None], -1) * u
    factor = (
        (v2[:, None] + 2 * v2[None] - 4 * jnp.sum(v[:, None] * v[None], -1))
        - (4 * depth[:, None] + depth[None])
        - 1.5 * apart_speed * apart_speed
        + 0.5 * jnp.sum(d * a[None], -1)
    )
    drag = -jnp.sum(d * (4 * v[:, None] - 3 * v[None]), -1)
    small = jnp.sum(
        (pull * factor)[..., None] * d
        + (pull * drag)[..., None] * (v[:, None] - v[None])
        + (3.5 * gm[None] * u)[..., None] * a[None],
        1,
    )
    return a + small / (light * light)


def schwarzschild(x: list[Array], v: list[Array], gm: Array, light: Array | float) -> list[Array]:
    """Return the relativistic correction to the pull of a heavy body on a tracer.

    GM / (c^2 r^3) ((4 GM / r - v^2) x + 4 (x . v) v), in harmonic coordinates: the acceleration of
    Einstein, Infeld and Hoffmann where all but one mass vanish.

    Args:
        x: components of the position relative to the heavy body, three arrays of one shape.
        v: components of the relative velocity.
        gm: gravitational parameter of the heavy body.
        light: speed of light.
    """
    ranges.numbers("relativity.schwarzschild: light", light, above=0, infinite=True)
    u = lax.rsqrt(dot(x, x))
    v2, xv = dot(v, v), dot(x, v)
    scale = gm * u * u * u / (light * light)
    along_x, along_v = scale * (4 * gm * u - v2), scale * 4 * xv
    return [along_x * x[k] + along_v * v[k] for k in range(3)]


@explain_errors
def lagrangian(x: Array, v: Array, gm: Array, light: Array | float) -> Array:
    """Return the Lagrangian of the system times G, to first order in 1 / light^2.

    Landau & Lifshitz, The Classical Theory of Fields, section 106. Its Euler-Lagrange equations are
    those of `einstein_infeld_hoffmann`, up to terms of second order.
    """
    x, v, gm, light = _validate_bodies("relativity.lagrangian", x, v, gm, light)
    d, u = _separations(x)
    v2 = jnp.sum(v * v, 1)
    pair = gm[:, None] * gm[None] * u
    depth = jnp.sum(gm[None] * u, 1)
    along_i, along_j = (jnp.sum(d * w, -1) * u for w in (v[:, None], v[None]))
    mixed = 7 * jnp.sum(v[:, None] * v[None], -1) + along_i * along_j
    small = (
        jnp.sum(gm * v2 * v2) / 8
        + jnp.sum(pair * (1.5 * v2[:, None] - mixed / 4))
        - jnp.sum(gm * depth * depth) / 2
    )
    return jnp.sum(gm * v2) / 2 + jnp.sum(pair) / 2 + small / (light * light)


@explain_errors
def invariants(x: Array, v: Array, gm: Array, light: Array | float) -> tuple[Array, Array, Array]:
    """Return energy [], momentum [3] and angular momentum [3], each times G.

    By Noether's theorem from `lagrangian`: p = dL/dv, E = v . p - L, sum x cross p. The equations
    of motion conserve them up to terms of order 1 / light^4.
    """
    x, v, gm, light = _validate_bodies("relativity.invariants", x, v, gm, light)
    value, p = jax.value_and_grad(lagrangian, 1)(x, v, gm, light)
    return jnp.sum(p * v) - value, jnp.sum(p, 0), jnp.sum(jnp.cross(x, p), 0)


def _validate_bodies(
    name: str, x: Array, v: Array, gm: Array, light: Array | float
) -> tuple[Array, Array, Array, Array | float]:
    """Return positions, velocities [N, 3], parameters [N] and the speed of light after checks."""
    x, v = validation.check_vectors(f"{name}: x", x), validation.check_vectors(f"{name}: v", v)
    gm = validation.check_numbers(f"{name}: gm", gm, least=0)
    if gm.ndim != 1 or x.shape != (*gm.shape, 3) or v.shape != x.shape:
        shapes = f"gm {list(gm.shape)}, x {list(x.shape)}, v {list(v.shape)}"
        raise ValueError(f"{name}: {shapes}; must be [N] and twice [N, 3]")
    ranges.numbers(f"{name}: light", light, (), above=0, infinite=True)
    x, v, gm = validation.one_precision(name, x=x, v=v, gm=gm)
    validation.check_distinct(f"{name}: x", x)
    return x, v, gm, jnp.asarray(light, x.dtype)


def _separations(x: Array) -> tuple[Array, Array]:
    """Return separations x_j - x_i [N, N, 3] and inverse distances [N, N], 0 on the diagonal."""
    d = x[None] - x[:, None]
    r2 = jnp.sum(d * d, -1)
    same = jnp.eye(x.shape[0], dtype=bool)
    return d, jnp.where(same, 0.0, lax.rsqrt(jnp.where(same, 1.0, r2)))
