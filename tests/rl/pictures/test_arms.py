"""An arm in a picture: where its links end, and the colour of the goal."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.rl.envs.surgical.arms import PSM
from jaxgpu.rl.pictures.arms import arm


def test_an_arm_ends_at_its_tip_and_the_ball_turns_green():
    q, goal = jnp.array([0.3, -0.2, 0.12, 0.5, 0.6, -0.3]), jnp.array([0.05, 0.02, -0.12])
    make = jax.jit(lambda near: arm(PSM, q, goal, near, 0.004))
    near, far = make(jnp.bool_(True)), make(jnp.bool_(False))
    np.testing.assert_array_equal(near.end[-1], goal)
    assert near.start.shape == (8, 3) and np.linalg.norm(near.end[-2] - near.start[-2]) > 0.0101
    assert near.colour[-1, 1] > near.colour[-1, 0] and far.colour[-1, 0] > far.colour[-1, 1]
