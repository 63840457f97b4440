"""An arm in an image: the ends of its links, and the color of the goal."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.render.capsules import BLUE, GREEN, ORANGE, STEEL
from jaxgpu.rl.envs.surgical.arms import PSM
from jaxgpu.rl.envs.surgical.drawing import draw_arm, draw_reach
from jaxgpu.rl.envs.surgical.kinematics import forward_kinematics


def test_an_arm_ends_at_its_tip_and_the_ball_turns_green():
    q, goal = jnp.array([0.3, -0.2, 0.12, 0.5, 0.6, -0.3]), jnp.array([0.05, 0.02, -0.12])
    make = jax.jit(lambda near: draw_arm(PSM, q, goal, near, 0.004))
    near, far = make(jnp.bool_(True)), make(jnp.bool_(False))
    np.testing.assert_array_equal(near.end[-1], goal)
    assert near.start.shape == (8, 3) and np.linalg.norm(near.end[-2] - near.start[-2]) > 0.0101
    assert near.colour[-1, 1] > near.colour[-1, 0] and far.colour[-1, 0] > far.colour[-1, 1]


def test_links_have_their_radius_and_the_ball_is_wider_than_they_are():
    """The last link is the thinnest; the floor is below all points that the arm can reach."""
    q, goal = jnp.array([0.3, -0.2, 0.2, 0.5, 0.6, -0.3]), jnp.array([0.05, 0.02, -0.12])
    scene = jax.jit(lambda: draw_arm(PSM, q, goal, jnp.bool_(True), 0.004))()
    np.testing.assert_allclose(scene.radius[:-2], 0.004, rtol=1e-6)
    assert 0.002 < scene.radius[-2] < 0.003 and 0.004 < scene.radius[-1] < 0.006
    np.testing.assert_array_equal(scene.start[1:-1], scene.end[:-2])  # a chain from the origin
    assert not scene.start[0].any() and (scene.start[-1] == scene.end[-1]).all()
    np.testing.assert_allclose([scene.floor, scene.tile], [-0.22, 0.04], rtol=1e-6)
    assert scene.floor < -(0.2 - 0.0156 + 0.0193)  # the working tip is not deeper
    np.testing.assert_allclose(scene.colour[:-2], np.tile(STEEL, (6, 1)), rtol=1e-6)
    np.testing.assert_allclose(scene.colour[-2:], [BLUE, GREEN], rtol=1e-6)


def test_a_goal_is_green_within_the_tolerance():
    q = jnp.array([0.3, -0.2, 0.12, 0.5, 0.6, -0.3])
    tip = jax.jit(lambda: forward_kinematics(PSM, q)[0])()
    draw = jax.jit(lambda goal: draw_reach(PSM, q, goal, 0.005, 0.004))
    for off, color in ((0.004, GREEN), (0.006, ORANGE)):
        drawn = draw(tip.at[0].add(off))
        np.testing.assert_array_equal(drawn.end[-1], tip.at[0].add(off))
        np.testing.assert_allclose(drawn.colour[-1], color, rtol=1e-6)
