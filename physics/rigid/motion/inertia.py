"""Axes, inertias and velocities as six-vectors about the centre of mass of each tree.

A motion is (angular velocity, velocity of the point at the origin), a force (torque about the
origin, force). The origin of a tree is its centre of mass, as in MuJoCo, which keeps float32 exact
far from the world's origin. The mass matrix and the bias are sums over `moves`, a constant mask of
which dof moves which body, so that no loop runs along the tree.

Composite bodies and Newton-Euler: Featherstone (2008), doi:10.1007/978-1-4899-7560-7.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.geometry import vectors
from jaxgpu.inputs.fields import pytree

from ..models.layout import Layout
from ..models.mechanism import Mechanism
from .poses import Poses, cross, quat_mul, quat_to_mat

HIGHEST = lax.Precision.HIGHEST


@pytree
class Motion:
    """Six-vectors of V dofs and B bodies, about the origins of their trees."""

    origin: Array  # [3, B] m
    inertia: Array  # [10, B]: xx, yy, zz, xy, xz, yz, mass times centre (3), mass
    axes: Array  # [6, V] of the dofs
    rates: Array  # [6, V] time derivatives of the axes
    velocity: Array  # [6, B]

    def jacobian(self, layout: Layout, at: Array, sign: Array) -> tuple[Array, Array]:
        """Return the translational and rotational Jacobians [3, N, V] of points [3, N] on bodies.

        sign: [N, V] 1 where the dof moves the point's body, -1 for another body whose motion is
            subtracted.
        """
        arm = at[:, :, None] - self.origin[:, layout.dof_body][:, None]
        turn, shift = self.axes[:3, None], self.axes[3:, None]
        carried = jnp.stack(vectors.cross(jnp.broadcast_to(turn, arm.shape), arm))
        return sign[None] * (shift + carried), sign[None] * turn

    def dof_forces(
        self, layout: Layout, body: np.ndarray | slice, at: Array, moment: Array, force: Array
    ) -> Array:
        """Return the forces [V] of torques and forces [3, N] at points [3, N] on bodies."""
        about = moment + cross(at - self.origin[:, body], force)
        moves = np.asarray(layout.moves_body[body], force.dtype)
        pushed = jnp.concatenate([about, force])
        gathered = jnp.einsum("nv,kn->kv", moves, pushed, precision=HIGHEST)
        return jnp.sum(self.axes * gathered, 0)


def motion(model: Mechanism, where: Poses, qvel: Array) -> Motion:
    """Return axes, inertias and velocities at given poses."""
    layout, bodies = model.layout, model.bodies
    origin = _tree_origins(layout, bodies.mass, where)
    inertia = _body_inertias(model, where, origin)
    axes = _dof_axes(layout, where, origin)
    swept = axes * qvel[None]
    velocity = _masked_sum("bv,kv->kb", layout.moves_body, swept)
    carried = _masked_sum("wv,kv->kw", layout.carrier_dofs, swept)
    return Motion(
        origin=origin,
        inertia=inertia,
        axes=axes,
        rates=cross_motion(carried, axes),
        velocity=velocity,
    )


def mass_matrix(model: Mechanism, m: Motion) -> Array:
    """Return the joint-space mass matrix [V, V], including armature."""
    layout = model.layout
    composite = _masked_sum("bv,kb->kv", layout.moves_body, m.inertia)
    force = mul_inert_vec(composite, m.axes)
    half = jnp.einsum("ki,kj->ij", m.axes, force, precision=HIGHEST)
    upper = np.asarray(layout.ancestor_dofs.T, half.dtype)  # i before j
    strict = upper - np.eye(layout.nv, dtype=half.dtype)
    full = half * upper + (half * strict).T
    return full + jnp.diag(model.freedoms.armature)


def accelerations(model: Mechanism, m: Motion, qvel: Array, qacc: Array) -> Array:
    """Return body accelerations [6, B] minus gravity, as accelerometers at the origins read."""
    layout, g = model.layout, gravity(model)
    rise = jnp.concatenate([jnp.zeros_like(g), -g])[:, None]
    return (
        _masked_sum("bv,kv->kb", layout.moves_body, m.rates * qvel[None] + m.axes * qacc[None])
        + rise
    )


def bias(model: Mechanism, m: Motion, qvel: Array) -> Array:
    """Return the bias forces [V]: Coriolis, centrifugal and gravitational, `qfrc_bias`."""
    acceleration = accelerations(model, m, qvel, jnp.zeros_like(qvel))
    gathered = _masked_sum("bv,kb->kv", model.layout.moves_body, forces(m, acceleration))
    return jnp.sum(m.axes * gathered, 0)


def forces(m: Motion, acceleration: Array) -> Array:
    """Return the forces [6, B] that give bodies accelerations [6, B] at their velocities."""
    momentum = mul_inert_vec(m.inertia, m.velocity)
    return mul_inert_vec(m.inertia, acceleration) + cross_force(m.velocity, momentum)


def gravity(model: Mechanism) -> Array:
    """Return the gravitational acceleration [3], m/s^2; zero if gravity is disabled."""
    g = model.option.gravity
    return jnp.zeros_like(g) if "gravity" in model.layout.disabled else g


def cross_motion(velocity: Array, a: Array) -> Array:
    """Return the rates of change of motions [6, N] carried along at velocities [6, N]."""
    turn = cross(velocity[:3], a[:3])
    return jnp.concatenate([turn, cross(velocity[:3], a[3:]) + cross(velocity[3:], a[:3])])


def cross_force(velocity: Array, f: Array) -> Array:
    """Return the rates of change of forces or momenta [6, N] carried along at velocities [6, N]."""
    moment = cross(velocity[:3], f[:3]) + cross(velocity[3:], f[3:])
    return jnp.concatenate([moment, cross(velocity[:3], f[3:])])


def mul_inert_vec(inertia: Array, v: Array) -> Array:
    """Return the momenta [6, N] of inertias [10, N] with velocities [6, N]."""
    xx, yy, zz, xy, xz, yz, *rest = inertia
    h, mass = inertia[6:9], rest[3]
    w, u = v[:3], v[3:]
    turn = jnp.stack(
        [
            xx * w[0] + xy * w[1] + xz * w[2],
            xy * w[0] + yy * w[1] + yz * w[2],
            xz * w[0] + yz * w[1] + zz * w[2],
        ]
    )
    return jnp.concatenate([turn + cross(h, u), mass[None] * u - cross(h, w)])


def _tree_origins(layout: Layout, mass: Array, where: Poses) -> Array:
    """Return the centre of mass [3, B] of each body's tree; of its root if it has no mass."""
    root = np.array(layout.body_root)
    tree = np.asarray(layout.is_descendant[:, root].T, mass.dtype)  # [B, B] body j in the tree of i
    whole = jnp.einsum("ij,j->i", tree, mass, precision=HIGHEST)
    heavy = whole > 1e-15
    sums = jnp.einsum("ij,kj->ki", tree, mass[None] * where.centre, precision=HIGHEST)
    return jnp.where(heavy[None], sums / jnp.where(heavy, whole, 1)[None], where.centre[:, root])


def _body_inertias(model: Mechanism, where: Poses, origin: Array) -> Array:
    """Return the inertias [10, B] about the origins, in world axes."""
    bodies = model.bodies
    own = quat_to_mat(quat_mul(where.quat, bodies.iquat.T))  # principal axes are columns
    scaled = own * bodies.inertia.T[None]
    rotated_entry = lambda i, j: jnp.sum(scaled[i] * own[j], 0)
    c, mass = where.centre - origin, bodies.mass
    square = jnp.sum(c * c, 0)
    shifted_entry = lambda i, j: (
        rotated_entry(i, j) + mass * ((square if i == j else 0) - c[i] * c[j])
    )
    entries = [shifted_entry(*ij) for ij in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return jnp.stack([*entries, *(mass[None] * c), mass])


def _dof_axes(layout: Layout, where: Poses, origin: Array) -> Array:
    """Return the axes [6, V] of hinges, slides, balls and free joints, in the order of the dofs."""
    parts: list[Array] = []
    for kind in ("hinge", "slide", "ball", "free"):
        own = layout.kinds(kind)
        if not own.size:
            continue
        body = np.array(layout.joint_body)[own]
        if kind == "slide":
            axis = where.axis[:, own]
            parts.append(jnp.concatenate([jnp.zeros_like(axis), axis]))
            continue
        arm = origin[:, body] - where.anchor[:, own]
        if kind == "hinge":
            axis = where.axis[:, own]
            parts.append(jnp.concatenate([axis, cross(axis, arm)]))
            continue
        frame = quat_to_mat(where.quat[:, body])  # [3, 3, n], columns are the body's axes
        if kind == "free":
            arm = origin[:, body] - where.pos[:, body]
            for k in range(3):
                shift = jnp.zeros((6, own.size), arm.dtype).at[3 + k].set(1)
                parts.append(shift)
        parts += [jnp.concatenate([frame[:, k], cross(frame[:, k], arm)]) for k in range(3)]
    return jnp.concatenate(parts, 1)[:, _dof_order(layout)]


def _dof_order(layout: Layout) -> np.ndarray:
    """Return the index [V] of each dof among the axes sorted by joint type."""
    at, place = 0, np.zeros(layout.nv, int)
    for kind, width in (("hinge", 1), ("slide", 1), ("ball", 3), ("free", 6)):
        own = layout.kinds(kind)
        for k in range(width):
            place[layout.dofadr[own] + k] = at + np.arange(own.size)
            at += own.size
    return place


def _masked_sum(equation: str, chosen: np.ndarray, a: Array) -> Array:
    """Sum over the entries that a constant mask of zeros and ones selects."""
    return jnp.einsum(equation, np.asarray(chosen, a.dtype), a, precision=HIGHEST)
