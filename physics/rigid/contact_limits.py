"""The stiffest springs and dashpots of a contact that a step resolves.

A force held over a step h follows a spring k on the mass 1/w only while x = h^2 k w is small: at 4
it makes energy without bound, and below, since contact begins and ends between two steps, up to
x / 4 of the energy of a bounce. So no contact here exceeds x = 1/2, and each has a dashpot of
h k sqrt(x) / 6, whose loss, x / 2 of the energy of a bounce, outweighs that gain. It vanishes with
the step, so what is resolved is not changed; a body too light for its spring, below 2 h^2 k, rests
at the depth 2 g h^2 in place of m g / k.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.precision import smallest

from .kinematics import Frames, cross
from .mobility import mobility
from .tree import Tree

RESOLVED = 0.5  # the largest h^2 k w, and h b w of a dashpot b


def inverse_masses(
    tree: Tree,
    q: Array,
    frames: Frames,
    links: tuple[int, ...],
    point: Array,
    normal: Array,
    near: Array,
) -> tuple[Array, Array]:
    """Bounds of the inverse mass w, 1/kg, at each contact, along its normal and across, [K, ...].

    A bound is the sum over a row of J M^-1 J^T, J being all directions of all contacts that are
    `near`, so that contacts on one body together stay as resolved as one alone.
    """
    count, batch = len(links), (1,) * (q.ndim - 1)
    directions = _basis(normal).reshape(3 * count, 3, *normal.shape[2:])
    wrench = jnp.concatenate([cross(jnp.repeat(point, 3, 0), directions), directions], 1)
    moved_by = jnp.asarray(np.repeat(tree.ancestry[np.array(links)], 3, 0), q.dtype)
    J = jnp.sum(frames.S[None] * wrench[:, None], 2) * moved_by.reshape(*moved_by.shape, *batch)
    alone = np.eye(3 * count, dtype=bool).reshape(3 * count, 3 * count, *batch)
    counted = jnp.repeat(near, 3, 0)[None] | alone
    A = jnp.where(counted, jnp.abs(mobility(tree, q, J)), 0.0)
    rows = jnp.sum(A, 1).reshape(count, 3, *near.shape[1:])
    return rows[:, 0], jnp.max(rows[:, 1:], 1)


def spring(k: Any, h: Any, w: Array) -> tuple[Array, Array]:
    """The stiffness, lowered to what the step resolves, and its dashpot over it, a time in s."""
    least = smallest(w.dtype) ** 0.25
    k = jnp.minimum(k, RESOLVED / (h * h * jnp.maximum(w, least)))
    x = jnp.maximum(h * h * k * w, least)
    return k, h * jnp.sqrt(x) / 6


def dashpot(b: Any, h: Any, w: Array) -> Array:
    """The damping, lowered to what the step resolves."""
    return jnp.minimum(b, RESOLVED / (h * jnp.maximum(w, smallest(w.dtype) ** 0.25)))


def dissipation(c: Any, h: Any, w: Array, force: Array) -> Array:
    """Hunt and Crossley's c, lowered until the dissipative part only stops what approaches."""
    push = h * w * force
    return jnp.where(push * c > 1, 1 / jnp.where(push * c > 1, push, 1.0), c)


def _basis(normal: Array) -> Array:
    """The normal and two tangents, orthonormal, [K, 3, 3, ...] (Duff et al. 2017, JCGT 6)."""
    x, y, z = normal[:, 0], normal[:, 1], normal[:, 2]
    sign = jnp.where(z < 0, -1.0, jnp.ones_like(z))
    a = -1 / (sign + z)
    b = x * y * a
    first = jnp.stack([1 + sign * x * x * a, sign * b, -sign * x], 1)
    second = jnp.stack([b, sign + y * y * a, -y], 1)
    return jnp.stack([normal, first, second], 1)
