"""Which boxes of a house a robot with masses and its thing can meet in a step, and a model of them.

As many boxes as the mechanism has places for, `BASE`, `LIMBS` and `THING`: those that are nearest,
by their depth at best and the way that can be made in a step. Boxes that end at the floor are left
to its plane. The base meets boxes that are as high as itself; to it they have no top and no bottom.
"""

from dataclasses import replace

import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.geometry import rows
from jaxgpu.physics.rigid.model import Model

from . import contact, fetch
from .contact import Boxes
from .fetch import Joints, forward_kinematics
from .mechanism import BASE, LIMBS, THING
from .movement import LOW, Load, nearest

TALL = 100.0  # m, half the height of the boxes that the base meets


def near(
    boxes: Boxes, joints: tuple[Joints, Joints], flight: Array, half: Array, reach: Array | float
) -> tuple[Boxes, Array]:
    """The boxes that can be met, [22], and how many more can be, [].

    Args:
        boxes: what stands around, [K].
        joints: before the step, and with the arm where it is to get.
        flight: places of the thing's middle, if nothing holds it, [T, 3] m.
        half: its half sizes, [3] m.
        reach: how far the base can get in the step, m.

    >>> joints = Joints(jnp.zeros(3), jnp.float32(0.386), jnp.zeros(2), jnp.zeros(7))
    >>> wall = Boxes(jnp.array([[0.35, 0.0, 1.0, 0.1, 5.0, 1.0, 1.0, 0.0]]))
    >>> found, lost = near(wall, (joints, joints), jnp.ones((1, 3)), jnp.full(3, 0.03), 0.1)
    >>> found.rows.shape, int(lost), found.rows[0, 5].item()
    ((22, 8), 0, 100.0)
    """
    boxes = _above_floor(boxes)
    places = tuple(map(forward_kinematics, joints))
    axes = jnp.eye(3, dtype=half.dtype)
    empty = Load(held=jnp.bool_(False), half=half, place=jnp.zeros_like(half), axes=axes)
    limbs, more = nearest(boxes, places, empty, LIMBS)
    sizes = fetch.BASE_HEIGHT, fetch.BASE_RADIUS
    depth = contact.cylinder(boxes, joints[0].base[:2], LOW, *sizes)
    base, lost = _closest(boxes, depth + reach, BASE)
    apart = jnp.min(jnp.stack([contact.point(boxes, place) for place in flight]), 0)
    under, gone = _closest(boxes, rows.length(half) + reach - apart, THING)
    full = [
        jnp.pad(x, ((0, n - len(x)), (0, 0)), constant_values=-contact.FAR)
        for x, n in ((_pillars(base).rows, BASE), (limbs.rows, LIMBS), (under.rows, THING))
    ]
    return Boxes(jnp.concatenate(full)), more + lost + gone


def furnished(model: Model, around: Boxes, half: Array, density: Array | float) -> Model:
    """The model with its boxes where those of `around` are, and a thing of that size.

    Args:
        model: of `mechanism`.
        around: [22], as `near` finds them.
        half: half sizes of the thing, [3] m.
        density: of the thing, kg/m^3.

    >>> from jaxgpu.rl.envs.rearrange.robot.servos import loaded_model
    >>> away = Boxes(jnp.full((22, 8), -1e3))
    >>> model = furnished(loaded_model(), away, jnp.full(3, 0.05), 300.0)
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
    # of a body that flies free MuJoCo's weights of constraints are these
    weight = jnp.stack([1 / mass, jnp.mean(1 / inertia)])
    bodies = replace(
        bodies,
        mass=bodies.mass.at[body].set(mass),
        inertia=bodies.inertia.at[body].set(inertia),
        invweight=bodies.invweight.at[body].set(weight),
    )
    return replace(model, geoms=geoms, bodies=bodies)


def _closest(boxes: Boxes, depth: Array, count: int) -> tuple[Boxes, Array]:
    """The `count` deepest boxes, and how many more have a depth above 0."""
    count = min(count, depth.shape[0])
    found = lax.top_k(depth, count)[1]
    return Boxes(boxes.rows[found]), jnp.maximum(jnp.sum(depth > 0) - count, 0)


def _above_floor(boxes: Boxes) -> Boxes:
    """Boxes without those that end at the floor, which the plane stands for."""
    below = boxes.rows[:, 2] + boxes.rows[:, 5] < 1e-3
    places = boxes.rows[:, :3]
    return Boxes(boxes.rows.at[:, :3].set(jnp.where(below[:, None], -contact.FAR, places)))


def _pillars(boxes: Boxes) -> Boxes:
    """Boxes without top and bottom where they are as high as the base, and away elsewhere."""
    z, h = boxes.rows[:, 2], boxes.rows[:, 5]
    level = (z - h < fetch.BASE_HEIGHT) & (z + h > LOW)
    new = boxes.rows.at[:, 2].set(jnp.where(level, fetch.BASE_HEIGHT / 2, -contact.FAR))
    return Boxes(new.at[:, 5].set(jnp.where(level, TALL, h)))
