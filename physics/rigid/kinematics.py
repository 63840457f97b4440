"""Where the links are, how they move, and sums along the tree.

At the doors batch axes lead: `q` [..., Q], `v` [..., N]. Inside, arrays are laid out (link or
degree of freedom, component, ...batch), which is faster than `vmap` where the compiler vectorises
over the last axis; `batch_last` and `batch_first` change the layout, once at each door.
Products of small matrices are sums of products: accelerators round the factors of dot products to 8
bits.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.lax import Precision

from jaxgpu.doors import explained
from jaxgpu.geometry import rotations
from jaxgpu.ranges import numbers

from .tree import Tree, check_tree


class Frames(NamedTuple):
    """Where the links are; batch axes lead at the doors, and come last inside."""

    R: Array  # [..., L, 3, 3] rotation, link to world
    x: Array  # [..., L, 3] origins, m
    S: Array  # [..., N, 6] screw axes, angular part first


@explained
def forward_kinematics(tree: Tree, q: Array) -> Frames:
    """Rotations, origins and screw axes of all links at the coordinates `q` [..., Q].

    Quaternions are normalised here. Differentiable in `q` and in the tree.

    >>> from jaxgpu.physics.rigid import Link, assemble
    >>> arm = assemble([Link(-1), Link(0, position=(0, 0, 1))])
    >>> forward_kinematics(arm, jnp.array([jnp.pi / 2, 0.0])).x[1].round(3)
    Array([0., 0., 1.], dtype=float32)
    """
    R, x, S = frames_of(tree, check_position("forward_kinematics", tree, q))
    return Frames(batch_first(R, 3), batch_first(x, 2), batch_first(S, 2))


def frames_of(tree: Tree, q: Array) -> Frames:
    """The frames, batch axes last, at coordinates [Q, ...] that have been checked."""
    local = _joint_rotations(tree, q)
    R, x = [], []
    for i, (parent, joint, start) in enumerate(zip(tree.parent, tree.joint, tree.starts)):
        if joint == "free":
            R.append(local[i])
            x.append(q[start : start + 3])
            continue
        slide = lift(tree.position[i], q)
        if joint == "prismatic":
            axis = lift(jnp.sum(tree.rotation[i] * tree.axis[i][None], 1), q)
            slide = slide + axis * q[None, start]
        if parent < 0:
            R.append(local[i])
            x.append(jnp.broadcast_to(slide, (3, *q.shape[1:])))
        else:
            R.append(jnp.sum(R[parent][:, :, None] * local[i][None], 1))
            x.append(x[parent] + jnp.sum(R[parent] * slide[None], 1))
    R, x = jnp.stack(R), jnp.stack(x)
    return Frames(R, x, _screws(tree, R, x))


def centred(tree: Tree, q: Array) -> Frames:
    """The frames with the mean of the links' origins as the origin of the world.

    Gravity is uniform, so forces and accelerations of joints are the same, and rounding errors
    do not grow with the distance from the world's origin.
    """
    R, x, _ = frames_of(tree, q)
    x = x - jnp.mean(x, 0, keepdims=True)
    return Frames(R, x, _screws(tree, R, x))


def link_velocities(tree: Tree, frames: Frames, v: Array) -> Array:
    """Angular velocity and linear velocity at the world's origin of each link, [L, 6, ...]."""
    return outward(tree, frames.S * v[:, None])


def project(tree: Tree, frames: Frames, wrench: Array) -> Array:
    """Forces [N, ...] on the degrees of freedom of wrenches on the links [L, 6, ...].

    A wrench is the moment about the world's origin, then the force.
    """
    return jnp.sum(frames.S * inward(tree, wrench), 1)


def outward(tree: Tree, x: Array) -> Array:
    """Sum over the freedoms that move a link: [N, K, ...] to [L, K, ...]."""
    A = jnp.asarray(tree.ancestry, x.dtype)
    return jnp.einsum("lj,j...->l...", A, x, precision=Precision.HIGHEST)


def inward(tree: Tree, x: Array) -> Array:
    """Sum over the links that a freedom moves: [L, K, ...] to [N, K, ...]."""
    A = jnp.asarray(tree.ancestry, x.dtype)
    return jnp.einsum("lj,l...->j...", A, x, precision=Precision.HIGHEST)


def cross(a: Array, b: Array) -> Array:
    """Cross product of [K, 3, ...] along the second axis."""
    (a0, a1, a2), (b0, b1, b2) = (tuple(s[:, i] for i in range(3)) for s in (a, b))
    return jnp.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], 1)


def batch_last(x: Array, components: int = 1) -> Array:
    """An array [...batch, components] of a door, as the kernels take it: [components, ...batch]."""
    return jnp.moveaxis(x, range(-components, 0), range(components)) if x.ndim > components else x


def batch_first(x: Array, components: int = 1) -> Array:
    """An array [components, ...batch] of a kernel as doors give it: [...batch, components]."""
    return jnp.moveaxis(x, range(components), range(-components, 0)) if x.ndim > components else x


def lift(x: Array, like: Array) -> Array:
    """`x` with axes of length one for the batch axes of `like`, an array [rows, ...batch]."""
    return x.reshape(x.shape + (1,) * (like.ndim - 1))


def rows(x: Array, index: np.ndarray) -> Array:
    """Rows `index` of `x`, without a gather where they are all rows in order."""
    return x if np.array_equal(index, np.arange(x.shape[0])) else x[index]


def check_rows(function: str, name: str, x: Any, count: int) -> Array:
    """Real numbers `x` [..., count] of a door, batch axes last: [count, ...].

    Raises:
        ValueError: the last axis has another length, or a number is not finite.
    """
    x = jnp.asarray(numbers(f"{function}: {name}", x))
    if x.ndim < 1 or x.shape[-1] != count:
        raise ValueError(
            f"{function}: {name} has shape {x.shape}; its last axis must be {count} long; "
            "put batch axes first"
        )
    return batch_last(x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(float))


def check_position(function: str, tree: Tree, q: Any) -> Array:
    """Coordinates `q` [..., Q] of a door, batch axes last: [Q, ...].

    Raises:
        ValueError: the last axis is not Q long, a number is not finite, a quaternion is 0.
    """
    check_tree(function, tree)
    q = check_rows(function, "q", q, tree.nq)
    if "free" in tree.joint and not isinstance(q, Tracer):
        for start, joint in zip(tree.starts, tree.joint):
            if joint == "free" and not np.abs(np.asarray(q[start + 3 : start + 7])).max(0).all():
                raise ValueError(
                    f"{function}: q has a quaternion of zeros at row {start + 3}; it must have a "
                    "length; begin from `init`"
                )
    return q


def _joint_rotations(tree: Tree, q: Array) -> Array:
    """Rotation of each link against its parent, [L, 3, 3, ...]: Rodrigues' formula for all."""
    turns = np.array([joint == "revolute" for joint in tree.joint], float)
    k0, k1, k2 = (tree.axis * jnp.asarray(turns[:, None], q.dtype)).T
    zero = jnp.zeros_like(k0)
    K = jnp.stack([zero, -k2, k1, k2, zero, -k0, -k1, k0, zero], 1).reshape(-1, 3, 3)
    along = _product(tree.rotation, K)
    angle = rows(q, np.array(tree.starts))[:, None, None]
    R = lift(tree.rotation, q) + lift(along, q) * jnp.sin(angle)
    R = R + lift(_product(along, K), q) * (1 - jnp.cos(angle))
    for i, (joint, start) in enumerate(zip(tree.joint, tree.starts)):
        if joint == "free":
            entries = rotations.matrix(q[start + 3 : start + 7])
            R = R.at[i].set(jnp.stack([jnp.stack(row) for row in entries]))
    return R


def _screws(tree: Tree, R: Array, x: Array) -> Array:
    axis, turns, fixed = dof_axes(tree)
    link = tree.link_of
    z = jnp.sum(rows(R, link) * lift(axis, x[0])[:, None], 2)
    if fixed.any():  # a free link translates along the axes of the world
        z = jnp.where(lift(jnp.asarray(fixed[:, None]), x[0]), lift(axis, x[0]), z)
    turns = lift(jnp.asarray(turns[:, None], x.dtype), x[0])
    return jnp.concatenate([z * turns, cross(rows(x, link), z) * turns + z * (1 - turns)], 1)


def dof_axes(tree: Tree) -> tuple[Array, np.ndarray, np.ndarray]:
    """Of each freedom: axis [N, 3], whether it is a rotation, whether its axis is the world's."""
    axes, turns, fixed = [], [], []
    for i, joint in enumerate(tree.joint):
        free = joint == "free"
        unit = jnp.asarray(np.tile(np.eye(3), (2, 1)), tree.axis.dtype)
        axes.append(unit if free else tree.axis[i : i + 1])
        turns += [0.0] * 3 + [1.0] * 3 if free else [float(joint == "revolute")]
        fixed += [True] * 3 + [False] * 3 if free else [False]
    return jnp.concatenate(axes), np.array(turns), np.array(fixed)


def _product(a: Array, b: Array) -> Array:
    """Products of the 3 by 3 matrices [L, 3, 3]."""
    return jnp.sum(a[:, :, :, None] * b[:, None], 2)
