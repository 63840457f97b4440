"""What MuJoCo's data hold of bodies after a step, in its order: turns first, then shifts."""

import jax.numpy as jnp
import numpy as np
from jax import Array

from .constraints.contacts import Contacts
from .forward import Dynamics
from .models.model import Mechanism
from .motion.inertia import HIGHEST
from .motion.poses import cross


def contact_forces(model: Mechanism, d: Dynamics) -> Array:
    """Moments and forces [B, 6] of contacts on the bodies, N m and N, in the world's axes.

    They are MuJoCo's `cfrc_ext` where no equality holds bodies together: the moment is about the
    centre of mass of the body's tree, and the world, which does not move, has none.
    """
    body = jnp.asarray(np.array(model.layout.geom_body, np.int32))
    each = jnp.arange(model.layout.nbody)
    total = jnp.zeros((6, model.layout.nbody), d.qacc.dtype)
    for c, push in zip(d.contacts, d.pushes):
        force, turn = _in_world(c, push)
        for side, sign in enumerate((-1, 1)):  # a push acts on the second body
            of = body[c.geoms[:, side]]
            moment = turn + cross(c.pos.T - d.motion.origin[:, of], force)
            own = (of[:, None] == each).astype(push.dtype)
            six = sign * jnp.concatenate([moment, force])
            total = total + jnp.einsum("kc,cb->kb", six, own, precision=HIGHEST)
    return (total * (each > 0)).T


def _in_world(c: Contacts, push: Array) -> tuple[Array, Array]:
    """Forces and moments [3, C] of pushes [C, d] in the frames of contacts."""
    into = lambda part: jnp.einsum(
        "cij,ci->jc", c.frame[:, : part.shape[1]], part, precision=HIGHEST
    )
    force = into(push[:, :3])
    return force, into(push[:, 3:]) if push.shape[1] > 3 else jnp.zeros_like(force)
