"""Bolts and nuts with the ISO metric thread, by a distance that is invariant under screw motions.

The profile is that of ISO 68-1: with the diameter d and the pitch P a triangle of 60 degrees, cut
P/8 wide at the crest and P/4 wide at the root, so that

    pitch diameter  d2 = d - 0.649519 P,      minor diameter  d1 = d - 1.082532 P.

At radius r, angle t and height z the distance is that in the half plane (r, v) from the crest, the
flank and the root, where v is the axial distance from the nearest crest, z - P t / (2 pi) wrapped
to one pitch. It measures the thread across the axis, not across the helix. At the lead angles of
these threads, some 3 degrees, the two differ by micrometres. A thread is right-handed.
"""

import math

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import number, pytree

from .vectors import Vec, length

TRIANGLE_HEIGHT = math.sqrt(3) / 2  # height of the sharp triangle, in pitches


@explain_errors
def pitch_diameter(diameter: Array | float, pitch: Array | float) -> Array | float:
    """Return the diameter d2 at which ridge and groove are equally wide, m.

    >>> round(pitch_diameter(0.008, 0.00125), 6)
    0.007188
    """
    return diameter - 0.75 * TRIANGLE_HEIGHT * pitch


@explain_errors
def minor_diameter(diameter: Array | float, pitch: Array | float) -> Array | float:
    """Return the diameter d1 at the root of the thread, m.

    >>> round(minor_diameter(0.008, 0.00125), 6)
    0.006647
    """
    return diameter - 1.25 * TRIANGLE_HEIGHT * pitch


@pytree
class Bolt:
    """A threaded rod with its center at the origin and its axis along z.

    >>> bolt = Bolt(0.008, 0.00125, 0.02)
    >>> round(float(bolt.distance(tuple(jnp.array([0.005, 0.0, 0.0])))), 6)  # from a crest
    0.001
    """

    diameter: Array | float = number(above=0, unit="m", one=True)  # [] d, at the crests
    pitch: Array | float = number(above=0, unit="m", one=True)  # [] P, axial distance per turn
    half: Array | float = number(above=0, unit="m", one=True)  # [] half length

    def distance(self, x: Vec) -> Array:
        """Return the signed distance from the surface, m; a lower bound beyond the end edges."""
        return jnp.maximum(thread_distance(x, self.diameter, self.pitch), jnp.abs(x[2]) - self.half)


@pytree
class Nut:
    """A hexagonal nut with its center at the origin and its axis along z; two flats face +y and -y.

    >>> nut = Nut(0.008, 0.00125, 0.0034, 0.0065)
    >>> round(float(nut.distance(tuple(jnp.array([0.0, 0.0075, 0.0])))), 6)
    0.001
    """

    diameter: Array | float = number(above=0, unit="m", one=True)  # [] d of its thread, at the root
    pitch: Array | float = number(above=0, unit="m", one=True)  # [] P, axial distance per turn
    half: Array | float = number(above=0, unit="m", one=True)  # [] half height
    flat: Array | float = number(above=0, unit="m", one=True)  # [] distance from the axis to a flat

    def distance(self, x: Vec) -> Array:
        """Return the signed distance from the surface, m; a lower bound at the edges."""
        across = [
            jnp.abs(x[0] * math.cos(a) + x[1] * math.sin(a)) - self.flat
            for a in (math.pi / 6, math.pi / 2, 5 * math.pi / 6)
        ]
        outside = jnp.maximum(jnp.maximum(across[0], across[1]), across[2])
        outside = jnp.maximum(outside, jnp.abs(x[2]) - self.half)
        return jnp.maximum(outside, -thread_distance(x, self.diameter, self.pitch))


@explain_errors
def thread_distance(x: Vec, diameter: Array | float, pitch: Array | float) -> Array:
    """Return the signed distance from an infinite thread's surface, m, negative in the ridge.

    Args:
        x: coordinates, 3 arrays, m; the axis of the thread is z.
        diameter: d, m.
        pitch: P, m.

    >>> a, b = jnp.array([0.0039, 0.0, 0.0001]), jnp.array([0.0, 0.0039, 0.0001 + 0.00125 / 4])
    >>> move = [float(thread_distance(tuple(p), 0.008, 0.00125)) for p in (a, b)]
    >>> abs(move[0] - move[1]) < 1e-9  # a quarter of a turn goes a quarter of a pitch
    True
    """
    out = length(x[:2])
    on_axis = out == 0  # where the angle is not differentiable
    angle = jnp.arctan2(jnp.where(on_axis, 0, x[1]), jnp.where(on_axis, 1, x[0]))
    along = x[2] - pitch * angle / (2 * np.pi)
    v = jnp.abs(along - pitch * jnp.round(along / pitch))
    crest, root = 0.5 * diameter, 0.5 * minor_diameter(diameter, pitch)
    flank = 0.5 * pitch_diameter(diameter, pitch) + math.sqrt(3) * (0.25 * pitch - v)
    surface = jnp.clip(flank, root, crest)
    from_crest = length((out - crest, jnp.maximum(v - pitch / 16, 0)))
    from_root = length((out - root, jnp.maximum(3 * pitch / 8 - v, 0)))
    rise, run = crest - root, 5 * pitch / 16
    share = ((crest - out) * rise + (v - pitch / 16) * run) / (rise * rise + run * run)
    share = jnp.clip(share, 0, 1)
    from_flank = length((out - crest + share * rise, v - pitch / 16 - share * run))
    nearest = jnp.minimum(jnp.minimum(from_crest, from_root), from_flank)
    return jnp.where(out < surface, -nearest, nearest)
