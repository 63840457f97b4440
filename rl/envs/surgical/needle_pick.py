"""Grasp a needle on the tray and lift it: needle-pick, kinematic, after SurRoL's NeedlePick.

The needle is a semicircle of 20 mm radius, of 1 mm wire. It is at a random position on the tray,
rotated by up to 90 degrees either way, and must be grasped at its center. Success: the center is
within 5 mm of a point 20 mm above the tray, close to the tray's center.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import number, pytree

from ...environment import register
from ...spaces import float_dtype
from .arm_task import distance
from .pick_place import FLOOR, HALF, PickPlace, State, rotate_z

RADIUS, WIRE = 0.02, 0.0005  # m


@register("surgical/needle-pick")
@pytree
class NeedlePick(PickPlace):
    """Needle task; `position` is the center of the wire, whose arc center is along `object_yaw`.

    >>> NeedlePick().reset(jax.random.key(0))[1].shape
    (17,)
    """

    lift: Array | float = number(
        default=0.02, least=0, unit="m"
    )  # [] of the goal above the tray, m
    goal_spread: Array | float = number(
        default=0.01, least=0, unit="m"
    )  # [] of the goal in x and y, m

    def reset(self, key: Array) -> tuple[State, Array]:
        """Start with the needle at a random position on the tray, yaw up to 90 degrees."""
        position_key, yaw_key, goal_key = jax.random.split(key, 3)
        centre = jax.random.uniform(position_key, (2,), minval=-HALF, maxval=HALF)
        yaw = jax.random.uniform(yaw_key, (), minval=-np.pi / 2, maxval=np.pi / 2)
        position = jnp.append(centre, FLOOR + WIRE).astype(float_dtype())
        near = self.goal_spread * jax.random.normal(goal_key, (2,), float_dtype())
        goal = jnp.append(near, jnp.asarray(FLOOR + self.lift, float_dtype()))
        return self.first_state(position, yaw.astype(float_dtype()), goal)

    def rest_position(self, position: Array) -> Array:
        """Return the position on the tray."""
        return position.at[2].set(FLOOR + WIRE)

    def grasp_pose(self, position: Array, yaw: Array) -> tuple[Array, Array]:
        """Return the center of the wire, on which the jaw closes along the radius."""
        return position, yaw

    def is_success(self, state: State) -> Array:
        """Return whether the needle is at the goal, held or not, as in SurRoL."""
        return distance(state.position, state.goal) < self.tolerance

    def wire(self, state: State, pieces: int = 12) -> Array:
        """Return points along the needle, [pieces + 1, 3] m, for rendering."""
        angles = np.linspace(-np.pi / 2, np.pi / 2, pieces + 1)
        arc = RADIUS * np.stack([1 - np.cos(angles), np.sin(angles), 0 * angles], 1)
        arc = jnp.asarray(arc, state.position.dtype)
        return state.position[None] + jax.vmap(rotate_z, (0, None))(arc, state.object_yaw)

    def solids(self, state: State) -> tuple[Array, Array, Array, Array]:
        """Return the wire, twice its real thickness."""
        points = self.wire(state)
        own = jnp.ones(len(points) - 1, bool)
        return points[:-1], points[1:], jnp.full(len(own), 2 * WIRE), own
