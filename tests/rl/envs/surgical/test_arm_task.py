"""Properties of all tasks on arms: joints at work, distances, and the criterion of success."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.rl.envs.surgical.arm_task import ArmTask, State, distance
from jaxgpu.rl.envs.surgical.arms import ECM


def test_positions_fill_the_range_at_work():
    q = np.asarray(ArmTask(arm=ECM).random_joints(jax.random.key(0), 4000))
    low, high = np.array(ECM.working_lower), np.array(ECM.working_upper)
    part = (q - low) / (high - low)
    assert part.min() >= 0 and part.max() <= 1
    np.testing.assert_allclose(part.mean(0), 0.5, atol=5 * 12**-0.5 / 4000**0.5)
    np.testing.assert_allclose(part.std(0), 12**-0.5, rtol=0.03)


def test_a_distance_has_a_derivative_where_points_meet():
    """The softening adds at most a micrometre to the distance."""
    a, b = jnp.array([0.03, 0.0, 0.04]), jnp.zeros(3)
    np.testing.assert_allclose(distance(a, b), 0.05, rtol=1e-6)
    assert distance(a, a) <= 1.001e-6 and np.all(jax.grad(distance)(a, a) == 0)


def test_a_success_is_near_and_whatever_else_is_asked():
    task, state = ArmTask(max_steps=3), State(jnp.zeros(6), jnp.int32(3))
    for off, also, success in ((0.004, True, 1), (0.004, False, 0), (0.006, True, 0)):
        out = task.outcome(state, jnp.zeros(1), jnp.float32(off), jnp.bool_(also), 0.5)
        assert out.info["success"] == bool(success) and out.truncated and not out.terminated
        np.testing.assert_allclose(out.reward, success - 20 * off - 0.5, rtol=1e-6)
