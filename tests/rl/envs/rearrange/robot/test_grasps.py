"""Whether Fetch can grasp at a position: ahead, too far, behind a wall, under a shelf."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.rl.envs.rearrange.robot import reachability

pytestmark = pytest.mark.slow  # one program of all postures serves all

NOTHING = [0.0, 0.0, -1e3, 0.0, 0.0, 0.0, 1.0, 0.0]
TABLE = [0.0, 0.0, 0.685, 0.3, 0.5, 0.015, 1.0, 0.0]
TOP = np.array([-0.15, 0.0, 0.75], np.float32)  # 5 cm above the table, near its edge


def find_grasps(bases, *boxes):
    """Return whether a grasp exists from each of up to three bases, by one compiled program."""
    rows = jnp.asarray([*boxes, *(4 - len(boxes)) * [NOTHING]], jnp.float32)
    three = np.resize(np.array(bases, np.float32), (3, 2))
    return np.asarray(reachability.can_reach(rows, three, TOP)).tolist()[: len(bases)]


def test_the_hand_gets_to_what_is_ahead_and_no_farther_than_the_arm_is_long():
    bases = [[-0.85, 0.0], [-0.8, 0.4], [-2.0, 0.0]]
    assert find_grasps(bases) == find_grasps(bases, TABLE) == [True, True, False]


def test_it_gets_nowhere_through_a_wall_or_a_board():
    """A grasp exists from the other side of the wall."""
    wall = [-0.4, 0.0, 1.0, 0.05, 3.0, 1.0, 1.0, 0.0]
    lid = [0.0, 0.0, 0.80, 0.3, 0.5, 0.015, 1.0, 0.0]
    assert find_grasps([[-0.85, 0.0], [-0.15, -1.2]], TABLE, wall) == [False, False]
    assert find_grasps([[-0.85, 0.0]], TABLE, lid) == [False]
    assert find_grasps([[-0.85, 0.0]], wall) == [False]


def test_the_base_does_not_stand_in_a_box():
    chest = [-0.85, 0.0, 0.2, 0.2, 0.2, 0.2, 1.0, 0.0]
    assert find_grasps([[-0.85, 0.0], [-0.8, 0.4]], TABLE, chest)[0] is False
