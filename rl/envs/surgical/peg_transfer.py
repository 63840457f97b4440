"""Lift a block off its peg and put it over another: peg-transfer, kinematic, after SurRoL's.

Twelve pegs of 2 mm protrude 25 mm from the board, in two fields of six, as in SurRoL's model. A
block of 10 mm radius and 14.5 mm height is on a peg of the second field; its goal is a peg of the
first. A held block cannot pass through a peg: a move that would is undone, horizontally first. A
released block falls to the board if a peg is in its hole, or stays on the pegs below it.
Departures: the three other blocks are omitted, the hole has a radius of 4 mm, and the tool passes
through pegs. Success: 5 mm in x and y, 4 mm in height.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import number, pytree

from ...environment import register
from ...spaces import float_dtype
from .pick_place import FLOOR, PickPlace, State, held_position, rotate_z

PEGS = np.array(  # [12, 2] m: the first six are goals
    [
        (-0.030, 0.043),
        (-0.010, 0.043),
        (0.010, 0.043),
        (-0.030, 0.013),
        (-0.010, 0.013),
        (0.010, 0.013),
        (-0.033, -0.027),
        (0.013, -0.027),
        (-0.0215, -0.007081),
        (0.0015, -0.007081),
        (-0.0215, -0.046919),
        (0.0015, -0.046919),
    ]
)
PEG_RADIUS, PEG_HEIGHT = 0.001, 0.025  # radius, and height above the board, m
BLOCK_RADIUS, HOLE, HALF_HEIGHT = 0.010, 0.004, 0.00725  # of the block, m
GOAL_HEIGHT = 0.011  # m above the board, of the goal: center of a peg in SurRoL's model
GRASP = (0.0025, 0.00433, 0.003)  # grasp position relative to the block's center, m
GRASP_YAW = -2 * np.pi / 3  # yaw of the jaw there relative to the block's, rad


@register("surgical/peg-transfer")
@pytree
class PegTransfer(PickPlace):
    """Peg transfer task; `position` is the center of the block.

    >>> PegTransfer().reset(jax.random.key(0))[1].shape
    (17,)
    """

    height_tolerance: Array | float = number(
        default=0.004, above=0, unit="m"
    )  # [] success threshold of the height, m

    def reset(self, key: Array) -> tuple[State, Array]:
        """Start with the block over a random peg, yaw up to 30 degrees, and a random goal."""
        from_key, to_key, yaw_key = jax.random.split(key, 3)
        pegs = jnp.asarray(PEGS, float_dtype())
        peg = pegs[jax.random.randint(from_key, (), 6, 12)]
        position = jnp.append(peg, jnp.asarray(FLOOR + HALF_HEIGHT, float_dtype()))
        goal = pegs[jax.random.randint(to_key, (), 0, 6)]
        goal = jnp.append(goal, jnp.asarray(FLOOR + GOAL_HEIGHT, float_dtype()))
        yaw = jax.random.uniform(yaw_key, (), minval=-np.pi / 6, maxval=np.pi / 6)
        return self.first_state(position, yaw.astype(float_dtype()), goal)

    def limit_pose(self, state: State, tip: Array, yaw: Array) -> tuple[Array, Array]:
        """Limit a move by the board, and by pegs from the side and from above."""
        rest = FLOOR + HALF_HEIGHT
        lowest = rest + state.tip[2] - state.position[2]
        tip = jnp.where(state.held, tip.at[2].max(lowest), tip)
        hits = state.held & _is_path_blocked(state, tip, yaw)
        # If possible, it slides along the peg.
        only_up = state.tip.at[2].set(tip[2])
        tip, yaw = jnp.where(hits, only_up, tip), jnp.where(hits, state.yaw, yaw)
        hits = state.held & _is_path_blocked(state, tip, yaw)
        return jnp.where(hits, state.tip, tip), jnp.where(hits, state.yaw, yaw)

    def rest_position(self, position: Array) -> Array:
        """Return the position on the board, or on the pegs that block the way."""
        low = position.at[2].set(FLOOR + HALF_HEIGHT)
        return jnp.where(is_blocked(low), position.at[2].set(FLOOR + PEG_HEIGHT + HALF_HEIGHT), low)

    def grasp_pose(self, position: Array, yaw: Array) -> tuple[Array, Array]:
        """Return the center of a side of the block; the jaw closes on the wall from both sides."""
        grasp = rotate_z(jnp.asarray(GRASP, position.dtype), yaw)
        return position + grasp, yaw + GRASP_YAW

    def is_success(self, state: State) -> Array:
        """Return whether the block is over its peg, held or not."""
        return is_on_peg(state.position - state.goal, self.tolerance, self.height_tolerance)

    def solids(self, state: State) -> tuple[Array, Array, Array, Array]:
        """Return pegs, and the block as a triangle of round bars through its corners."""
        base = jnp.append(jnp.asarray(PEGS), jnp.full((12, 1), FLOOR), 1).astype(
            state.position.dtype
        )
        angles = np.array([np.pi, np.pi / 3, -np.pi / 3])
        corner = (
            (HOLE + BLOCK_RADIUS) / 2 * np.stack([np.cos(angles), np.sin(angles), 0 * angles], 1)
        )
        corner = jax.vmap(rotate_z, (0, None))(
            jnp.asarray(corner, state.position.dtype), state.object_yaw
        )
        corner = state.position[None] + corner
        radius = [PEG_RADIUS] * 12 + [(BLOCK_RADIUS - HOLE) / 2] * 3
        return (
            jnp.concatenate([base, corner]),
            jnp.concatenate(
                [base + jnp.array([[0.0, 0.0, PEG_HEIGHT]], base.dtype), jnp.roll(corner, 1, 0)]
            ),
            jnp.asarray(radius, state.position.dtype),
            jnp.arange(15) >= 12,
        )


def _is_path_blocked(state: State, tip: Array, yaw: Array) -> Array:
    """Return whether the held block hits a peg on its path; a step may jump over a wall."""
    parts = [k / 4 for k in range(1, 5)]
    interpolate = lambda k: (state.tip + k * (tip - state.tip), state.yaw + k * (yaw - state.yaw))
    return jnp.any(jnp.stack([is_blocked(held_position(state, *interpolate(k))) for k in parts]))


def is_on_peg(off: Array, aside: Any, height: Any) -> Array:
    """Return whether a block at the offset `off` [3] from its goal is within both tolerances, m."""
    return (jnp.sqrt(off[0] ** 2 + off[1] ** 2) < aside) & (jnp.abs(off[2]) < height)


def is_blocked(position: Array) -> Array:
    """Return whether a peg is in the walls of a block at `position` [3]."""
    off = jnp.asarray(PEGS, position.dtype) - position[None, :2]
    away = jnp.sqrt(jnp.sum(off**2, 1))
    through = (away > HOLE - PEG_RADIUS) & (away < BLOCK_RADIUS + PEG_RADIUS)
    return (position[2] - HALF_HEIGHT < FLOOR + PEG_HEIGHT) & jnp.any(through)
