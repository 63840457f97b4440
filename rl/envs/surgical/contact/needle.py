"""Grasp a needle on the tray by friction and lift it: needle-pick with contact.

The needle is that of the kinematic task: a semicircle of 20 mm radius, nine straight pieces of 1 mm
steel wire, 0.4 g. Success as there: the center within 5 mm of a point 20 mm above the tray.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics.rigid.model import Model

from ....environment import register
from ....spaces import float_dtype
from ..arm_task import distance
from ..needle_pick import RADIUS, WIRE
from ..pick_place import FLOOR, HALF
from . import tool
from .task import ContactTask, State, model_field

PIECES = 9


def mjcf_text() -> str:
    """Return the MJCF text of tool, tray and needle; every other wire piece touches the tray."""
    angles = np.linspace(-np.pi / 2, np.pi / 2, PIECES + 1)
    arc = RADIUS * np.stack([1 - np.cos(angles), np.sin(angles), 0 * angles], 1)
    piece = '<geom type="capsule" size="{}" density="7850" fromto="{}" conaffinity="{}"/>'
    ends = [" ".join(f"{x:.7f}" for x in np.append(a, b)) for a, b in zip(arc, arc[1:])]
    wire = "".join(piece.format(WIRE, line, 8 * (i % 2 == 0)) for i, line in enumerate(ends))
    return tool.scene_mjcf(FLOOR, "", f'<body name="object"><freejoint/>{wire}</body>')


@register("surgical/needle-pick-contact")
@pytree
class NeedlePickContact(ContactTask):
    """Needle task with contact; the origin is the wire's center, x points to the arc's center.

    >>> from jaxgpu import rl
    >>> rl.make("surgical/needle-pick-contact").reset(jax.random.key(0))[1].shape
    (26,)
    """

    model: Model = model_field(mjcf_text, contacts=16)
    lift: Array | float = number(default=0.02, least=0, unit="m")  # [] of the goal above the tray
    goal_spread: Array | float = number(
        default=0.01, least=0, unit="m"
    )  # [] of the goal in x and y

    def reset(self, key: Array) -> tuple[State, Array]:
        """Start with the needle at a random position on the tray, yaw up to 90 degrees."""
        position_key, yaw_key, goal_key = jax.random.split(key, 3)
        centre = jax.random.uniform(position_key, (2,), float_dtype(), -HALF, HALF)
        yaw = jax.random.uniform(yaw_key, (), float_dtype(), -np.pi / 2, np.pi / 2)
        near = self.goal_spread * jax.random.normal(goal_key, (2,), float_dtype())
        position = jnp.append(centre, jnp.asarray(FLOOR + WIRE, float_dtype()))
        return self.first_state(position, yaw, jnp.append(near, FLOOR + self.lift))

    def grasp(self) -> tuple[tuple[float, float, float], float]:
        """Return grasp position in the object's frame, m, and yaw, rad: along the radius."""
        return (0.0, 0.0, 0.0), 0.0

    def is_success(self, state: State) -> Array:
        """Return whether the needle is at the goal, held or not, as in SurRoL."""
        return distance(self.position(state), state.goal) < self.tolerance
