"""Passive forces: springs, dampers, gravity compensation and the fluid."""

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rotations

from ..models.mechanism import Mechanism
from . import fluid
from .inertia import HIGHEST, Motion, gravity
from .poses import Poses, quat_mul


def passive_forces(model: Mechanism, where: Poses, m: Motion, qpos: Array, qvel: Array) -> Array:
    """Return the passive forces [V]: springs, dampers, tendons, gravcomp and the fluid."""
    layout = model.layout
    total = jnp.zeros_like(qvel)
    if {"spring", "damper"} <= layout.disabled:
        return total
    if "spring" not in layout.disabled:
        total = total + springs(model, qpos)
    if "damper" not in layout.disabled:
        total = total - model.freedoms.damping * qvel
    if layout.element_names("tendon"):
        total = total + _tendon_forces(model, qpos, qvel)
    if "gravcomp" in layout.has and "gravity" not in layout.disabled:
        lift = -gravity(model)[:, None] * (model.bodies.gravcomp * model.bodies.mass)[None]
        total = total + m.dof_forces(layout, slice(None), where.centre, jnp.zeros_like(lift), lift)
    if "fluid" in layout.has:
        total = total + fluid.forces(model, where, m)
    return total


def coordinates(model: Mechanism, qpos: Array) -> Array:
    """Return the coordinates [V] of hinges and slides; zero for ball and free joints."""
    layout = model.layout
    one = np.array([kind in ("hinge", "slide") for kind in layout.joint_kind])[layout.dof_joint]
    at = layout.qposadr[layout.dof_joint]
    return jnp.where(one, qpos[at], 0)


def springs(model: Mechanism, qpos: Array) -> Array:
    """Return the forces [V] of joint springs."""
    layout = model.layout
    stiffness = model.joints.stiffness[layout.dof_joint]
    out = -stiffness * (coordinates(model, qpos) - coordinates(model, model.qpos_spring))
    for joint, (kind, springy) in enumerate(zip(layout.joint_kind, layout.joint_springy)):
        if kind in ("hinge", "slide") or not springy:
            continue
        at, to = int(layout.qposadr[joint]), int(layout.dofadr[joint])
        k = model.joints.stiffness[joint]
        if kind == "free":
            away = qpos[at : at + 3] - model.qpos_spring[at : at + 3]
            out = out.at[to : to + 3].set(-k * away)
            at, to = at + 3, to + 3
        turn = rotations.unit(qpos[at : at + 4])
        rest = rotations.unit(model.qpos_spring[at : at + 4])
        out = out.at[to : to + 3].set(-k * rotation_between(rest, turn))
    return out


def rotation_between(rest: Array, turn: Array) -> Array:
    """Return the rotation vector [3, ...] from one unit quaternion to another, in its frame."""
    w, *u = quat_mul(rest * jnp.array([1.0, -1, -1, -1], rest.dtype), turn)
    vector = jnp.stack(u)
    square = jnp.sum(vector * vector, 0)
    turning = square > 1e-30
    length = jnp.sqrt(jnp.where(turning, square, 1))
    angle = 2 * jnp.arctan2(jnp.where(turning, length, 0), w)
    angle = jnp.where(angle > np.pi, angle - 2 * np.pi, angle)
    return vector * jnp.where(turning, angle / length, 2 * jnp.sign(w))


def tendon_lengths(model: Mechanism, qpos: Array) -> Array:
    """Return the lengths [T] of the fixed tendons."""
    return jnp.einsum("tv,v->t", model.tendons.weight, coordinates(model, qpos), precision=HIGHEST)


def _tendon_forces(model: Mechanism, qpos: Array, qvel: Array) -> Array:
    """Return the forces [V] of tendon springs and dampers."""
    t = model.tendons
    length = tendon_lengths(model, qpos)
    speed = jnp.einsum("tv,v->t", t.weight, qvel, precision=HIGHEST)
    low, high = t.lengthspring.T
    stretch = jnp.where(length > high, high - length, jnp.where(length < low, low - length, 0))
    pull = 0 if "spring" in model.layout.disabled else t.stiffness * stretch
    drag = 0 if "damper" in model.layout.disabled else t.damping * speed
    return jnp.einsum("tv,t->v", t.weight, pull - drag, precision=HIGHEST)
