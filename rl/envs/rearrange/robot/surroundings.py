"""Boxes of a house that a robot with masses and its object can touch in a step.

They fill the `BASE_SLOTS`, `LIMB_SLOTS` and `OBJECT_SLOTS` slots of the mechanism: the nearest
boxes, by their depth and the distance that can be covered in a step. Boxes that end at the floor
are left to the plane. The base collides with boxes at its own height; for it they have no top and
no bottom.
"""

from dataclasses import replace

import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.geometry import rows
from jaxgpu.physics.rigid.model import Model

from . import contact, fetch
from .contact import Boxes
from .fetch import Joints, forward_kinematics
from .mechanism import BASE_SLOTS, LIMB_SLOTS, OBJECT_SLOTS
from .movement import BASE_BOTTOM, Load, nearest_boxes

HALF_HEIGHT = 100.0  # m, half height of the boxes that the base collides with


def nearby_boxes(
    boxes: Boxes, joints: tuple[Joints, Joints], flight: Array, half: Array, reach: Array | float
) -> tuple[Boxes, Array]:
    """Return the boxes that can be touched, [22], and how many more could be, [].

    Args:
        boxes: obstacles, [K].
        joints: before the step, and with the arm at its target.
        flight: positions of the object's center if it moves freely, [T, 3] m.
        half: its half sizes, [3] m.
        reach: maximum travel of the base in the step, m.

    >>> joints = Joints(jnp.zeros(3), jnp.float32(0.386), jnp.zeros(2), jnp.zeros(7))
    >>> wall = Boxes(jnp.array([[0.35, 0.0, 1.0, 0.1, 5.0, 1.0, 1.0, 0.0]]))
    >>> found, lost = nearby_boxes(wall, (joints, joints), jnp.ones((1, 3)), jnp.full(3, 0.03), 0.1)
    >>> found.rows.shape, int(lost), found.rows[0, 5].item()
    ((22, 8), 0, 100.0)
    """
    boxes = _remove_floor_boxes(boxes)
    places = tuple(map(forward_kinematics, joints))
    axes = jnp.eye(3, dtype=half.dtype)
    empty = Load(held=jnp.bool_(False), half=half, place=jnp.zeros_like(half), axes=axes)
    limbs, more = nearest_boxes(boxes, places, empty, LIMB_SLOTS)
    sizes = fetch.BASE_HEIGHT, fetch.BASE_RADIUS
    depth = contact.cylinder_depths(boxes, joints[0].base[:2], BASE_BOTTOM, *sizes)
    base, lost = _deepest_boxes(boxes, depth + reach, BASE_SLOTS)
    apart = jnp.min(jnp.stack([contact.point_distances(boxes, place) for place in flight]), 0)
    under, gone = _deepest_boxes(boxes, rows.length(half) + reach - apart, OBJECT_SLOTS)
    full = [
        jnp.pad(x, ((0, n - len(x)), (0, 0)), constant_values=-contact.FAR)
        for x, n in (
            (_to_pillars(base).rows, BASE_SLOTS),
            (limbs.rows, LIMB_SLOTS),
            (under.rows, OBJECT_SLOTS),
        )
    ]
    return Boxes(jnp.concatenate(full)), more + lost + gone


def with_boxes(model: Model, around: Boxes, half: Array, density: Array | float) -> Model:
    """Return the model with its boxes set to `around`, and an object of the given size.

    Args:
        model: of `mechanism`.
        around: [22], as from `nearby_boxes`.
        half: half sizes of the object, [3] m.
        density: of the object, kg/m^3.

    >>> from jaxgpu.rl.envs.rearrange.robot.servos import load_model
    >>> away = Boxes(jnp.full((22, 8), -1e3))
    >>> model = with_boxes(load_model(), away, jnp.full(3, 0.05), 300.0)
    >>> round(float(model.bodies.mass[model.index("body", "thing")]), 3)
    0.3
    """
    first = model.index("geom", "base 0")
    which = slice(first, first + len(around.rows))
    geoms, bodies = model.geoms, model.bodies
    yaw = jnp.arctan2(around.rows[:, 7], around.rows[:, 6]) / 2
    zero = jnp.zeros_like(yaw)
    at = model.index("geom", "thing")
    sizes = geoms.size.at[which].set(jnp.maximum(around.rows[:, 3:6], 1e-4))
    geoms = replace(
        geoms,
        pos=geoms.pos.at[which].set(around.rows[:, :3]),
        quat=geoms.quat.at[which].set(jnp.stack([jnp.cos(yaw), zero, zero, jnp.sin(yaw)], 1)),
        size=sizes.at[at].set(half),
    )
    body = model.index("body", "thing")
    mass = 8 * density * jnp.prod(half)
    inertia = mass / 3 * (jnp.sum(half**2) - half**2)
    # MuJoCo's `invweight` of a free body.
    weight = jnp.stack([1 / mass, jnp.mean(1 / inertia)])
    bodies = replace(
        bodies,
        mass=bodies.mass.at[body].set(mass),
        inertia=bodies.inertia.at[body].set(inertia),
        invweight=bodies.invweight.at[body].set(weight),
    )
    return replace(model, geoms=geoms, bodies=bodies)


def _deepest_boxes(boxes: Boxes, depth: Array, count: int) -> tuple[Boxes, Array]:
    """Return the `count` deepest boxes, and how many more have a depth above 0."""
    count = min(count, depth.shape[0])
    found = lax.top_k(depth, count)[1]
    return Boxes(boxes.rows[found]), jnp.maximum(jnp.sum(depth > 0) - count, 0)


def _remove_floor_boxes(boxes: Boxes) -> Boxes:
    """Remove boxes that end at the floor, because the plane represents them."""
    below = boxes.rows[:, 2] + boxes.rows[:, 5] < 1e-3
    places = boxes.rows[:, :3]
    return Boxes(boxes.rows.at[:, :3].set(jnp.where(below[:, None], -contact.FAR, places)))


def _to_pillars(boxes: Boxes) -> Boxes:
    """Extend boxes at the height of the base vertically, and move all others away."""
    z, h = boxes.rows[:, 2], boxes.rows[:, 5]
    level = (z - h < fetch.BASE_HEIGHT) & (z + h > BASE_BOTTOM)
    new = boxes.rows.at[:, 2].set(jnp.where(level, fetch.BASE_HEIGHT / 2, -contact.FAR))
    return Boxes(new.at[:, 5].set(jnp.where(level, HALF_HEIGHT, h)))
