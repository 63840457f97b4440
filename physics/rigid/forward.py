"""The forward dynamics of a mechanism: forces, contacts and the resulting accelerations."""

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree

from .constraints import contacts, problem, rows
from .constraints.contacts import Contacts
from .constraints.factor import solve
from .models.mechanism import Mechanism
from .motion import actuators, forces, inertia, poses
from .motion.inertia import Motion
from .motion.poses import Poses


@pytree
class State:
    """State of a simulation: coordinates, velocities, activations and the solver's warm start."""

    qpos: Array  # [Q] coordinates, m and rad; quaternions of balls and free joints
    qvel: Array  # [V] velocities, m/s and rad/s; a free joint's angular one is in the body's frame
    act: Array  # [A] activations of actuators
    time: Array  # [] s
    warm: Array  # [V] accelerations of the last step, from which the solver starts
    mocap_pos: Array  # [H, 3] positions of mocap bodies, m
    mocap_quat: Array  # [H, 4] their orientations
    overflow: Array  # [] number of dropped contacts, over all steps


@pytree
class Dynamics:
    """Results of the forward dynamics at a state with given controls and forces."""

    where: Poses
    motion: Motion
    M: Array  # [V, V] mass matrix
    motor: Array  # [U] actuator forces
    actuator: Array  # [V] actuator forces on the dofs, `qfrc_actuator`
    rate: Array  # [A] time derivatives of the activations
    slope: Array  # [U] derivatives of actuator forces by actuator velocities
    smooth: Array  # [V] all forces except constraint forces, `qfrc_smooth`
    qacc: Array  # [V]
    constraint: Array  # [V] constraint forces, `qfrc_constraint`
    contacts: tuple[Contacts, ...]
    pushes: tuple[Array, ...]  # [C, d] contact forces on the second body, in the contact frames
    beyond: Array  # [] number of dropped contacts


def dynamics(model: Mechanism, state: State, ctrl: Array, force: Array) -> Dynamics:
    """Return poses, forces and accelerations at a state.

    ctrl: [U] controls of the actuators; force: [V] applied forces on the dofs.
    """
    qpos, qvel = state.qpos, state.qvel
    where = poses.poses(model, qpos, (state.mocap_pos, state.mocap_quat))
    m = inertia.motion(model, where, qvel)
    M = inertia.mass_matrix(model, m)
    motor, rate, slope = actuators.actuation(model, qpos, qvel, state.act, ctrl)
    driven = jnp.einsum("uv,u->v", actuators.moment_arms(model), motor, precision=inertia.HIGHEST)
    own = forces.passive_forces(model, where, m, qpos, qvel) - inertia.bias(model, m, qvel)
    smooth = own + driven + force
    found: tuple[Contacts, ...] = ()
    disabled = model.layout.disabled
    if "contact" not in disabled and "constraint" not in disabled:
        found = contacts.contacts(model, where)
    task = _make_problem(model, where, m, M, smooth, state, found)
    rowless = not (task.cones or task.single.at or task.dense.J.shape[0])
    free = solve(M, smooth)
    if rowless:
        qacc, held = free, jnp.zeros_like(free)
    else:
        warm = problem.cost(task, state.warm) < problem.cost(task, free)
        qacc = problem.solve(task, jnp.where(warm, state.warm, free), model.layout.iterations)
        held = problem.forces(task, qacc)
    return Dynamics(
        where=where,
        motion=m,
        M=M,
        motor=motor,
        actuator=driven,
        rate=rate,
        slope=slope,
        smooth=smooth,
        qacc=qacc,
        constraint=held,
        contacts=found,
        pushes=tuple(cone.forces(cone.mul_jac_vec(qacc) - cone.aref) for cone in task.cones),
        beyond=sum((c.beyond for c in found), jnp.zeros((), jnp.int32)),
    )


def _make_problem(
    model: Mechanism,
    where: Poses,
    m: Motion,
    M: Array,
    smooth: Array,
    state: State,
    found: tuple[Contacts, ...],
) -> problem.Problem:
    if "constraint" in model.layout.disabled:
        return problem.Problem(
            M=M,
            tau=smooth,
            single=rows.empty_dof_rows(smooth),
            dense=rows.empty_dense_rows(smooth),
            cones=(),
        )
    return problem.Problem(
        M=M,
        tau=smooth,
        single=rows.dof_rows(model, state.qpos, state.qvel),
        dense=rows.dense_rows(model, where, m, state.qpos, state.qvel),
        cones=tuple(contacts.contact_cone(model, m, state.qvel, c) for c in found),
    )
