"""Forces of springs, dampers, held weight and the fluid around: what acts without a motor."""

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rotations

from ..models.model import Mechanism
from .inertia import HIGHEST, Motion, weight
from .poses import Poses, cross, matrices, product


def passive(model: Mechanism, where: Poses, m: Motion, qpos: Array, qvel: Array) -> Array:
    """Forces [V] of springs, dampers, tendons, held weight and the fluid."""
    layout = model.layout
    total = jnp.zeros_like(qvel)
    if "spring" not in layout.disabled:
        total = total + springs(model, qpos)
    if "damper" not in layout.disabled:
        total = total - model.freedoms.damping * qvel
    if layout.named("tendon"):
        total = total + _tendons(model, qpos, qvel)
    if "gravcomp" in layout.has and "gravity" not in layout.disabled:
        lift = -weight(model)[:, None] * (model.bodies.gravcomp * model.bodies.mass)[None]
        total = total + _at_centres(model, where, m, jnp.zeros_like(lift), lift)
    if "fluid" in layout.has:
        total = total + _at_centres(model, where, m, *_drag(model, where, m))
    return total


def coordinates(model: Mechanism, qpos: Array) -> Array:
    """[V] of the freedoms; zero for those of balls and free joints."""
    layout = model.layout
    one = np.array([kind in ("hinge", "slide") for kind in layout.joint_kind])[layout.freedom_joint]
    at = layout.joint_q[layout.freedom_joint]
    return jnp.where(one, qpos[at], 0)


def springs(model: Mechanism, qpos: Array) -> Array:
    """Forces [V] of the springs of joints."""
    layout = model.layout
    stiffness = model.joints.stiffness[layout.freedom_joint]
    out = -stiffness * (coordinates(model, qpos) - coordinates(model, model.qpos_spring))
    for joint, (kind, springy) in enumerate(zip(layout.joint_kind, layout.joint_springy)):
        if kind in ("hinge", "slide") or not springy:
            continue
        at, to = int(layout.joint_q[joint]), int(layout.joint_v[joint])
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
    """The rotation vector [3, ...] from one unit quaternion to another, in its frame."""
    w, *u = product(rest * jnp.array([1.0, -1, -1, -1], rest.dtype), turn)
    vector = jnp.stack(u)
    square = jnp.sum(vector * vector, 0)
    turning = square > 1e-30
    length = jnp.sqrt(jnp.where(turning, square, 1))
    angle = 2 * jnp.arctan2(jnp.where(turning, length, 0), w)
    angle = jnp.where(angle > np.pi, angle - 2 * np.pi, angle)
    return vector * jnp.where(turning, angle / length, 2 * jnp.sign(w))


def lengths(model: Mechanism, qpos: Array) -> Array:
    """[T] of the fixed tendons."""
    return jnp.einsum("tv,v->t", model.tendons.weight, coordinates(model, qpos), precision=HIGHEST)


def _tendons(model: Mechanism, qpos: Array, qvel: Array) -> Array:
    """Forces [V] of springs and dampers of tendons."""
    t = model.tendons
    length = lengths(model, qpos)
    speed = jnp.einsum("tv,v->t", t.weight, qvel, precision=HIGHEST)
    low, high = t.lengthspring.T
    stretch = jnp.where(length > high, high - length, jnp.where(length < low, low - length, 0))
    pull = 0 if "spring" in model.layout.disabled else t.stiffness * stretch
    drag = 0 if "damper" in model.layout.disabled else t.damping * speed
    return jnp.einsum("tv,t->v", t.weight, pull - drag, precision=HIGHEST)


def _at_centres(model: Mechanism, where: Poses, m: Motion, moment: Array, force: Array) -> Array:
    """Forces [V] of moments and forces [3, B] at the centres of mass."""
    arm = where.centre - m.origin
    about = jnp.concatenate([moment + cross(arm, force), force])
    moves = np.asarray(model.layout.moves, force.dtype)
    gathered = jnp.einsum("bv,kb->kv", moves, about, precision=HIGHEST)
    return jnp.sum(m.axes * gathered, 0)


def _drag(model: Mechanism, where: Poses, m: Motion) -> tuple[Array, Array]:
    """Moments and forces [3, B] of the fluid on the box that has a body's inertia.

    f_i = -3 beta pi s v_i - rho b_j b_k |v_i| v_i / 2 and
    g_i = -beta pi s^3 w_i - rho b_i (b_j^4 + b_k^4) |w_i| w_i / 64
    along the principal axes, with b the sides of the box and s their mean, rho the density, beta
    the viscosity: the inertia-based model of MuJoCo's documentation.
    """
    bodies, option = model.bodies, model.option
    frame = matrices(product(where.quat, bodies.iquat.T))
    arm = where.centre - m.origin
    turn, shift = m.velocity[:3], m.velocity[3:] + cross(m.velocity[:3], arm)
    shift = shift - option.wind[:, None]
    own = lambda a: jnp.sum(frame * a[:, None], 0)
    v, w = own(shift), own(turn)
    heavy = bodies.mass > 1e-15
    mass = jnp.where(heavy, bodies.mass, 1)
    i = bodies.inertia.T
    other = jnp.stack([i[1] + i[2] - i[0], i[0] + i[2] - i[1], i[0] + i[1] - i[2]])
    square = jnp.maximum(6 * other / mass[None], 1e-15)
    b = jnp.sqrt(square)
    s = jnp.mean(b, 0)
    rho, beta = option.density, option.viscosity
    sides = jnp.stack([b[1] * b[2], b[0] * b[2], b[0] * b[1]])
    fourth = b**4
    pairs = jnp.stack([fourth[1] + fourth[2], fourth[0] + fourth[2], fourth[0] + fourth[1]])
    force = -3 * beta * np.pi * s[None] * v - 0.5 * rho * sides * jnp.abs(v) * v
    moment = -beta * np.pi * s[None] ** 3 * w - rho / 64 * b * pairs * jnp.abs(w) * w
    world = lambda a: jnp.where(heavy[None], jnp.sum(frame * a[None], 1), 0)
    return world(moment), world(force)
