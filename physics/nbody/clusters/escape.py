"""Which bodies have left a cluster, when, how fast and with how much energy.

As NBODY6 counts them (Aarseth 2003, Gravitational N-Body Simulations, sect. 9.6): beyond a radius
about the density centre, twice the tidal one in a tide, and unbound where the cluster is alone.
Bodies are marked and stay where they are, so shapes never change. A massless body that has left may
be `halted`: it keeps its last state and costs no force any more.
"""

from dataclasses import replace

import jax.numpy as jnp
from jax import Array

from jaxgpu import ranges
from jaxgpu.pytree import pytree

from .massless import Massless


@pytree
class Escapes:
    """One entry a body; zeros for those that are still there."""

    gone: Array  # [N] bool
    time: Array  # [N] when it was first seen outside
    speed: Array  # [N] then, relative to the cluster
    energy: Array  # [N] then, per unit mass, relative to the cluster


def nobody(count: int, like: Array) -> Escapes:
    """No escapes yet among `count` bodies, in the dtype of `like`."""
    zero = jnp.zeros(count, like.dtype)
    return Escapes(jnp.zeros(count, bool), zero, zero, zero)


def noted(
    escapes: Escapes,
    time: Array,
    points: Array,
    potential: Array,
    centre: Array,
    radius: Array | float,
    *,
    unbound: Array | bool = True,
) -> Escapes:
    """The escapes, those added that are seen outside for the first time.

    Args:
        escapes: those so far.
        time: now.
        points: positions over velocities [6, N] of the bodies.
        potential: of the cluster at the bodies [N], as `diagnostics.potential` gives it.
        centre: position over velocity [6] of the cluster.
        radius: bodies within it have not escaped.
        unbound: count only those of positive energy; False for all beyond the radius, in a tide.

    >>> far = jnp.array([[9.0, 1.0]] + [[0.0, 0.0]] * 2 + [[1.0, 1.0]] + [[0.0, 0.0]] * 2)
    >>> noted(nobody(2, far), jnp.float32(3), far, -0.1 * jnp.ones(2), jnp.zeros(6), 5.0).gone
    Array([ True, False], dtype=bool)
    """
    points = ranges.numbers("noted: points", points, (6, "N"))
    potential = ranges.numbers("noted: potential", potential, points.shape[1:])
    centre = ranges.numbers("noted: centre", centre, (6,))
    ranges.numbers("noted: radius", radius, (), least=0, infinite=True)
    d = points - centre[:, None]
    r2, v2 = (d[k] * d[k] + d[k + 1] * d[k + 1] + d[k + 2] * d[k + 2] for k in (0, 3))
    energy = v2 / 2 + potential
    new = ~escapes.gone & (r2 > radius * radius)
    new = new & ((energy > 0) | jnp.logical_not(unbound))
    put = lambda value, old: jnp.where(new, value, old)
    speed, energy = put(jnp.sqrt(v2), escapes.speed), put(energy, escapes.energy)
    return Escapes(escapes.gone | new, put(time, escapes.time), speed, energy)


def halted(tracers: Massless, gone: Array) -> Massless:
    """Massless bodies, of which those that are `gone` [M] are never due again."""
    never = jnp.where(gone, jnp.inf, tracers.dt)
    return replace(tracers, dt=never)
