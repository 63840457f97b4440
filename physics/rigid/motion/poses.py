"""Forward kinematics: poses of bodies and axes of joints, by pointer doubling along the tree.

Every body is a chain of nodes, one per joint. A node has its pose relative to an ancestor node. In
each of log2(depth) rounds it composes this pose with the ancestor's own, until all poses are
relative to the world. Vectors are rows of components, [3, N], so that a batch axis may come last.
"""

from dataclasses import dataclass
from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rotations, vectors
from jaxgpu.inputs.fields import pytree

from ..models.layout import Layout
from ..models.mechanism import Mechanism


@pytree
class Poses:
    """World poses of bodies, and anchors and axes of joints."""

    pos: Array  # [3, B] of the bodies, m
    quat: Array  # [4, B]
    centre: Array  # [3, B] centres of mass, m
    anchor: Array  # [3, J] of the joints, m
    axis: Array  # [3, J] of the joints

    def to_world(
        self, body: np.ndarray, pos: Array, quat: Array | None = None
    ) -> tuple[Array, Array]:
        """Return world poses [3, N], [4, N] of body-fixed frames `pos` [N, 3], `quat` [N, 4]."""
        here = self.quat[:, body]
        place = self.pos[:, body] + rotate(here, pos.T)
        return place, here if quat is None else quat_mul(here, quat.T)


@dataclass(frozen=True)
class Nodes:
    """The chains of joints of all bodies, as one tree."""

    offset: np.ndarray  # [N] body in whose frame the node starts, 0 if it follows another node
    source: np.ndarray  # [N] index of its joint motion: 0 none, then hinges, slides, balls, free
    rounds: tuple[np.ndarray, ...]  # ancestor [N] of each node, for each round
    body: np.ndarray  # [B] last node of each body
    joint: np.ndarray  # [J] node of each joint


@lru_cache(maxsize=64)
def nodes(layout: Layout) -> Nodes:
    """Return the tree of nodes."""
    order = np.concatenate([layout.kinds(kind) for kind in ("hinge", "slide", "ball", "free")])
    place = {int(joint): 1 + i for i, joint in enumerate(order)}
    offset, source, parent, last = [0], [0], [0], [0]
    joint_node = np.zeros(len(layout.joint_kind), np.int32)
    for body in range(1, layout.nbody):
        own = [j for j, at in enumerate(layout.joint_body) if at == body]
        above, begin = last[layout.body_parent[body]], body
        for joint in own or [None]:
            if joint is not None:
                joint_node[joint] = len(source)
            free = joint is not None and layout.joint_kind[joint] == "free"
            offset.append(0 if free else begin)
            source.append(0 if joint is None else place[joint])
            parent.append(0 if free else above)
            above, begin = len(source) - 1, 0
        last.append(above)
    rounds, jump = [], np.array(parent, np.int32)
    while jump.any():
        rounds.append(jump)
        jump = jump[jump]
    return Nodes(
        offset=np.array(offset, np.int32),
        source=np.array(source, np.int32),
        rounds=tuple(rounds),
        body=np.array(last, np.int32),
        joint=joint_node,
    )


def poses(model: Mechanism, qpos: Array, mocap: tuple[Array, Array] | None = None) -> Poses:
    """Return all poses at the coordinates `qpos` [Q]; `mocap` has the poses of mocap bodies."""
    layout, tree = model.layout, nodes(model.layout)
    pos, quat = model.bodies.pos, model.bodies.quat
    held = np.array([body for body, at in enumerate(layout.body_mocap) if at >= 0], int)
    if held.size and mocap is not None:
        pos = pos.at[held].set(mocap[0])
        quat = quat.at[held].set(mocap[1])
    quat = rotations.unit(quat.T)
    shift, turn = _joint_motions(model, qpos)
    shift, turn = shift[:, tree.source], turn[:, tree.source]
    begin = quat[:, tree.offset]
    pos, quat = pos.T[:, tree.offset] + rotate(begin, shift), quat_mul(begin, turn)
    for above in tree.rounds:
        pos, quat = (
            pos[:, above] + rotate(quat[:, above], pos),
            quat_mul(quat[:, above], quat),
        )
    x, q = pos[:, tree.body], quat[:, tree.body]
    centre = x + rotate(q, model.bodies.ipos.T)
    at, frame = pos[:, tree.joint], quat[:, tree.joint]
    anchor = at + rotate(frame, model.joints.pos.T)
    axis = rotate(frame, model.joints.axis.T)
    return Poses(pos=x, quat=q, centre=centre, anchor=anchor, axis=axis)


def _joint_motions(model: Mechanism, qpos: Array) -> tuple[Array, Array]:
    """Return joint translations [3, 1 + J] and rotations [4, 1 + J], in `Nodes.source` order."""
    layout, joints = model.layout, model.joints
    zero = jnp.zeros((3, 1), qpos.dtype)
    still = jnp.zeros((4, 1), qpos.dtype).at[0].set(1)
    shifts, turns = [zero], [still]
    hinge, slide = layout.kinds("hinge"), layout.kinds("slide")
    at = layout.qposadr
    if hinge.size:
        half = 0.5 * (qpos[at[hinge]] - model.qpos0[at[hinge]])
        axis = joints.axis[hinge].T
        turn = jnp.concatenate([jnp.cos(half)[None], jnp.sin(half)[None] * axis])
        arm = joints.pos[hinge].T
        turns.append(turn)
        shifts.append(arm - rotate(turn, arm))
    if slide.size:
        move = (qpos[at[slide]] - model.qpos0[at[slide]])[None] * joints.axis[slide].T
        shifts.append(move)
        turns.append(jnp.broadcast_to(still, (4, slide.size)))
    for kind, skip in (("ball", 0), ("free", 3)):
        own = layout.kinds(kind)
        if not own.size:
            continue
        turn = rotations.unit(qpos[at[own] + skip + np.arange(4)[:, None]])
        arm = joints.pos[own].T
        free = kind == "free"
        shifts.append(qpos[at[own] + np.arange(3)[:, None]] if free else arm - rotate(turn, arm))
        turns.append(turn)
    return jnp.concatenate(shifts, 1), jnp.concatenate(turns, 1)


def rotate(quat: Array, a: Array) -> Array:
    """Rotate vectors [3, N] by unit quaternions [4, N]."""
    w, u = quat[0], quat[1:]
    t = 2 * jnp.stack(vectors.cross(u, a))
    return a + w[None] * t + jnp.stack(vectors.cross(u, t))


def quat_mul(a: Array, b: Array) -> Array:
    """Return the products of quaternions [4, N]."""
    return jnp.stack(rotations.product(a, b))


def cross(a: Array, b: Array) -> Array:
    """Return the cross products of vectors [3, N]."""
    return jnp.stack(vectors.cross(a, b))


def quat_to_mat(quat: Array) -> Array:
    """Return the rotation matrices [3, 3, N] of unit quaternions [4, N], world axis first."""
    return jnp.stack([jnp.stack(row) for row in rotations.matrix(quat)])
