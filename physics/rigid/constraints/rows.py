"""Constraint rows of limits, friction loss and equalities of joints, tendons and bodies."""

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rotations

from ..models.mechanism import Mechanism
from ..motion.forces import coordinates, tendon_lengths
from ..motion.inertia import HIGHEST, Motion
from ..motion.poses import Poses, quat_mul
from . import impedance
from .problem import DenseRows, DofRows

_CONJUGATE = np.array([[1.0], [-1], [-1], [-1]])


def dof_rows(model: Mechanism, qpos: Array, qvel: Array) -> DofRows:
    """Return rows of joint friction loss, and of hinge and slide limits, two rows each."""
    layout, free = model.layout, model.freedoms
    parts = []
    rub = np.array(layout.rubbing, int)
    if rub.size and "frictionloss" not in layout.disabled:
        loss = free.frictionloss[rub]
        row = _friction_loss_rows(
            model, qvel[rub], free.invweight[rub], free.solref[rub], free.solimp[rub]
        )
        parts.append((rub, jnp.ones_like(loss), *row, -loss, loss))
    ends = [
        joint
        for joint, kind in enumerate(layout.joint_kind)
        if layout.joint_limited[joint] and kind in ("hinge", "slide")
    ]
    if ends and "limit" not in layout.disabled:
        parts.append(_joint_limits(model, np.array(ends), qpos, qvel))
    if not parts:
        return empty_dof_rows(qvel)
    at, *rest = zip(*parts)
    sign, aref, D, low, high = (jnp.concatenate(x) for x in rest)
    places = tuple(int(i) for i in np.concatenate(at))
    losses = len(places) - 2 * len(ends) * ("limit" not in layout.disabled)
    return DofRows(at=places, losses=losses, sign=sign, aref=aref, D=D, low=low, high=high)


def _friction_loss_rows(
    model: Mechanism, speed: Array, inverse: Array, solref: Array, solimp: Array
) -> tuple[Array, Array]:
    """Return aref and D of friction-loss rows."""
    _, b = impedance.spring(model, solref, solimp)
    return -b * speed, impedance.weight(solimp, jnp.zeros_like(speed), inverse)


def _limit_rows(
    model: Mechanism,
    dist: Array,
    margin: Array,
    speed: Array,
    parameters: tuple[Array, Array, Array],
) -> tuple[Array, Array]:
    """Return aref and D of rows that are active where dist < margin."""
    inverse, solref, solimp = parameters
    k, b = impedance.spring(model, solref, solimp)
    r = dist - margin
    aref = -b * speed - k * impedance.impedance(solimp, r) * r
    return aref, jnp.where(r < 0, impedance.weight(solimp, r, inverse), 0)


def _joint_limits(model: Mechanism, joint: np.ndarray, qpos: Array, qvel: Array) -> tuple:
    """Return the rows of the lower and upper limits of joints."""
    layout, joints = model.layout, model.joints
    at = layout.dofadr[joint]
    duplicate = lambda x: jnp.concatenate([x, x])
    q, (low, high) = qpos[layout.qposadr[joint]], joints.range[joint].T
    sign = np.repeat([1.0, -1.0], len(joint)).astype(qpos.dtype)
    dist = jnp.concatenate([q - low, high - q])
    parameters = (
        duplicate(model.freedoms.invweight[at]),
        duplicate(joints.solref[joint]),
        duplicate(joints.solimp[joint]),
    )
    row = _limit_rows(
        model,
        dist,
        duplicate(joints.margin[joint]),
        jnp.asarray(sign) * duplicate(qvel[at]),
        parameters,
    )
    zero = jnp.zeros_like(dist)
    return np.concatenate([at, at]), jnp.asarray(sign), *row, zero, zero + jnp.inf


def dense_rows(model: Mechanism, where: Poses, m: Motion, qpos: Array, qvel: Array) -> DenseRows:
    """Return rows of equalities, friction loss and limits of tendons, and limits of balls."""
    layout = model.layout
    parts = []
    if "equality" not in layout.disabled:
        for i, kind in enumerate(layout.equality_kind):
            if layout.equality_active[i]:
                parts.append(_equality_rows(model, i, kind, where, m, qpos, qvel))
    if layout.tendon_rubbing and "frictionloss" not in layout.disabled:
        parts.append(_tendon_friction_loss(model, qvel))
    if "limit" not in layout.disabled:
        if layout.tendon_limited:
            parts.append(_tendon_limits(model, qpos, qvel))
        for joint, kind in enumerate(layout.joint_kind):
            if kind == "ball" and layout.joint_limited[joint]:
                parts.append(_ball_limit(model, joint, qpos, qvel))
    if not parts:
        return empty_dense_rows(qvel)
    J, aref, D, low, high = (jnp.concatenate(x) for x in zip(*parts))
    return DenseRows(J=J, aref=aref, D=D, low=low, high=high)


def empty_dof_rows(like: Array) -> DofRows:
    """Return an empty set of `DofRows` rows."""
    none = jnp.zeros(0, like.dtype)
    return DofRows(at=(), losses=0, sign=none, aref=none, D=none, low=none, high=none)


def empty_dense_rows(like: Array) -> DenseRows:
    """Return an empty set of `DenseRows` rows, over as many dofs as `like` has."""
    none = jnp.zeros(0, like.dtype)
    J = jnp.zeros((0, *like.shape), like.dtype)
    return DenseRows(J=J, aref=none, D=none, low=none, high=none)


def _apply_jacobian(J: Array, v: Array) -> Array:
    return jnp.einsum("nv,v->n", J, v, precision=HIGHEST)


def _tendon_friction_loss(model: Mechanism, qvel: Array) -> tuple[Array, ...]:
    own, t = np.array(model.layout.tendon_rubbing), model.tendons
    J, loss = t.weight[own], t.frictionloss[own]
    parameters = t.invweight[own], t.solref_friction[own], t.solimp_friction[own]
    return J, *_friction_loss_rows(model, _apply_jacobian(J, qvel), *parameters), -loss, loss


def _tendon_limits(model: Mechanism, qpos: Array, qvel: Array) -> tuple[Array, ...]:
    own, t = np.array(model.layout.tendon_limited), model.tendons
    duplicate = lambda x: jnp.concatenate([x, x])
    length, (low, high) = tendon_lengths(model, qpos)[own], t.range[own].T
    J = jnp.concatenate([t.weight[own], -t.weight[own]])
    dist = jnp.concatenate([length - low, high - length])
    parameters = (
        duplicate(t.invweight[own]),
        duplicate(t.solref_limit[own]),
        duplicate(t.solimp_limit[own]),
    )
    row = _limit_rows(model, dist, duplicate(t.margin[own]), _apply_jacobian(J, qvel), parameters)
    zero = jnp.zeros_like(dist)
    return J, *row, zero, zero + jnp.inf


def _ball_limit(model: Mechanism, joint: int, qpos: Array, qvel: Array) -> tuple[Array, ...]:
    """Return the row that limits the angle of a ball joint from its reference."""
    layout, joints = model.layout, model.joints
    at, to = int(layout.qposadr[joint]), int(layout.dofadr[joint])
    w, *u = rotations.unit(qpos[at : at + 4])
    vector = jnp.stack(u)
    square = jnp.sum(vector * vector)
    turning = square > 1e-30
    length = jnp.sqrt(jnp.where(turning, square, 1))
    angle = jnp.where(turning, 2 * jnp.arctan2(length, w), 0)
    flip = jnp.where(angle > np.pi, -1, 1)
    angle = jnp.where(angle > np.pi, 2 * np.pi - angle, angle)
    axis = jnp.where(turning, flip * vector / length, 0)
    J = jnp.zeros((1, layout.nv), qpos.dtype).at[0, to : to + 3].set(-axis)
    dist = (jnp.max(joints.range[joint]) - angle)[None]
    one = slice(joint, joint + 1)
    parameters = model.freedoms.invweight[to : to + 1], joints.solref[one], joints.solimp[one]
    row = _limit_rows(model, dist, joints.margin[one], _apply_jacobian(J, qvel), parameters)
    zero = jnp.zeros_like(dist)
    return J, *row, zero, zero + jnp.inf


def _equality_rows(
    model: Mechanism, i: int, kind: str, where: Poses, m: Motion, qpos: Array, qvel: Array
) -> tuple[Array, ...]:
    """Return the rows of one equality: three, six or one."""
    e = model.equalities
    if kind in ("joint", "tendon"):
        J, pos, inverse = _polynomial_row(model, i, kind, qpos)
        curved, r = jnp.zeros_like(pos), pos
    else:
        J, pos, inverse, curved = _connect_rows(model, i, kind, where, m, qvel)
        r = jnp.full_like(pos, jnp.sqrt(jnp.maximum(jnp.sum(pos * pos), 1e-30)))
    solimp = e.solimp[i]
    k, b = impedance.spring(model, e.solref[i], solimp)
    aref = -b * _apply_jacobian(J, qvel) - k * impedance.impedance(solimp, r) * pos - curved
    D = impedance.weight(solimp, r, inverse)
    most = jnp.full_like(pos, jnp.inf)
    return J, aref, D, -most, most


def _polynomial_row(model: Mechanism, i: int, kind: str, qpos: Array) -> tuple[Array, Array, Array]:
    """Return the row of one coordinate as a polynomial of another, both relative to qpos0."""
    layout, t = model.layout, model.tendons
    first, second = layout.equality_first[i], layout.equality_second[i]
    c = model.equalities.data[i, :5]
    if kind == "joint":
        at = layout.dofadr
        value = coordinates(model, qpos) - coordinates(model, model.qpos0)
        rows, inverse = jnp.eye(layout.nv, dtype=qpos.dtype), model.freedoms.invweight
        first, second = int(at[first]), int(at[second]) if second >= 0 else -1
    else:
        value, rows, inverse = tendon_lengths(model, qpos) - t.length0, t.weight, t.invweight
    J, seen = rows[first], inverse[first]
    x = value[second] if second >= 0 else jnp.zeros((), qpos.dtype)
    if second >= 0:
        J = J - (c[1] + x * (2 * c[2] + x * (3 * c[3] + 4 * x * c[4]))) * rows[second]
        seen = seen + inverse[second]
    pos = value[first] - (c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * c[4]))))
    return J[None], pos[None], seen[None]


def _connect_rows(
    model: Mechanism, i: int, kind: str, where: Poses, m: Motion, qvel: Array
) -> tuple[Array, Array, Array, Array]:
    """Return J, pos, inverse inertia and J' v that connect or weld two bodies at anchors."""
    layout, weld = model.layout, kind == "weld"
    ends = np.array([layout.equality_first[i], layout.equality_second[i]])
    data = model.equalities.data[i]
    anchors = jnp.stack([data[3:6], data[:3]] if weld else [data[:3], data[3:6]])
    at, _ = where.to_world(ends, anchors)
    shift, turn = m.jacobian(layout, at, jnp.asarray(layout.moves_body[ends], qvel.dtype))
    J, pos = shift[:, 0] - shift[:, 1], at[:, 0] - at[:, 1]
    speed, spin = _point_velocities(m, at, ends)
    bent = _point_accelerations(model, m, at, ends, qvel)
    curved = bent[0][:, 0] - bent[0][:, 1]
    inverse = jnp.broadcast_to(jnp.sum(model.bodies.invweight[ends, 0]), (3,))
    if not weld:
        return J, pos, inverse, curved
    scale = data[10]
    back = where.quat[:, ends[1:]] * _CONJUGATE
    ahead = quat_mul(where.quat[:, ends[:1]], data[6:10, None])
    relative_rotation = lambda a, p=back, q=ahead: (
        0.5 * scale * quat_mul(quat_mul(p, _to_quaternion(a)), q)[1:]
    )
    relative = turn[:, 0] - turn[:, 1]  # [3, V]
    n = relative.shape[1]
    broadcast = lambda a: jnp.broadcast_to(a, (4, n))
    rows = relative_rotation(relative, broadcast(back), broadcast(ahead))
    spins = spin[:, :1] - spin[:, 1:]
    # The time derivative of 1/2 q2* (w1 - w2) q1 has three terms, one for each factor.
    ahead_rate = 0.5 * quat_mul(_to_quaternion(spin[:, :1]), ahead)
    back_rate = -0.5 * quat_mul(back, _to_quaternion(spin[:, 1:]))
    changing = (
        relative_rotation(bent[1][:, :1] - bent[1][:, 1:])
        + relative_rotation(spins, back_rate)
        + relative_rotation(spins, back, ahead_rate)
    )
    turning = jnp.broadcast_to(jnp.sum(model.bodies.invweight[ends, 1]), (3,))
    return (
        jnp.concatenate([J, rows]),
        jnp.concatenate([pos, scale * quat_mul(back, ahead)[1:, 0]]),
        jnp.concatenate([inverse, turning]),
        jnp.concatenate([curved, changing[:, 0]]),
    )


def _to_quaternion(a: Array) -> Array:
    return jnp.concatenate([jnp.zeros_like(a[:1]), a])


def _point_velocities(m: Motion, at: Array, body: np.ndarray) -> tuple[Array, Array]:
    """Return linear and angular velocities [3, N] of points on bodies."""
    spin = m.velocity[:3, body]
    return m.velocity[3:, body] + _cross(spin, at - m.origin[:, body]), spin


def _point_accelerations(
    model: Mechanism, m: Motion, at: Array, body: np.ndarray, qvel: Array
) -> tuple[Array, Array]:
    """Return linear and angular accelerations [3, N] of points at zero qacc."""
    moves = np.asarray(model.layout.moves_body[body], qvel.dtype)
    a = jnp.einsum("nv,kv->kn", moves, m.rates * qvel[None], precision=HIGHEST)
    arm = at - m.origin[:, body]
    speed, spin = _point_velocities(m, at, body)
    return a[3:] + _cross(a[:3], arm) + _cross(spin, speed), a[:3]


def _cross(a: Array, b: Array) -> Array:
    return jnp.stack(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )
