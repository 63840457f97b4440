"""Frames of bodies, geoms and sites: poses, velocities and accelerations."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..forward import Dynamics
from ..models.mechanism import Mechanism
from ..motion import inertia
from ..motion.poses import cross, quat_mul, rotate


@dataclass(frozen=True)
class Frames:
    """N frames that are fixed to bodies."""

    body: np.ndarray  # [N]
    pos: Array  # [3, N] m
    quat: Array  # [4, N]

    def from_world(self, a: Array) -> Array:
        """Rotate world vectors [3, N] into the frames."""
        return rotate(conjugate(self.quat), a)

    def velocity(self, d: Dynamics) -> tuple[Array, Array]:
        """Return angular and linear velocities [3, N] of the frame origins, in world axes."""
        six = d.motion.velocity[:, self.body]
        return six[:3], six[3:] + cross(six[:3], self.pos - d.motion.origin[:, self.body])

    def acceleration(self, model: Mechanism, qvel: Array, d: Dynamics) -> tuple[Array, Array]:
        """Return accelerations as `velocity`, minus gravity: upwards for a frame at rest."""
        six = inertia.accelerations(model, d.motion, qvel, d.qacc)[:, self.body]
        turn, shift = self.velocity(d)
        carried = six[3:] + cross(six[:3], self.pos - d.motion.origin[:, self.body])
        return six[:3], carried + cross(turn, shift)


def frames(model: Mechanism, d: Dynamics, of: Sequence[str], at: Sequence[int]) -> Frames:
    """Return the frames of objects of types `of` and indices `at`; the world for an empty type."""
    layout, bodies = model.layout, model.bodies
    zero = jnp.zeros((1, 3), model.qpos0.dtype)
    still = jnp.zeros((1, 4), zero.dtype).at[0, 0].set(1)
    offsets = {
        "": (np.zeros(1, int), zero, still),
        "xbody": (np.arange(layout.nbody), 0 * bodies.ipos, still + 0 * bodies.iquat),
        "body": (np.arange(layout.nbody), bodies.ipos, bodies.iquat),
        "geom": (np.array(layout.geom_body, int), model.geoms.pos, model.geoms.quat),
        "site": (np.array(layout.site_body, int), model.sites.pos, model.sites.quat),
    }
    begin = dict(zip(offsets, np.cumsum([0, *(len(each[0]) for each in offsets.values())])))
    rows = np.array([begin[word] + (i if word else 0) for word, i in zip(of, at)], int)
    body = np.concatenate([each[0] for each in offsets.values()])[rows]
    pos, quat = (jnp.concatenate([each[k] for each in offsets.values()])[rows] for k in (1, 2))
    where, turn = d.where.to_world(body, pos, quat)
    return Frames(body=body, pos=where, quat=turn)


def conjugate(quat: Array) -> Array:
    """Return the inverses of unit quaternions [4, N]."""
    return quat * jnp.array([1, -1, -1, -1], quat.dtype)[:, None]


def frame_readings(frame: Frames, ref: Frames, d: Dynamics) -> dict[str, Array]:
    """Return readings of frame sensors relative to `ref`: [3, N], and `framequat` [4, N]."""
    turn, shift = frame.velocity(d)
    ref_turn, ref_shift = ref.velocity(d)
    away = frame.pos - ref.pos
    quat = quat_mul(conjugate(ref.quat), frame.quat)
    axes = {
        f"frame{name}axis": rotate(quat, jnp.zeros_like(away).at[i].set(1))
        for i, name in enumerate("xyz")
    }
    return axes | {
        "framepos": ref.from_world(away),
        "framequat": quat,
        "framelinvel": ref.from_world(shift - ref_shift - cross(ref_turn, away)),
        "frameangvel": ref.from_world(turn - ref_turn),
    }
