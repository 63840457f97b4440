"""A house with the robot in it, for films, pictures and the viewer."""

from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry.solids import Boxes, Rods, Solids
from jaxgpu.pytree import pytree
from jaxgpu.render import Camera, depth_image, sight
from jaxgpu.render.capsules import BLUE, GREEN, ORANGE, STEEL

from ..house import House, Kind
from ..robot.fetch import BASE_HEIGHT, BASE_RADIUS, capsules, forward_kinematics

FAR = 60.0  # m


@pytree
class Furnished:
    """Solids with colours; a `jaxgpu.render.Scene`."""

    solids: Solids
    colour: Array  # [K, 3] red, green and blue in 0 ... 1

    def picture(self, camera: Camera) -> Array:
        """An image [H, W, 3] in 0 ... 1."""
        return sight(camera, self.solids, far=FAR).shaded(self.colour)

    def depth(self, camera: Camera) -> Array:
        """How far ahead each pixel's ray meets a solid, [H, W] m, 60 where none."""
        return depth_image(camera, self.solids, far=FAR)


def furnished(house: House, state: Any, goal: Array, target: Array) -> Furnished:
    """The house without its ceiling, the robot, the thing in orange and the goal in green."""
    solids = house.solids(*_things(house, state, target))
    boxes, dtype = solids.boxes, state.thing.dtype
    roof = jnp.concatenate([house.kind == Kind.CEILING, jnp.zeros(house.objects.type.shape, bool)])
    half = jnp.where(roof[:, None], -1.0, boxes.half).astype(dtype)
    frames = forward_kinematics(state.joints)
    start, end, radius = capsules(frames)
    foot = frames.origin[:1]
    above = lambda z: foot + jnp.array([[0.0, 0.0, z]], dtype)
    # the base is drawn as balls would stand for it: one capsule of its radius
    low, top = above(BASE_RADIUS), above(max(BASE_HEIGHT - BASE_RADIUS, BASE_RADIUS + 0.01))
    rods = Rods(
        start=jnp.concatenate([start, low, goal[None]]),
        end=jnp.concatenate([end, top, goal[None]]),
        radius=jnp.concatenate([radius, jnp.array([BASE_RADIUS, 0.05], dtype)]),
    )
    count = len(boxes.half) - len(house.objects.type)
    colour = house.colours().astype(dtype)
    colour = colour.at[count + target].set(jnp.array(ORANGE, dtype))
    ink = jnp.array([STEEL] * 4 + [BLUE] * (len(radius) - 4) + [STEEL, GREEN], dtype)
    boxes = Boxes(boxes.centre.astype(dtype), half, boxes.turn.astype(dtype))
    return Furnished(Solids(boxes, rods), jnp.concatenate([colour, ink]))


def _things(house: House, state: Any, target: Array) -> tuple[Array, Array]:
    """Where the small things are, the fetched one as upright as boxes of a house are."""
    x = state.thing_axes[0]
    yaw = jnp.arctan2(x[1], x[0])
    centre = house.objects.centre.at[target].set(state.thing.astype(house.objects.centre.dtype))
    return centre, house.objects.yaw.at[target].set(yaw.astype(house.objects.yaw.dtype))
