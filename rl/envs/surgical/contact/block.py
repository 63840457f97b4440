"""Lift a block off its peg by friction and put it over another: peg-transfer with contact.

The pegs are those of the kinematic task, 2 mm wide and 25 mm high, with round ends. The block is a
triangular ring of three walls 2 mm thick and 14.5 mm high, its sides 5 mm from the center, 1.5 g;
the blades grasp a wall from both sides. Its walls touch blades and pegs; it touches the board, a
plane, by small spheres in its six corners. The tool passes through pegs. Success as in the
kinematic task: 5 mm in x and y, 4 mm in height.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics.rigid.model import Model

from ....environment import register
from ....spaces import float_dtype
from ..peg_transfer import (
    GOAL_HEIGHT,
    GRASP,
    GRASP_YAW,
    HALF_HEIGHT,
    PEG_HEIGHT,
    PEG_RADIUS,
    PEGS,
    is_on_peg,
)
from ..pick_place import FLOOR
from . import tool
from .task import OFF, SCALE, ContactTask, State, model_field

SIDE, WALL = 0.005, 0.002  # m, distance of a side from the center, and its thickness
CORNER_RADIUS = 0.0005  # m, radius of the spheres in the corners
LIFT_HEIGHT = 0.012  # m above the pegs, height of the transfer


def mjcf_text() -> str:
    """Return the MJCF text of tool, board, pegs and block."""
    peg = '<geom type="capsule" size="{}" fromto="{} {} {} {} {} {}" contype="4" conaffinity="0"/>'
    top = FLOOR + PEG_HEIGHT - PEG_RADIUS
    pegs = "".join(peg.format(PEG_RADIUS, x, y, FLOOR, x, y, top) for x, y in PEGS)
    wall = '<geom type="box" size="{} {} {}" pos="{} {} 0" euler="0 0 {}" conaffinity="4"/>'
    walls = "".join(
        wall.format(
            WALL / 2,
            np.sqrt(3) * SIDE,
            HALF_HEIGHT,
            SIDE * np.cos(a),
            SIDE * np.sin(a),
            np.degrees(a),
        )
        for a in (np.pi / 3, np.pi, -np.pi / 3)
    )
    foot = '<geom size="{}" pos="{} {} {}" mass="0" conaffinity="8"/>'
    out = 2 * (SIDE + WALL / 2) - 2 * CORNER_RADIUS  # distance of a corner from the center
    feet = "".join(
        foot.format(
            CORNER_RADIUS, out * np.cos(a), out * np.sin(a), side * (HALF_HEIGHT - CORNER_RADIUS)
        )
        for a in (0, 2 * np.pi / 3, -2 * np.pi / 3)
        for side in (-1, 1)
    )
    return tool.scene_mjcf(FLOOR, pegs, f'<body name="object"><freejoint/>{walls}{feet}</body>')


@register("surgical/peg-transfer-contact")
@pytree
class PegTransferContact(ContactTask):
    """Peg transfer with contact; the object's origin is the center of the block.

    >>> from jaxgpu import rl
    >>> rl.make("surgical/peg-transfer-contact").reset(jax.random.key(0))[1].shape
    (26,)
    """

    model: Model = model_field(mjcf_text, contacts=16)
    height_tolerance: Array | float = number(
        default=0.004, above=0, unit="m"
    )  # [] success threshold of the height

    def reset(self, key: Array) -> tuple[State, Array]:
        """Start with the block over a random peg, yaw up to 30 degrees, and a random goal."""
        from_key, to_key, yaw_key = jax.random.split(key, 3)
        pegs = jnp.asarray(PEGS, float_dtype())
        peg = pegs[jax.random.randint(from_key, (), 6, 12)]
        goal = pegs[jax.random.randint(to_key, (), 0, 6)]
        yaw = jax.random.uniform(yaw_key, (), float_dtype(), -np.pi / 6, np.pi / 6)
        place = jnp.append(peg, jnp.asarray(FLOOR + HALF_HEIGHT, float_dtype()))
        return self.first_state(place, yaw, jnp.append(goal, FLOOR + GOAL_HEIGHT))

    def grasp(self) -> tuple[tuple[float, float, float], float]:
        """Return the grasp at the middle of a side, above the block's center."""
        return GRASP, GRASP_YAW

    def is_success(self, state: State) -> Array:
        """Return whether the block is over its peg, held or not."""
        return is_on_peg(self.position(state) - state.goal, self.tolerance, self.height_tolerance)

    def script(self, observation: Array) -> Array:
        """Return the scripted action of the base class, or release the block at its goal."""
        off = observation[OFF] / SCALE
        there = is_on_peg(off, 0.003, self.height_tolerance)
        let_go = jnp.zeros_like(observation[:5]).at[4].set(1.0)
        return jnp.where(there, let_go, super().script(observation))

    def carry(self, off: Array, height: Array) -> Array:
        """Return the scripted displacement of a held block, [3] m: up, over the pegs, and down."""
        up = PEG_HEIGHT + GRASP[2] + HALF_HEIGHT + LIFT_HEIGHT - height
        aside = jnp.sqrt(off[0] ** 2 + off[1] ** 2)
        lift = jnp.append(jnp.where(up < 0.006, off[:2], 0.0), up)
        return jnp.where(aside < 0.0015, off, lift)

    def path_length(self, state: State) -> Array:
        """Return the remaining path length of the block: up, across above the pegs, and down, m."""
        off = self.position(state) - state.goal
        aside = jnp.sqrt(off[0] ** 2 + off[1] ** 2 + 1e-12)
        far = jnp.clip(aside / self.tolerance - 0.5, 0, 1)
        top = (
            PEG_HEIGHT + HALF_HEIGHT + LIFT_HEIGHT - GOAL_HEIGHT
        )  # height of the transfer above the goal
        return aside + far * (top + jnp.abs(off[2] - top)) + (1 - far) * jnp.abs(off[2])
