"""The slots that hold regularised pairs, and what their stars weigh meanwhile."""

import jax.numpy as jnp
from jax import Array

from jaxgpu.physics.nbody import regular
from jaxgpu.physics.nbody.blocks import Hermite
from jaxgpu.pytree import pytree


@pytree
class Slots:
    """Pairs, each at a time of its own, between the last step and the next."""

    first: Array  # [S] int32: star whose place the centre of mass takes; N where the slot is free
    second: Array  # [S] int32: star that has no mass meanwhile
    orbit: regular.Orbit  # batch [S]: the second about the first
    t: Array  # [S] time of the orbit, as a part of the interval
    ready: Array  # [S] when its next step ends; infinite where the slot is free
    slow: Array  # [S] slow-down, at least 1
    lost: Array  # [S] time by which the slowed orbit is late
    tide: Array  # [S] perturbation at the apocentre over the attraction
    turn: Array  # [S] orbits since the slow-down was chosen
    leave: Array  # [S] bool: is to be dissolved


def empty(spec: Hermite) -> Slots:
    """All slots free."""
    s, n, dtype = spec.pairing.slots, spec.m.shape[0], spec.m.dtype
    zero, nobody = jnp.zeros(s, dtype), jnp.full(s, n, jnp.int32)
    x = jnp.zeros((3, s), dtype)
    anything = regular.regularised(x.at[0].set(1), x.at[1].set(1), zero + 1)
    never = zero + jnp.inf
    no = jnp.zeros(s, bool)
    return Slots(nobody, nobody, anything, zero, never, zero + 1, zero, zero, zero, no)


def weights(spec: Hermite, slots: Slots) -> Array:
    """The mass [N] that each place of the population stands for."""
    one, two = masses(spec, slots)
    m = spec.m.at[slots.first].set(one + two, mode="drop")
    return m.at[slots.second].set(0, mode="drop")


def masses(spec: Hermite, slots: Slots) -> Array:
    """Of the members [2, S]; 0 where the slot is free."""
    get = lambda index: jnp.take(spec.m, index, mode="fill", fill_value=0)
    return jnp.stack([get(slots.first), get(slots.second)])


def near(spec: Hermite, slots: Slots) -> Array:
    """[S] whether a pair is perturbed enough to be seen as two."""
    return (slots.first < spec.m.shape[0]) & (slots.slow == 1) & (slots.tide > spec.pairing.weak)


def depth(spec: Hermite) -> Array:
    """Energy over the reduced mass, negative, of the widest pair that is formed.

    That of two mean stars with the semi-major axis `close`; of heavier ones it is longer in
    proportion to their mass, for it is the speed of an orbit that tells whether a pair is hard.
    """
    return jnp.mean(spec.m) / spec.pairing.close


def extent(spec: Hermite, orbit: regular.Orbit) -> Array:
    """The size [...] at which a pair feels a tide: its apocentre, or its distance if too wide."""
    wide = orbit.h > -depth(spec) / 2
    return jnp.where(wide, regular.distance(orbit), regular.apocentre(orbit))
