"""Rendering of hand, part and fixture of a tactile task as capsules."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rotations
from jaxgpu.physics.touch import Grasp, GraspState
from jaxgpu.render import Capsules
from jaxgpu.render.capsules import BLUE, GREEN, ORANGE, STEEL

BARS = 24  # capsules of a ring
FINGER, PALM = (0.010, 0.013), 0.06  # m: half the pads' width and length; the palm above them


def draw_grasp(grasp: Grasp, scene: GraspState, success: Array) -> Capsules:
    """Return the part, orange, or green after `success` [] bool; pads blue; others steel."""
    ink = jnp.where(success, jnp.array(GREEN), jnp.array(ORANGE))
    wide = jnp.min(jnp.max(jnp.abs(jnp.asarray(grasp.part.points)), 0)[:2])
    tip = jnp.asarray(grasp.part.tip)
    rod = jnp.maximum(tip - wide, 0) * jnp.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])
    rods = [(_to_world(rod, scene.part, scene.part_quat), wide, ink)]
    for side in (1, -1):
        rods += _finger_rods(scene, side)
    top, out = grasp.fixture.top, jnp.max(jnp.abs(jnp.asarray(grasp.fixture.points)[:, :2]))
    rods += _fixture_rods(scene.fixture, top, out)
    dtype = scene.hand.dtype
    ends = jnp.stack([jnp.asarray(ends, dtype) for ends, _, _ in rods])
    return Capsules(
        start=ends[:, 0],
        end=ends[:, 1],
        radius=jnp.stack([jnp.asarray(radius, dtype) for _, radius, _ in rods]),
        colour=jnp.stack([jnp.asarray(colour, dtype) for _, _, colour in rods]),
        floor=jnp.zeros((), dtype),
        tile=jnp.asarray(0.05, dtype),
    )


def _finger_rods(scene: Any, side: int) -> list[tuple[Array, float, Any]]:
    """Return a pad as upright bars, and the bar from it to the palm."""
    thick = 0.002
    y = side * (scene.opening + thick)
    rods = []
    for x in np.linspace(-FINGER[0], FINGER[0], 6):
        ends = [jnp.stack([x + 0 * y, y, z + 0 * y]) for z in (-FINGER[1], FINGER[1])]
        rods.append((_to_world(jnp.stack(ends), scene.hand, scene.hand_quat), thick, BLUE))
    palm = [(0 * y, y, FINGER[1] + 0 * y), (0 * y, y, PALM + 0 * y), (0 * y, 0 * y, PALM + 0 * y)]
    palm = _to_world(jnp.stack([jnp.stack(x) for x in palm]), scene.hand, scene.hand_quat)
    return [*rods, (palm[:2], 0.006, STEEL), (palm[1:], 0.008, STEEL)]


def _fixture_rods(place: Array, top: Any, out: Array) -> list[tuple[Array, float, Any]]:
    """Return a fixture as upright bars around its hole, or around its edge."""
    angle = 2 * np.pi * np.arange(BARS) / BARS
    thick = 0.0025
    rods = []
    for a in angle:
        across = (out + thick) * jnp.array([np.cos(a), np.sin(a), 0.0])
        up = jnp.array([[0.0, 0.0, thick], [0.0, 0.0, 1.0]]).at[1, 2].set(top - thick)
        rods.append(((place + across)[None] + up, thick, STEEL))
    return rods


def _to_world(x: Array, pos: Array, quat: Array) -> Array:
    """Transform points [N, 3] from the frame of a body to the world."""
    return pos[None] + jnp.stack(rotations.rotate(quat, tuple(x.astype(pos.dtype).T)), 1)
