"""Rigid-body dynamics in the world frame, driven by one ancestor matrix.

Velocities, accelerations and inertias are sums along the tree, so with A[l, j] = 1 where degree of
freedom j moves link l, everything but the chain of rotations is a masked sum over whole arrays:
velocity of every link A (S v), force on every joint S . (A^T f), composite inertias A^T I. The
joints' screw axes S are (z, x cross z) for a rotation about z through x, (0, z) for a translation.
The algebra of motions and forces is that of Featherstone (2008), Rigid Body Dynamics Algorithms,
doi:10.1007/978-1-4899-7560-7, chapters 2, 5 and 6; his recursions are replaced by A.

Batch axes lead at the doors and come last inside: see `kinematics`. A call costs O(N^2)
operations and O(N^3) for the factorisation, about 6 kflop for a 7-joint arm.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.doors import explained

from .kinematics import (
    Frames,
    batch_first,
    centred,
    check_position,
    check_rows,
    cross,
    dof_axes,
    inward,
    lift,
    outward,
    project,
    rows,
)
from .tree import Tree


@explained
def inverse_dynamics(tree: Tree, q: Array, v: Array, a: Array) -> Array:
    """Forces [..., N] that give the accelerations `a` at `q`, `v`: M(q) a + bias(q, v).

    Armature, damping and springs are not in it; gravity is. N m or N.

    >>> from jaxgpu.physics.rigid import Link, assemble
    >>> lift = assemble([Link(-1, "prismatic", mass=2.0)])
    >>> inverse_dynamics(lift, jnp.zeros(1), jnp.zeros(1), jnp.ones(1)).round(1)  # 2 (9.81 + 1) N
    Array([21.6], dtype=float32)
    """
    q = check_position("inverse_dynamics", tree, q)
    v, a = (check_rows("inverse_dynamics", n, x, tree.nv) for n, x in (("v", v), ("a", a)))
    return batch_first(_inverse(tree, centred(tree, q), v, a))


@explained
def mass_matrix(tree: Tree, q: Array) -> Array:
    """The mass matrix M(q) [..., N, N], symmetric positive definite; kg m^2, kg m or kg.

    Armature is in it, damping and springs are not.

    >>> from jaxgpu.physics.rigid import Link, assemble
    >>> lift = assemble([Link(-1, "prismatic", mass=2.0)])
    >>> mass_matrix(lift, jnp.zeros(1))
    Array([[2.]], dtype=float32)
    """
    q = check_position("mass_matrix", tree, q)
    lower = _mass(tree, centred(tree, q))
    off_diagonal = lift(jnp.asarray(1 - np.eye(tree.nv), q.dtype), q)
    return batch_first(lower + jnp.swapaxes(lower * off_diagonal, 0, 1), 2)


@explained
def forward_dynamics(tree: Tree, q: Array, v: Array, force: Array, implicit: Array) -> Array:
    """Accelerations [..., N]: (M(q) + diag(implicit)) a = force - bias(q, v).

    Args:
        tree: the mechanism.
        q: coordinates [..., Q].
        v: velocities [..., N].
        force: on the degrees of freedom [..., N], N m or N; springs and damping are the caller's.
        implicit: added to the diagonal [..., N]: what an implicit integrator takes of the forces.

    Differentiable in everything. The derivative is that of the equation, not of the factorisation:
    (M + D) da = dforce - a dD - d(inverse_dynamics)(q, v) at fixed a, so it costs one more solve.

    >>> from jaxgpu.physics.rigid import Link, assemble
    >>> lift = assemble([Link(-1, "prismatic", mass=2.0)])
    >>> rest = jnp.zeros(1)
    >>> hanging = forward_dynamics(lift, rest, rest, force=jnp.array([2 * 9.81]), implicit=rest)
    >>> bool(jnp.abs(hanging)[0] < 1e-5)
    True
    """
    name = "forward_dynamics"
    q, v = check_position(name, tree, q), check_rows(name, "v", v, tree.nv)
    force = check_rows(name, "force", force, tree.nv)
    implicit = check_rows(name, "implicit", implicit, tree.nv)
    return batch_first(accelerations(tree, q, v, force, implicit))


@jax.custom_jvp
def accelerations(tree: Tree, q: Array, v: Array, force: Array, implicit: Array) -> Array:
    """`forward_dynamics` of what has been checked, batch axes last: [N, ...]."""
    return _forward(tree, q, v, force, implicit)[0]


@accelerations.defjvp
def _forward_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    tree, q, v, force, implicit = primals
    dtree, dq, dv, dforce, dimplicit = tangents
    a, factor = _forward(*primals)

    def needed(tree: Tree, q: Array, v: Array) -> Array:
        return _inverse(tree, centred(tree, q), v, a) + lift(tree.armature, q) * a

    change = jax.jvp(needed, (tree, q, v), (dtree, dq, dv))[1]
    return a, _solve(factor, dforce - a * dimplicit - change)


def _forward(
    tree: Tree, q: Array, v: Array, force: Array, implicit: Array
) -> tuple[Array, tuple[list, list]]:
    frames = centred(tree, q)
    bias = _inverse(tree, frames, v, jnp.zeros_like(v))
    factor = _factor(_mass(tree, frames), implicit)
    return _solve(factor, force - bias), factor


def _inverse(tree: Tree, frames: Frames, v: Array, a: Array) -> Array:
    R, x, S = frames
    V = outward(tree, S * v[:, None])
    carrier = rows(V, tree.link_of)  # an axis of its own motion is not changed by it
    if "free" in tree.joint:  # but the world's axes are not carried at all
        moving = jnp.asarray(1.0 - dof_axes(tree)[2][:, None], v.dtype)
        carrier = carrier * lift(moving, V[0])
    w, u = carrier[:, :3], carrier[:, 3:]
    S_dot = jnp.concatenate([cross(w, S[:, :3]), cross(w, S[:, 3:]) + cross(u, S[:, :3])], 1)
    A = outward(tree, S * a[:, None] + S_dot * v[:, None])

    w, alpha = V[:, :3], A[:, :3]
    c, I = _centres(tree, R, x)
    v_c = V[:, 3:] + cross(w, c)
    a_c = A[:, 3:] + cross(alpha, c) + cross(w, v_c) - lift(tree.gravity, v)[None]
    F = lift(tree.mass, v)[:, None] * a_c
    moment = jnp.sum(I * alpha[:, None], 2) + cross(w, jnp.sum(I * w[:, None], 2)) + cross(c, F)
    return project(tree, frames, jnp.concatenate([moment, F], 1))


def _mass(tree: Tree, frames: Frames) -> Array:
    """The lower triangle of the mass matrix, zeros above."""
    R, x, S = frames
    c, I = _centres(tree, R, x)
    m = jnp.broadcast_to(lift(tree.mass, x[0])[:, None], (*c.shape[:1], 1, *c.shape[2:]))
    eye = lift(jnp.eye(3, dtype=c.dtype), c[0])[None]
    about_origin = m[:, None] * (
        eye * jnp.sum(c * c, 1)[:, None, None] - c[:, :, None] * c[:, None]
    )
    inertia = (I + about_origin).reshape(-1, 9, *c.shape[2:])
    whole = inward(tree, jnp.concatenate([m, m * c, inertia], 1))
    m, mc, I = whole[:, :1], whole[:, 1:4], whole[:, 4:].reshape(-1, 3, 3, *c.shape[2:])
    z, u = S[:, :3], S[:, 3:]
    momentum = jnp.concatenate([jnp.sum(I * z[:, None], 2) + cross(mc, u), m * u + cross(z, mc)], 1)
    related = np.tril(tree.ancestry[tree.link_of])
    M = jnp.sum(momentum[:, None] * S[None], 2) * lift(jnp.asarray(related, c.dtype), c[0])
    return M + lift(jnp.diag(tree.armature), c[0])


def _centres(tree: Tree, R: Array, x: Array) -> tuple[Array, Array]:
    """Centres of mass [L, 3, ...] and inertias about them [L, 3, 3, ...], in the world's axes."""
    c = x + jnp.sum(R * lift(tree.com, x[0])[:, None], 2)
    RI = jnp.sum(R[:, :, :, None] * lift(tree.inertia, x[0])[:, None], 2)
    return c, jnp.sum(RI[:, :, None] * R[:, None], 3)


def factored_mass(tree: Tree, q: Array) -> tuple[list, list, Array]:
    """M(q) = L^T D L: the rows of L left of its diagonal [k, ...], and D [...], by freedom.

    The last is the rounding of the largest diagonal, which is added to all: a freedom whose D is
    not above twice of it has no inertia.
    """
    M = _mass(tree, centred(tree, q))
    rounding = jnp.finfo(M.dtype).eps * jnp.max(jnp.stack([M[k, k] for k in range(len(M))]), 0)
    return *_factor(M, jnp.broadcast_to(rounding, M[0].shape)), rounding


def _factor(M: Array, implicit: Array) -> tuple[list, list]:
    """L^T D L of M + diag(implicit), from the leaves to the root: no fill-in on a tree."""
    rows, pivots = [], []
    for k in range(M.shape[0] - 1, -1, -1):
        d = M[k, k] + implicit[k]
        row = M[k, :k] / d[None]
        M = M[:k, :k] - row[:, None] * M[None, k, :k]
        rows.append(row)
        pivots.append(d)
    return rows[::-1], pivots[::-1]


def _solve(factor: tuple[list, list], b: Array) -> Array:
    rows, pivots = factor
    tops = []
    for k in range(len(rows) - 1, -1, -1):
        tops.append(b[k])
        b = b[:k] - rows[k] * b[None, k]
    x: list[Array] = []
    for row, d, top in zip(rows, pivots, tops[::-1]):
        x.append(top / d - (jnp.sum(row * jnp.stack(x), 0) if x else 0.0))
    return jnp.stack(x)
