"""Plummer spheres, and scaling to N-body units: G = M = 1 and total energy -1/4.

Plummer (1911), doi:10.1093/mnras/71.5.460; sampled as in Aarseth, Henon & Wielen (1974), A&A 37,
183, by inversion of the mass profile; velocities by inversion of their tabulated distribution.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.devices import allocation
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors, on_host

from ..measure import diagnostics
from ..validation import check_distinct, check_numbers, one_precision

PLUMMER_RADIUS = 3 * np.pi / 16  # scale length in N-body units


@explain_errors
@allocation.limit_memory
def plummer(key: Array, count: int) -> tuple[Array, Array]:
    """Sample positions and velocities [count, 3] of equal bodies in a Plummer sphere, centred.

    N-body units (Heggie & Mathieu 1986, doi:10.1007/BFb0116419): G = M = 1, E = -1/4, so the scale
    length is 3 pi / 16. The profile is truncated at 0.999 of the mass, at 39 scale lengths.

    Args:
        key: JAX random key.
        count: number of bodies; the precision is the default one.
    """
    ranges.numbers("plummer: count", count, (), whole=True, least=1)
    by_mass, by_speed, by_place, by_course = jax.random.split(key, 4)
    inside = jax.random.uniform(by_mass, (count,), maxval=0.999)
    r = 1 / jnp.sqrt(inside ** (-2 / 3) - 1)
    escape = jnp.sqrt(2 / jnp.sqrt(1 + r * r))
    speed = escape * _speed_over_escape(jax.random.uniform(by_speed, (count,)))
    x = PLUMMER_RADIUS * r[None] * directions(by_place, count)
    v = PLUMMER_RADIUS**-0.5 * speed[None] * directions(by_course, count)
    return center(x, v)


@explain_errors
@on_host
def virialize(
    x: Array, v: Array, m: Array, ratio: float = 0.5, softening: float = 0.0
) -> tuple[Array, Array]:
    """Scale positions and velocities [N, 3] to exactly the energy of N-body units.

    About the centre of mass, for stars of any masses [N], with G = 1: potential energy -M^2 / 2 and
    kinetic energy `ratio` times as much, so that a total mass of 1 in equilibrium has E = -1/4.

    Args:
        x: positions [N, 3].
        v: velocities [N, 3].
        m: masses [N].
        ratio: virial ratio; 1/2 is equilibrium, smaller values collapse, 0 is a cold start.
        softening: softening length in the units of the result.

    With softening the length is found by fixed-point iteration. It is accurate to rounding after 30
    rounds for softenings well below the virial radius.
    """
    x = check_numbers("virialize: x", x, shape=("N", 3))
    v = check_numbers("virialize: v", v, shape=x.shape)
    m = check_numbers("virialize: m", m, shape=x.shape[:1], above=0)
    x, v, m = one_precision("virialize", x=x, v=v, m=m)
    check_distinct("virialize", x)
    ranges.numbers("virialize: ratio", ratio, (), least=0)
    ranges.numbers("virialize: softening", softening, (), least=0)
    return _scale_to_units(x, v, m, ratio, softening, 30 if softening else 1)


@partial(jax.jit, static_argnums=5)
def _scale_to_units(
    x: Array, v: Array, m: Array, ratio: Any, softening: Any, rounds: int
) -> tuple[Array, Array]:
    ratio, softening = (jnp.asarray(q, x.dtype) for q in (ratio, softening))
    mass = jnp.sum(m)
    subtract_centre = lambda q: q - jnp.sum(m[None] * q, 1, keepdims=True) / mass
    x, v = subtract_centre(x.T).T, subtract_centre(v.T).T
    target = mass * mass / 2

    def update_length(_, length: Array) -> Array:
        return -diagnostics.energy(x, v, m, softening / length)[1] / target

    length = lax.fori_loop(0, rounds, update_length, jnp.ones((), x.dtype))
    kinetic, _ = diagnostics.energy(x, v, m, 0.0)
    speed = jnp.sqrt(jnp.where(kinetic > 0, ratio * target / jnp.where(kinetic > 0, kinetic, 1), 0))
    return x * length, v * speed


def center(x: Array, v: Array) -> tuple[Array, Array]:
    """Return positions and velocities [N, 3] of equal bodies at [3, N] relative to the mean."""
    x, v = (q - jnp.mean(q, 1, keepdims=True) for q in (x, v))
    return x.T, v.T


def _speed_over_escape(share: Array) -> Array:
    """Invert the distribution q^2 (1 - q^2)^(7/2) of speeds over the escape speed."""
    q = np.sin(np.linspace(0, np.pi / 2, 4001))  # dense in the tail of the distribution
    density = q**2 * (1 - q**2) ** 3.5
    steps = np.diff(q) * (density[1:] + density[:-1]) / 2
    share_below = np.concatenate([[0], np.cumsum(steps)]) / steps.sum()
    keep = np.concatenate([[True], np.diff(share_below) > 0])
    known = (jnp.asarray(part[keep], share.dtype) for part in (share_below, q))
    return jnp.interp(share, *known)


def directions(key: Array, count: int) -> Array:
    """Sample unit vectors [3, count], uniform on the sphere, in the default precision."""
    along, around = jax.random.uniform(key, (2, count))
    z, angle = 2 * along - 1, 2 * jnp.pi * around
    r = jnp.sqrt(1 - z * z)
    return jnp.stack([r * jnp.cos(angle), r * jnp.sin(angle), z])
