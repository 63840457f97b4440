"""Escapes from a cluster: which bodies, when, how fast and with how much energy.

As counted by NBODY6 (Aarseth 2003, Gravitational N-Body Simulations, sect. 9.6): outside a radius
about the density centre, twice the tidal radius in a tide, and unbound if the cluster is isolated.
Escaped bodies are marked but stay in the arrays, so shapes never change. An escaped tracer may be
`halt_tracers`: it keeps its last state and needs no more force evaluations.
"""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import pytree


@pytree
class Escapes:
    """Escapes so far, one entry per body; zeros for bodies that have not escaped.

    >>> none_yet = Escapes(jnp.zeros(2, bool), jnp.zeros(2), jnp.zeros(2), jnp.zeros(2))
    >>> int(none_yet.gone.sum())
    0
    """

    gone: Array  # [N] bool
    time: Array  # [N] time at which it was first outside
    speed: Array  # [N] speed then, relative to the cluster
    energy: Array  # [N] energy then, per unit mass, relative to the cluster


def init_escapes(count: int, like: Array) -> Escapes:
    """Return an empty record of escapes for `count` bodies, in the dtype of `like`."""
    zero = jnp.zeros(count, like.dtype)
    return Escapes(jnp.zeros(count, bool), zero, zero, zero)


@explain_errors
def add_escapes(
    escapes: Escapes,
    time: Array,
    x: Array,
    v: Array,
    potential: Array,
    radius: Array | float,
    *,
    unbound: Array | bool = True,
) -> Escapes:
    """Add the bodies that are outside for the first time to the escapes.

    Args:
        escapes: the escapes so far.
        time: current time.
        x: positions [N, 3] of the bodies relative to the centre of the cluster.
        v: velocities [N, 3] relative to it.
        potential: potential of the cluster at the bodies [N], as from `diagnostics.potential`.
        radius: bodies within it have not escaped.
        unbound: count only bodies of positive energy; False, in a tide, for all outside the radius.

    >>> x, v = jnp.array([[9.0, 0, 0], [1.0, 0, 0]]), jnp.array([[1.0, 0, 0], [1.0, 0, 0]])
    >>> add_escapes(init_escapes(2, x), jnp.float32(3), x, v, -0.1 * jnp.ones(2), 5.0).gone
    Array([ True, False], dtype=bool)
    """
    x = ranges.numbers("add_escapes: x", x, ("N", 3))
    v = ranges.numbers("add_escapes: v", v, x.shape)
    potential = ranges.numbers("add_escapes: potential", potential, x.shape[:1])
    ranges.numbers("add_escapes: radius", radius, (), least=0, infinite=True)
    r2, v2 = (q[:, 0] * q[:, 0] + q[:, 1] * q[:, 1] + q[:, 2] * q[:, 2] for q in (x, v))
    energy = v2 / 2 + potential
    new = ~escapes.gone & (r2 > radius * radius)
    new = new & ((energy > 0) | jnp.logical_not(unbound))
    put = lambda value, old: jnp.where(new, value, old)
    speed, energy = put(jnp.sqrt(v2), escapes.speed), put(energy, escapes.energy)
    return Escapes(escapes.gone | new, put(time, escapes.time), speed, energy)


def halt_tracers[T: Any](tracers: T, gone: Array) -> T:
    """Give the `gone` [M] tracers infinite steps, so that they are never due again."""
    return replace(tracers, dt=jnp.where(gone, jnp.inf, tracers.dt))
