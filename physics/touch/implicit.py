"""A substep of a grasp: where points touch, what drives the bodies, and the velocities that agree.

See `grasp` for the method, and `bonds` for the forces at points.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry import rotations
from jaxgpu.geometry.rows import length
from jaxgpu.physics.rigid.constraints.factor import solve
from jaxgpu.pytree import pytree

from .bonds import HAND, HIGHEST, OPENING, PART, Bonds, of_part, of_part_from_finger, seen

if TYPE_CHECKING:
    from .grasp import Grasp


@pytree
class GraspState:
    """Where hand and part are, how they move, and how the springs between them are stretched."""

    hand: Array  # [3] middle between the pads, which is the hand's centre of mass, m
    hand_quat: Array  # [4] quaternion (w, x, y, z)
    hand_velocity: Array  # [6] velocity, m/s, and spin, rad/s
    opening: Array  # [] of each finger from the middle, m
    opening_rate: Array  # [] m/s
    part: Array  # [3] centre of mass, m
    part_quat: Array  # [4]
    part_velocity: Array  # [6] velocity, m/s, and spin, rad/s
    fixture: Array  # [3] the middle of its underside, m
    pad_anchors: Array  # [2 T, 3] of the taxels' springs, in the hand's frame, m
    anchors: Array  # [S + R, 3] of the part's points on what stands, and of the fixture's, m
    field: Array  # [2, T, 3] forces on the pads, in the hand's frame, N
    reaction: Array  # [3] force of fixture and table on the part, N


def pad_points(grasp: "Grasp", state: GraspState) -> Array:
    """Where the taxels are, [2 T, 3] m: of the finger towards +y of the hand, then the other."""
    x = _in_space(state.hand_quat, _pads(grasp, state.opening))
    return state.hand[None] + x


def _pads(grasp: "Grasp", opening: Array) -> Array:
    taxels = jnp.asarray(grasp.taxels, opening.dtype)
    faces = []
    for side in (1, -1):
        y = jnp.full(len(taxels), side, opening.dtype) * opening
        faces.append(jnp.stack([taxels[:, 0], y, taxels[:, 1]], 1))
    return jnp.concatenate(faces)


def contacts(grasp: "Grasp", state: GraspState) -> tuple[Bonds, Bonds]:
    """Taxels of both fingers [2, T, ...] on the part, and points of part and fixture."""
    pads = _pads(grasp, state.opening)
    x = state.hand[None] + _in_space(state.hand_quat, pads)
    distance, normal = seen(grasp.part.shape, x, state.part, state.part_quat)
    anchors = _in_space(state.hand_quat, state.pad_anchors)
    across = jnp.stack([row[1] for row in rotations.matrix(state.hand_quat)])
    paired = lambda a: a.reshape(2, -1, *a.shape[1:])
    twist = lambda out: of_part_from_finger(state.part - state.hand, out)
    fingers = Bonds(
        distance=paired(distance),
        normal=paired(normal),
        arm=paired(x - state.part[None]),
        sign=paired(jnp.ones_like(distance)),
        twist=jnp.stack([twist(across), twist(-across)]),
        anchors=paired(anchors),
    )
    return fingers, _on_fixture(grasp, state)


def _on_fixture(grasp: "Grasp", state: GraspState) -> Bonds:
    """Points of the part on what stands, and of the fixture on the part."""
    dtype = state.hand.dtype
    own = jnp.asarray(grasp.part.points, dtype)
    points = state.part[None] + _in_space(state.part_quat, own)
    edges = state.fixture[None] + jnp.asarray(grasp.fixture.points, dtype)
    on_fixture = _standing(grasp, points, state.fixture)
    on_part = seen(grasp.part.shape, edges, state.part, state.part_quat)
    distance, normal = (jnp.concatenate(pair) for pair in zip(on_fixture, on_part))
    signs = [-jnp.ones(len(points), dtype), jnp.ones(len(edges), dtype)]
    return Bonds(
        distance=distance,
        normal=normal,
        arm=jnp.concatenate([points, edges]) - state.part[None],
        sign=jnp.concatenate(signs),
        twist=of_part(dtype),
        anchors=state.anchors,
    )


def _standing(grasp: "Grasp", x: Array, fixture: Array) -> tuple[Array, Array]:
    """Distance and normal of the fixture, or of the table z = 0 where that is nearer."""
    upright = jnp.zeros(4, x.dtype).at[0].set(1)
    distance, normal = seen(grasp.fixture.shape, x, fixture, upright)
    table = x[:, 2] < distance
    up = jnp.zeros(3, x.dtype).at[2].set(1)
    return jnp.where(table, x[:, 2], distance), jnp.where(table[:, None], up[None], normal)


def substep(
    grasp: "Grasp", state: GraspState, place: Array, quat: Array, opening: Array
) -> GraspState:
    """Implicit Euler over a substep towards a pose of the hand and an opening."""
    dtype = state.hand.dtype
    dt = jnp.asarray(grasp.dt / grasp.substeps, dtype)
    turn = rotations.matrix(state.part_quat)
    R = jnp.stack([jnp.stack(row) for row in turn])
    moments = jnp.asarray(grasp.part.inertia, dtype)
    inertia = jnp.einsum("ij,j,kj->ik", R, moments, R, precision=HIGHEST)
    masses = _masses(grasp, inertia, dtype)
    springs, dampers, pull = _drive(grasp, state, place, quat, opening)
    fingers, standing = contacts(grasp, state)
    before = jnp.concatenate([state.hand_velocity, state.opening_rate[None], state.part_velocity])

    def nearer(u: Array, _: None) -> tuple[Array, None]:
        drive = pull - (dt * springs + dampers) * u
        matrix = masses + jnp.diag(dt * (dt * springs + dampers))
        pads = jax.vmap(lambda one: one.load(grasp.pad, u, dt))(fingers)
        for load, stiffness in (
            jax.tree.map(lambda a: jnp.sum(a, 0), pads),
            standing.load(grasp.contact, u, dt),
        ):
            drive, matrix = drive + load, matrix + dt * stiffness
        change = jnp.einsum("ij,j->i", masses, u - before, precision=HIGHEST)
        return u + solve(matrix, dt * drive - change), None

    u, _ = jax.lax.scan(nearer, before, None, length=grasp.iterations)
    return _moved(grasp, state, u, inertia, (fingers, standing), dt)


def _masses(grasp: "Grasp", inertia: Array, dtype: Any) -> Array:
    """The matrix of masses [13, 13]."""
    ones = jnp.ones(3, dtype)
    hand, fingers = grasp.hand_mass * ones, 2 * grasp.finger_mass * ones[:1]
    diagonal = [hand, grasp.hand_inertia * ones, fingers, grasp.part.mass * ones, 0 * ones]
    return jnp.diag(jnp.concatenate(diagonal)).at[10:, 10:].add(inertia)


def _drive(
    grasp: "Grasp", state: GraspState, place: Array, quat: Array, opening: Array
) -> tuple[Array, Array, Array]:
    """Stiffness and damping of the drives of u [13], and their forces at rest with gravity."""
    ones, zeros = jnp.ones(3, state.hand.dtype), jnp.zeros(6, state.hand.dtype)
    grip = 2 * grasp.grip_stiffness, 2 * grasp.grip_damping
    springs = [grasp.stiffness * ones, grasp.turn_stiffness * ones, grip[0] * ones[:1], zeros]
    dampers = [grasp.damping * ones, grasp.turn_damping * ones, grip[1] * ones[:1], zeros]
    springs, dampers = jnp.concatenate(springs), jnp.concatenate(dampers)
    left = [place - state.hand, way(state.hand_quat, quat), (opening - state.opening)[None]]
    pull = springs * jnp.concatenate([*left, zeros])
    return springs, dampers, pull.at[9].add(-grasp.part.mass * grasp.gravity)


def _moved(
    grasp: "Grasp",
    state: GraspState,
    u: Array,
    inertia: Array,
    bonds: tuple[Bonds, Bonds],
    dt: Array,
) -> GraspState:
    """The state after a substep at the velocities u."""
    fingers, standing = bonds
    felt, pad_anchors = jax.vmap(lambda one: one.forces(grasp.pad, one.velocity(u), dt))(fingers)
    force, anchors = standing.forces(grasp.contact, standing.velocity(u), dt)
    reaction = -jnp.sum(standing.sign[:, None] * force, 0)
    hand, part = u[HAND], u[PART]
    quat = rotations.rotated(state.part_quat, part[3:], dt)
    momentum = jnp.einsum("ij,j->i", inertia, part[3:], precision=HIGHEST)
    spin = rotations.spin_of(quat, momentum, jnp.asarray(grasp.part.inertia, u.dtype))
    back = state.hand_quat * jnp.array([1, -1, -1, -1], u.dtype)
    return replace(
        state,
        hand=state.hand + dt * hand[:3],
        hand_quat=rotations.rotated(state.hand_quat, hand[3:], dt),
        hand_velocity=hand,
        opening=state.opening + dt * u[OPENING],
        opening_rate=u[OPENING],
        part=state.part + dt * part[:3],
        part_quat=quat,
        part_velocity=jnp.concatenate([part[:3], spin]),
        pad_anchors=_in_space(back, pad_anchors.reshape(-1, 3)),
        anchors=anchors,
        field=_in_space(back, felt.reshape(-1, 3)).reshape(state.field.shape),
        reaction=reaction,
    )


def way(start: Array, end: Array) -> Array:
    """The rotation vector [3], rad, in space that turns a quaternion [4] into another.

    >>> upright = jnp.array([1.0, 0.0, 0.0, 0.0])
    >>> way(upright, jnp.array([0.0, 0.0, 0.0, 1.0])).round(4).tolist()
    [0.0, 0.0, 3.1415998935699463]
    """
    back = start * jnp.array([1, -1, -1, -1], start.dtype)
    turn = jnp.stack(rotations.product(end, back))
    turn = jnp.where(turn[0] < 0, -turn, turn)
    sine = length(turn[1:])
    small = sine < 1e-6
    angle = 2 * jnp.arctan2(jnp.where(small, 0, sine), turn[0])
    return jnp.where(small, 2, angle / jnp.where(small, 1, sine)) * turn[1:]


def _in_space(quat: Array, x: Array) -> Array:
    """Vectors [B, 3] of a body's frame, in space."""
    return jnp.stack(rotations.turned(quat, tuple(x.T)), 1)
