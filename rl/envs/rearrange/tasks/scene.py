"""Rendering of a house with the robot, for videos, images and the viewer."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry.solids import Boxes, Rods, Solids
from jaxgpu.inputs.fields import pytree
from jaxgpu.render import Camera, camera_images, depth_image
from jaxgpu.render.capsules import BLUE, GREEN, ORANGE, STEEL

from .. import colors
from ..house import BoxType, House
from ..robot.fetch import BASE_HEIGHT, BASE_RADIUS, capsules, forward_kinematics

MAX_DEPTH = 60.0  # m


@pytree
class HouseScene:
    """Solids with colours; a `jaxgpu.render.Scene`."""

    solids: Solids
    colour: Array  # [K, 3] red, green and blue in 0 ... 1

    def picture(self, camera: Camera) -> Array:
        """Return an image [H, W, 3] in 0 ... 1."""
        return camera_images(camera, self.solids, far=MAX_DEPTH).render(self.colour)

    def depth(self, camera: Camera) -> Array:
        """Return the depth of the first solid at each pixel, [H, W] m; 60 where there is none."""
        return depth_image(camera, self.solids, far=MAX_DEPTH)


def make_scene(house: House, state: Any, goal: Array, target: Array) -> HouseScene:
    """Return the house without ceiling, the robot, the object in orange, and the goal in green."""
    boxes, dtype = placed_solids(house, state, target).boxes, state.thing.dtype
    things = len(house.objects.type)
    roof = jnp.concatenate([house.kind == BoxType.CEILING, jnp.zeros(things, bool)])
    frames = forward_kinematics(state.joints)
    start, end, radius = capsules(frames)
    rods = Rods(
        start=jnp.concatenate([start, goal[None]]),
        end=jnp.concatenate([end, goal[None]]),
        radius=jnp.append(radius, jnp.asarray(0.05, dtype)),
    )
    # Four rotated slabs form an octagon with the radius of the base.
    turns = state.joints.base[2] + jnp.asarray(np.arange(4) * np.pi / 4, dtype)
    slab = [BASE_RADIUS, BASE_RADIUS * np.tan(np.pi / 8), BASE_HEIGHT / 2]
    foot = frames.origin[:1] + jnp.array([[0.0, 0.0, BASE_HEIGHT / 2]], dtype)
    whole = Boxes(
        centre=jnp.concatenate([boxes.centre, jnp.tile(foot, (4, 1))]),
        half=jnp.concatenate(
            [jnp.where(roof[:, None], -1.0, boxes.half), _repeat_row(slab, 4, dtype)]
        ),
        turn=jnp.concatenate([boxes.turn, turns]),
    )
    kind = jnp.concatenate([house.kind, jnp.full(things, -1, house.kind.dtype)])
    sort = jnp.concatenate([house.type, house.objects.type])
    colour = colors.box_colors(kind.astype(jnp.int32), sort.astype(jnp.int32)).astype(dtype)
    colour = colour.at[len(colour) - things + target].set(jnp.array(ORANGE, dtype))
    ink = [STEEL] * 8 + [BLUE] * (len(radius) - 4) + [GREEN]  # base and body, arm, goal
    return HouseScene(Solids(whole, rods), jnp.concatenate([colour, jnp.array(ink, dtype)]))


def placed_solids(house: House, state: Any, target: Array) -> Solids:
    """Return the house's boxes with the fetched object at its current pose, yaw only."""
    x = state.thing_axes[0]
    things, yaw = house.objects, jnp.arctan2(x[1], x[0])
    centre = things.centre.at[target].set(state.thing.astype(things.centre.dtype))
    boxes = house.solids(centre, things.yaw.at[target].set(yaw.astype(things.yaw.dtype))).boxes
    return Solids(jax.tree.map(lambda part: part.astype(state.thing.dtype), boxes))


def _repeat_row(row: list, count: int, dtype: Any) -> Array:
    return jnp.broadcast_to(jnp.asarray(row, dtype), (count, len(row)))
