"""A substep of a grasp: contact points, drives of the bodies, and the implicit velocities.

See `grasp` for the method, and `contact_points` for the forces at points.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry import rotations
from jaxgpu.geometry.rows import length
from jaxgpu.geometry.vectors import Vec, matvec, transpose
from jaxgpu.physics.rigid.constraints.factor import solve

from .contact_points import HAND, HIGHEST, OPENING, PART, ContactPoints, finger_twist, part_twist
from .gripper import GraspState, Gripper
from .pad import distance_normal


def pad_points(grasp: Gripper, state: GraspState) -> Array:
    """Return the positions [2 T, 3] of the taxels, m: those of the finger towards +y first."""
    x = rotations.rotate(state.hand_quat, _taxels_in_hand(grasp, state.opening))
    return state.hand[None] + jnp.stack(x, 1)


def _taxels_in_hand(grasp: Gripper, opening: Array) -> Vec:
    """Return the taxels [2 T] in the hand's frame."""
    across, along = jnp.asarray(grasp.taxels, opening.dtype).T
    y = jnp.full(len(across), opening)
    concatenate_pair = lambda a, b: jnp.concatenate([a, b])
    return concatenate_pair(across, across), concatenate_pair(y, -y), concatenate_pair(along, along)


def contacts(grasp: Gripper, state: GraspState) -> ContactPoints:
    """Return the contact points of the part with the fingers, and with fixture or table."""
    dtype = state.hand.dtype
    hand, part = (rotations.matrix(quat) for quat in (state.hand_quat, state.part_quat))
    taxels = matvec(hand, _taxels_in_hand(grasp, state.opening))
    taxels = tuple(a + b for a, b in zip(state.hand - state.part, taxels))
    points = matvec(part, tuple(jnp.asarray(grasp.part.points, dtype).T))
    edges = (state.fixture - state.part)[:, None] + jnp.asarray(grasp.fixture.points, dtype).T
    felt = _concatenate(taxels, tuple(edges))
    distance, slope = distance_normal(grasp.part.shape, matvec(transpose(part), felt))
    height, normal = _fixture_distance(grasp, state, points)
    across = jnp.stack([row[1] for row in hand])
    fingers = [finger_twist(state.part - state.hand, side * across) for side in (1, -1)]
    arm = _concatenate(felt, points)
    i, count = jnp.arange(len(arm[0])), len(taxels[0])
    select_law = lambda pad, contact: jnp.where(i < count, pad, contact).astype(dtype)
    return ContactPoints(
        distance=jnp.concatenate([distance, height]),
        normal=_concatenate(matvec(part, slope), normal),
        arm=arm,
        sign=jnp.where(i < len(distance), 1, -1).astype(dtype),
        twists=jnp.stack([*fingers, part_twist(dtype)]),
        anchors=_concatenate(matvec(hand, tuple(state.pad_anchors.T)), tuple(state.anchors.T)),
        laws=jax.tree.map(select_law, grasp.pad, grasp.contact),
        taxels=count // 2,
    )


def _concatenate(*points: Vec) -> Vec:
    return tuple(jnp.concatenate(a) for a in zip(*points))


def _fixture_distance(grasp: Gripper, state: GraspState, arm: Vec) -> tuple[Array, Vec]:
    """Return distance and normal of the fixture, or of the table z = 0 if that is closer."""
    above = tuple(a + b for a, b in zip(state.part - state.fixture, arm))
    distance, normal = distance_normal(grasp.fixture.shape, above)
    height = state.part[2] + arm[2]
    table = height < distance
    normal = tuple(jnp.where(table, up, n) for up, n in zip((0, 0, 1), normal))
    return jnp.where(table, height, distance), normal


def substep(
    grasp: Gripper, state: GraspState, place: Array, quat: Array, opening: Array
) -> GraspState:
    """Advance by a substep of implicit Euler towards a pose of the hand and an opening."""
    dtype = state.hand.dtype
    dt = jnp.asarray(grasp.dt / grasp.substeps, dtype)
    turn = rotations.matrix(state.part_quat)
    R = jnp.stack([jnp.stack(row) for row in turn])
    moments = jnp.asarray(grasp.part.inertia, dtype)
    inertia = jnp.einsum("ij,j,kj->ik", R, moments, R, precision=HIGHEST)
    masses = _mass_matrix(grasp, inertia, dtype)
    springs, dampers, pull = _drive_forces(grasp, state, place, quat, opening)
    bonds = contacts(grasp, state)
    before = jnp.concatenate([state.hand_velocity, state.opening_rate[None], state.part_velocity])

    def secant_step(u: Array, _: None) -> tuple[Array, None]:
        load, stiffness = bonds.load(u, dt)
        drive = pull - (dt * springs + dampers) * u + load
        matrix = masses + jnp.diag(dt * (dt * springs + dampers)) + dt * stiffness
        change = jnp.einsum("ij,j->i", masses, u - before, precision=HIGHEST)
        return u + solve(matrix, dt * drive - change), None

    u, _ = jax.lax.scan(secant_step, before, None, length=grasp.iterations)
    return _advance(grasp, state, u, inertia, bonds, dt)


def _mass_matrix(grasp: Gripper, inertia: Array, dtype: Any) -> Array:
    """Return the mass matrix [13, 13]."""
    ones = jnp.ones(3, dtype)
    hand, fingers = grasp.hand_mass * ones, 2 * grasp.finger_mass * ones[:1]
    diagonal = [hand, grasp.hand_inertia * ones, fingers, grasp.part.mass * ones, 0 * ones]
    return jnp.diag(jnp.concatenate(diagonal)).at[10:, 10:].add(inertia)


def _drive_forces(
    grasp: Gripper, state: GraspState, place: Array, quat: Array, opening: Array
) -> tuple[Array, Array, Array]:
    """Return stiffness and damping of the drives of u [13], and static forces with gravity."""
    ones, zeros = jnp.ones(3, state.hand.dtype), jnp.zeros(6, state.hand.dtype)
    grip = 2 * grasp.grip_stiffness, 2 * grasp.grip_damping
    springs = [grasp.stiffness * ones, grasp.turn_stiffness * ones, grip[0] * ones[:1], zeros]
    dampers = [grasp.damping * ones, grasp.turn_damping * ones, grip[1] * ones[:1], zeros]
    springs, dampers = jnp.concatenate(springs), jnp.concatenate(dampers)
    left = [
        place - state.hand,
        rotation_between(state.hand_quat, quat),
        (opening - state.opening)[None],
    ]
    pull = springs * jnp.concatenate([*left, zeros])
    return springs, dampers, pull.at[9].add(-grasp.part.mass * grasp.gravity)


def _advance(
    grasp: Gripper,
    state: GraspState,
    u: Array,
    inertia: Array,
    bonds: ContactPoints,
    dt: Array,
) -> GraspState:
    """Return the state after a substep at the velocities u."""
    count, (force, anchors) = 2 * bonds.taxels, bonds.forces(bonds.velocity(u), dt)
    reaction = -jnp.stack([jnp.sum((bonds.sign * a)[count:]) for a in force])
    hand, part = u[HAND], u[PART]
    quats, spins = (
        jnp.stack(a, 1) for a in ((state.hand_quat, state.part_quat), (hand[3:], part[3:]))
    )
    hand_quat, quat = rotations.integrate(quats, spins, dt).T
    momentum = jnp.einsum("ij,j->i", inertia, part[3:], precision=HIGHEST)
    spin = rotations.angular_velocity(quat, momentum, jnp.asarray(grasp.part.inertia, u.dtype))
    back = transpose(rotations.matrix(state.hand_quat))
    held = matvec(back, tuple(jnp.stack([a[:count], b[:count]]) for a, b in zip(force, anchors)))
    felt, pad_anchors = jnp.stack(held, -1)
    return replace(
        state,
        hand=state.hand + dt * hand[:3],
        hand_quat=hand_quat,
        hand_velocity=hand,
        opening=state.opening + dt * u[OPENING],
        opening_rate=u[OPENING],
        part=state.part + dt * part[:3],
        part_quat=quat,
        part_velocity=jnp.concatenate([part[:3], spin]),
        pad_anchors=pad_anchors,
        anchors=jnp.stack(anchors, 1)[count:],
        field=felt.reshape(state.field.shape),
        reaction=reaction,
    )


def rotation_between(start: Array, end: Array) -> Array:
    """Return the rotation vector [3], rad, in space that rotates a quaternion [4] to another.

    >>> upright = jnp.array([1.0, 0.0, 0.0, 0.0])
    >>> rotation_between(upright, jnp.array([0.0, 0.0, 0.0, 1.0])).round(4).tolist()
    [0.0, 0.0, 3.1415998935699463]
    """
    back = start * jnp.array([1, -1, -1, -1], start.dtype)
    turn = jnp.stack(rotations.product(end, back))
    turn = jnp.where(turn[0] < 0, -turn, turn)
    sine = length(turn[1:])
    small = sine < 1e-6
    angle = 2 * jnp.arctan2(jnp.where(small, 0, sine), turn[0])
    return jnp.where(small, 2, angle / jnp.where(small, 1, sine)) * turn[1:]
