"""Which bodies have left a cluster, when, how fast and with how much energy.

As NBODY6 counts them (Aarseth 2003, Gravitational N-Body Simulations, sect. 9.6): beyond a radius
about the density centre, twice the tidal one in a tide, and unbound where the cluster is alone.
Bodies are marked and stay where they are, so shapes never change. A tracer that has left may be
`halted`: it keeps its last state and costs no force any more.
"""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.doors import explained
from jaxgpu.inputs.fields import pytree


@pytree
class Escapes:
    """One entry a body; zeros for those that are still there.

    >>> none_yet = Escapes(jnp.zeros(2, bool), jnp.zeros(2), jnp.zeros(2), jnp.zeros(2))
    >>> int(none_yet.gone.sum())
    0
    """

    gone: Array  # [N] bool
    time: Array  # [N] when it was first seen outside
    speed: Array  # [N] then, relative to the cluster
    energy: Array  # [N] then, per unit mass, relative to the cluster


def none_yet(count: int, like: Array) -> Escapes:
    """No escapes yet among `count` bodies, in the dtype of `like`."""
    zero = jnp.zeros(count, like.dtype)
    return Escapes(jnp.zeros(count, bool), zero, zero, zero)


@explained
def noted(
    escapes: Escapes,
    time: Array,
    x: Array,
    v: Array,
    potential: Array,
    radius: Array | float,
    *,
    unbound: Array | bool = True,
) -> Escapes:
    """The escapes, those added that are seen outside for the first time.

    Args:
        escapes: those so far.
        time: now.
        x: positions [N, 3] of the bodies relative to the centre of the cluster.
        v: velocities [N, 3] relative to it.
        potential: of the cluster at the bodies [N], as `diagnostics.potential` gives it.
        radius: bodies within it have not escaped.
        unbound: count only those of positive energy; False for all beyond the radius, in a tide.

    >>> x, v = jnp.array([[9.0, 0, 0], [1.0, 0, 0]]), jnp.array([[1.0, 0, 0], [1.0, 0, 0]])
    >>> noted(none_yet(2, x), jnp.float32(3), x, v, -0.1 * jnp.ones(2), 5.0).gone
    Array([ True, False], dtype=bool)
    """
    x = ranges.numbers("noted: x", x, ("N", 3))
    v = ranges.numbers("noted: v", v, x.shape)
    potential = ranges.numbers("noted: potential", potential, x.shape[:1])
    ranges.numbers("noted: radius", radius, (), least=0, infinite=True)
    r2, v2 = (q[:, 0] * q[:, 0] + q[:, 1] * q[:, 1] + q[:, 2] * q[:, 2] for q in (x, v))
    energy = v2 / 2 + potential
    new = ~escapes.gone & (r2 > radius * radius)
    new = new & ((energy > 0) | jnp.logical_not(unbound))
    put = lambda value, old: jnp.where(new, value, old)
    speed, energy = put(jnp.sqrt(v2), escapes.speed), put(energy, escapes.energy)
    return Escapes(escapes.gone | new, put(time, escapes.time), speed, energy)


def halted[T: Any](tracers: T, gone: Array) -> T:
    """The tracers, those `gone` [M] with infinite steps, so that they are never due again."""
    return replace(tracers, dt=jnp.where(gone, jnp.inf, tracers.dt))
