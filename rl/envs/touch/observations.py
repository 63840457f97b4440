"""Observations of a tactile task: the full state, or the hand with tactile or camera images.

`observation` is "privileged", a vector [56]: the hand, and the state of part and forces; "reduced",
a dictionary of `hand` [25] and, for a critic, `privileged` [31]; or one of "force", "rgb" and
"depth". These three add one entry: `field` [rows, columns, 6], the forces on both pads; `gels`
[H, W, 6], the images of both pads' gels; or `wrist` [64, 64, 1], the depth image of a wrist
camera (`cameras` has both). An actor without privileged information has, for example,
`actor_keys=("hand", "field")`, its critic all keys.

- `hand`: observed position relative to the fixture, in 0.1 m, 3; its x and z axes, 6; velocity, in
  0.1 m/s, 3; angular velocity, rad/s, 3; opening, cm, 1; the last action, 6; vector from the goal
  to a tip at the center of its range, magnified near zero, 3
- `privileged`: vector from the goal to the tip, in 0.1 m, 3, and magnified near zero, 3; the part's
  x and z axes, 6; its velocity, in 0.1 m/s, 3, and angular velocity, rad/s, 3; error of the
  observed position, cm, 3; force of fixture and table on the part, N, 3; forces on the two pads in
  the hand's frame, N, 6; d, in 0.1 m, 1
- `field`: across and along the finger, and into it, in 0.05 N; one pad after the other
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rotations
from jaxgpu.geometry.rows import length
from jaxgpu.physics.touch import GelSight, GraspState

from ...spaces import Box
from . import cameras

KINDS = ("privileged", "reduced", "force", "rgb", "depth")
HAND, PRIVILEGED = 25, 31
HALF_LENGTH = 0.002  # m at which a magnified vector has half its maximum length
FORCE_UNIT = 0.05  # N, unit of the force on a taxel


def space(kind: str, grid: tuple[int, int], sensor: GelSight | None) -> Any:
    """Return the space of an observation.

    Args:
        kind: one of `KINDS`.
        grid: rows and columns of taxels on a pad.
            sensor: of the pads' images.

    Raises:
        ValueError: "rgb" without a sensor.
    """
    vector = lambda n: Box(-np.inf, np.inf, (n,))
    if kind == "privileged":
        return vector(HAND + PRIVILEGED)
    spaces = {"hand": vector(HAND), "privileged": vector(PRIVILEGED)}
    if kind == "force":
        spaces["field"] = Box(-np.inf, np.inf, (*grid, 6))
    elif kind == "rgb":
        spaces["gels"] = Box(0.0, 1.0, (*check_sensor(sensor).gel.shape, 6))
    elif kind == "depth":
        spaces["wrist"] = Box(0.0, 1.0, (cameras.PIXELS, cameras.PIXELS, 1))
    return spaces


def check_sensor(sensor: GelSight | None) -> GelSight:
    """Return the sensor of a task whose gels are observed.

    Raises:
            ValueError: the task has no sensor.
    """
    if sensor is None:
        raise ValueError('TouchTask: sensor is None; "rgb" needs one; give touch.gelsight(...)')
    return sensor


def hand_obs(
    scene: GraspState, error: Array, action: Array, reach: Array | float, goal: Array | float
) -> Array:
    """Return the hand's knowledge of itself and of the fixture, [25].

    Args:
        scene: hand, part and fixture.
        error: of the fixture's observed position, [3] m.
        action: the last action, [6].
        reach: mean distance of the tip below the center between the pads, m.
        goal: height of the tip's goal above the foot of the fixture, m.
    """
    place = scene.hand - scene.fixture - error
    below = jnp.asarray(reach, place.dtype)
    way = place.at[2].add(-below - goal)
    return jnp.concatenate(
        [
            10 * place,
            xz_axes(scene.hand_quat),
            10 * scene.hand_velocity[:3],
            scene.hand_velocity[3:],
            100 * scene.opening[None],
            action,
            magnify(way),
        ]
    )


def privileged_obs(scene: GraspState, error: Array, way: Array, distance: Array) -> Array:
    """Return the privileged part of the observation, [31].

    Args:
        scene: hand, part and fixture.
        error: of the fixture's observed position, [3] m.
        way: vector from the goal to the tip, [3] m.
        distance: d of the task, [] m.
    """
    pads = jnp.sum(scene.field, 1)
    return jnp.concatenate(
        [
            10 * way,
            magnify(way),
            xz_axes(scene.part_quat),
            10 * scene.part_velocity[:3],
            scene.part_velocity[3:],
            100 * error,
            scene.reaction,
            pads.ravel(),
            10 * distance[None],
        ]
    )


def field(forces: Array, grid: tuple[int, int]) -> Array:
    """Return the forces on both pads, [rows, columns, 6]: across, along and into each.

    Args:
        forces: on the taxels of both pads in the hand's frame, [2, rows columns, 3] N.
        grid: rows and columns of taxels on a pad.
    """
    force = forces / FORCE_UNIT
    out = jnp.array([1, -1], force.dtype)[:, None]
    seen = jnp.stack([force[:, :, 0], force[:, :, 2], out * force[:, :, 1]], 2)
    return jnp.concatenate(list(seen.reshape(2, *grid, 3)), -1)


def xz_axes(quat: Array) -> Array:
    """Return the x and z axes of a body in the world, [6]."""
    turn = rotations.matrix(quat)
    return jnp.stack([row[i] for i in (0, 2) for row in turn])


def magnify(way: Array) -> Array:
    """Magnify a vector [3], m, near zero: its horizontal and vertical lengths saturate at 1.

    They are separate, so that a tip 23 mm above its goal resolves tenths of a millimetre laterally.
    """
    level = way[:2] / (length(way[:2]) + HALF_LENGTH)
    return jnp.append(level, way[2] / (jnp.abs(way[2]) + HALF_LENGTH))
