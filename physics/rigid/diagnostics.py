"""Quantities of a mechanism at a state: mass matrix, energy, inverse dynamics, Jacobian."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.ranges import numbers

from .constraints.factor import cho_solve, cholesky
from .forward import State
from .model import Model
from .motion import forces, inertia, poses
from .motion.inertia import HIGHEST, Motion
from .motion.poses import Poses


@explain_errors
def mass_matrix(model: Model, state: State) -> Array:
    """Return the joint-space mass matrix [V, V], including armature.

    >>> from jaxgpu.physics import rigid
    >>> rod = '<body><joint axis="0 1 0"/><geom type="capsule" size=".01 .5" mass="2"/></body>'
    >>> arm = rigid.load(f"<mujoco><worldbody>{rod}</worldbody></mujoco>")
    >>> m = jax.jit(lambda state: rigid.mass_matrix(arm, state))(arm.init())
    >>> round(float(m[0, 0]), 2)  # m l^2 / 12, and its round ends
    0.17
    """
    return inertia.mass_matrix(
        model, _poses_and_motion(model, model.check_state("mass_matrix", state))[1]
    )


@explain_errors
def energy(model: Model, state: State) -> tuple[Array, Array]:
    """Return potential energy (gravity, springs of hinges and slides) and kinetic energy [], J.

    >>> from jaxgpu.physics import rigid
    >>> text = '<mujoco><worldbody><body pos="0 0 2"><freejoint/><geom size=".1" mass="1"/>'
    >>> ball = rigid.load(text + "</body></worldbody></mujoco>")
    >>> energies = jax.jit(lambda state: rigid.energy(ball, state))
    >>> [round(float(e), 2) for e in energies(ball.init(qvel=[0, 0, 3.0, 0, 0, 0]))]
    [19.62, 4.5]
    """
    state = model.check_state("energy", state)
    where, m = _poses_and_motion(model, state)
    g = inertia.gravity(model)
    height = -jnp.sum(model.bodies.mass * jnp.sum(g[:, None] * where.centre, 0))
    stretched = jnp.zeros_like(height)
    if "spring" not in model.layout.disabled:
        layout = model.layout
        stiffness = model.joints.stiffness[layout.dof_joint]
        away = forces.coordinates(model, state.qpos) - forces.coordinates(model, model.qpos_spring)
        stretched = 0.5 * jnp.sum(stiffness * away**2)
    M = inertia.mass_matrix(model, m)
    momentum = jnp.einsum("vw,w->v", M, state.qvel, precision=HIGHEST)
    return height + stretched, 0.5 * jnp.sum(state.qvel * momentum)


@explain_errors
def inverse_dynamics(model: Model, state: State, qacc: Any) -> Array:
    """Return the forces [V] on the dofs that cause accelerations `qacc` [V].

    Gravity, springs, dampers and the fluid are included; contacts, limits and actuators are not.

    >>> from jaxgpu.physics import rigid
    >>> body = '<body><joint type="slide" axis="0 0 1"/><geom size=".1" mass="2"/></body>'
    >>> lift = rigid.load(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    >>> round(float(rigid.inverse_dynamics(lift, lift.init(), [1.0])[0]), 2)  # m (g + a)
    21.62
    """
    a = numbers("inverse_dynamics: qacc", qacc, (model.layout.nv,))
    state = model.check_state("inverse_dynamics", state)
    where, m = _poses_and_motion(model, state)
    M = inertia.mass_matrix(model, m)
    rest = inertia.bias(model, m, state.qvel)
    rest = rest - forces.passive_forces(model, where, m, state.qpos, state.qvel)
    moved = jnp.asarray(a, rest.dtype)
    return jnp.einsum("vw,w->v", M, moved, precision=HIGHEST) + rest


@explain_errors
def jacobian(model: Model, state: State, body: int, point: Any) -> tuple[Array, Array]:
    """Return the translational and rotational Jacobians [3, V] of a world point on a body.

    >>> from jaxgpu.physics import rigid
    >>> rod = '<body><joint axis="0 1 0"/><geom type="capsule" size=".01 .5" mass="2"/></body>'
    >>> arm = rigid.load(f"<mujoco><worldbody>{rod}</worldbody></mujoco>")
    >>> rigid.jacobian(arm, arm.init(), 1, [0.0, 0.0, 0.5])[0][:, 0].tolist()
    [0.5, 0.0, 0.0]
    """
    layout = model.layout
    if not 0 <= body < layout.nbody:
        raise ValueError(f"jacobian: body={body}; it must be below {layout.nbody}; see Model.index")
    state = model.check_state("jacobian", state)
    at = jnp.asarray(numbers("jacobian: point", point, (3,)), state.qpos.dtype)
    sign = jnp.asarray(layout.moves_body[[body]], at.dtype)
    shift, turn = _poses_and_motion(model, state)[1].jacobian(layout, at[:, None], sign)
    return shift[:, 0], turn[:, 0]


@explain_errors
def update_invweight(model: Model) -> Model:
    """Recompute `invweight` of bodies, dofs and tendons from the present masses.

    It is the inverse inertia that constraints act on at qpos0, and scales their softness.
    MuJoCo's `mj_setConst` does the same. Differentiable in masses, inertias and armature.

    >>> import dataclasses
    >>> from jaxgpu.physics import rigid
    >>> body = '<body><freejoint/><geom size=".1" mass="2"/></body>'
    >>> ball = rigid.load(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    >>> heavy = dataclasses.replace(ball.bodies, mass=2 * ball.bodies.mass)
    >>> ball = dataclasses.replace(ball, bodies=heavy)
    >>> float(rigid.update_invweight(ball).bodies.invweight[1, 0])
    0.25
    """
    layout = model.layout
    if not layout.nv:
        return model
    where, m = _poses_and_motion(model, model.init(qvel=np.zeros(layout.nv)))
    L = cholesky(inertia.mass_matrix(model, m))
    inverse = jax.vmap(lambda e: cho_solve(L, e))(jnp.eye(layout.nv, dtype=L.dtype))
    moves = layout.moves_body.astype(np.float64)
    shift, turn = m.jacobian(layout, where.centre, jnp.asarray(moves, L.dtype))
    mean_inverse = lambda J: jnp.einsum("kbv,vw,kbw->b", J, inverse, J, precision=HIGHEST) / 3
    weld = np.array(layout.body_weld) != 0
    bodies = jnp.where(weld[:, None], jnp.stack([mean_inverse(shift), mean_inverse(turn)], 1), 0)
    # For bodies that only slide, MuJoCo uses the mass alone, without armature.
    slides = np.array(layout.sliding, int)
    own = 1 / model.bodies.mass[slides]
    bodies = bodies.at[slides].set(jnp.stack([own, jnp.zeros_like(own)], 1))
    # MuJoCo averages over the three translations of a free joint, and over three rotations.
    alike = np.zeros((layout.nv, layout.nv), L.dtype)
    for joint, kind in enumerate(layout.joint_kind):
        at = int(layout.dofadr[joint])
        for begin, end in {"ball": [(0, 3)], "free": [(0, 3), (3, 6)]}.get(kind, [(0, 1)]):
            alike[at + begin : at + end, at + begin : at + end] = 1 / (end - begin)
    freedoms = jnp.einsum("vw,w->v", alike, jnp.diagonal(inverse), precision=HIGHEST)
    # `where` would give a derivative of nan for a massless body even where it is not selected.
    own = np.flatnonzero(np.isin(layout.dof_body, slides))
    freedoms = freedoms.at[own].set(1 / model.bodies.mass[layout.dof_body[own]])
    weight = model.tendons.weight
    tendons = jnp.einsum("tv,vw,tw->t", weight, inverse, weight, precision=HIGHEST)
    return replace(
        model,
        bodies=replace(model.bodies, invweight=bodies),
        freedoms=replace(model.freedoms, invweight=freedoms),
        tendons=replace(model.tendons, invweight=tendons),
    )


def _poses_and_motion(model: Model, state: State) -> tuple[Poses, Motion]:
    where = poses.poses(model, state.qpos, (state.mocap_pos, state.mocap_quat))
    return where, inertia.motion(model, where, state.qvel)
