"""Forces on bodies by contacts and by joints: six components each, torque first, then force."""

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.explanations import explain_errors

from ..constraints.contacts import Contacts
from ..forward import Dynamics
from ..models.mechanism import Mechanism
from ..motion import inertia
from ..motion.inertia import HIGHEST
from ..motion.poses import cross


@explain_errors
def contact_forces(model: Mechanism, d: Dynamics) -> Array:
    """Return torques and forces [B, 6] of contacts on bodies, N m and N, in world axes.

    They are MuJoCo's `cfrc_ext` if no equality connects bodies: the torque is about the centre of
    mass of the body's tree, and the world, which does not move, has no forces.

    >>> import jax
    >>> from jaxgpu.physics import rigid
    >>> text = '<geom type="plane" size="1 1 1"/><body pos="0 0 .099"><freejoint/><geom size=".1"/>'
    >>> ball = rigid.load(f"<mujoco><worldbody>{text}</body></worldbody></mujoco>")
    >>> found = jax.jit(lambda state: contact_forces(ball, ball.forward(state)))(ball.init())
    >>> bool(found[1, 5] > 0)  # the floor pushes upwards
    True
    """
    body = jnp.asarray(np.array(model.layout.geom_body, np.int32))
    each = jnp.arange(model.layout.nbody, dtype=jnp.int32)
    total = jnp.zeros((6, model.layout.nbody), d.qacc.dtype)
    for c, push in zip(d.contacts, d.pushes):
        force, turn = _to_world(c, push)
        for side, sign in enumerate((-1, 1)):  # the second body has the positive sign
            of = body[c.geoms[:, side]]
            moment = turn + cross(c.pos.T - d.motion.origin[:, of], force)
            own = (of[:, None] == each[None]).astype(push.dtype)
            six = sign * jnp.concatenate([moment, force])
            total = total + jnp.einsum("kc,cb->kb", six, own, precision=HIGHEST)
    return jnp.where((each > 0)[None], total, 0).T


def _to_world(c: Contacts, push: Array) -> tuple[Array, Array]:
    """Return world forces and torques [3, C] of contact-frame forces [C, d]."""
    to_axes = lambda part: jnp.einsum(
        "cij,ci->jc", c.frame[:, : part.shape[1]], part, precision=HIGHEST
    )
    force = to_axes(push[:, :3])
    return force, to_axes(push[:, 3:]) if push.shape[1] > 3 else jnp.zeros_like(force)


def joint_forces(model: Mechanism, qvel: Array, d: Dynamics) -> Array:
    """Return the torques and forces [6, B] that parents exert on bodies.

    They are MuJoCo's `cfrc_int`: the forces that the body and its descendants need for their
    motion, minus their contact forces; torques are about the centre of mass of the tree.
    """
    acceleration = inertia.accelerations(model, d.motion, qvel, d.qacc)
    needed = inertia.forces(d.motion, acceleration) - contact_forces(model, d).T
    below = jnp.asarray(model.layout.is_descendant, needed.dtype)
    return jnp.einsum("ij,ki->kj", below, needed, precision=HIGHEST)
