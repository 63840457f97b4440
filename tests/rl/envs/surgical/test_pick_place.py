"""The jaw's grasps and releases, its rewards, and the arm behind it, on the needle task."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.rl.envs.surgical.arms import PSM
from jaxgpu.rl.envs.surgical.kinematics import forward_kinematics
from jaxgpu.rl.envs.surgical.pick_place import FLOOR, HALF, HEIGHT, MARGIN, downward_frame

ENV = rl.make("surgical/needle-pick")
FEW = {"xla_backend_optimization_level": 0}  # programs that run a few times
RESET, STEP = (jax.jit(f, compiler_options=FEW) for f in (ENV.reset, ENV.step))
STILL, CLOSE = np.float32([0, 0, 0, 0, 1]), np.float32([0, 0, 0, 0, -1])


def state_above(seed=0):
    """Return a state with the tool over the needle and the jaw open across the wire."""
    state, _ = RESET(jax.random.key(seed))
    return replace(state, tip=state.position, yaw=state.object_yaw)


def step(state, action=STILL):
    return STEP(state, action, jax.random.key(0))


@pytest.mark.parametrize(
    "offset, skew, shut, held",
    [
        (1.9e-3, 0, 0, 1),
        (2.1e-3, 0, 0, 0),
        (0, 0.33, 0, 1),
        (0, 0.37, 0, 0),
        (0, 3.1, 0, 1),
        (0, 0, 1, 0),
    ],
)
def test_the_jaw_takes_what_is_near_and_across_it_when_it_closes(offset, skew, shut, held):
    state = state_above()
    tip = np.asarray(state.tip) + np.float32([0.0, 0.0, offset])
    yaw = np.float32(state.yaw + np.float32(skew))
    state = replace(state, tip=tip, yaw=yaw, closed=np.bool_(shut))
    assert step(state, CLOSE).state.held == bool(held)


def test_what_is_held_is_rigid_in_the_jaw_and_falls_when_let_go():
    state = step(
        replace(state_above(1), tip=state_above(1).tip + np.float32([0, 1e-3, 5e-4])), CLOSE
    ).state
    grip = np.asarray(state.position - state.tip)
    after = step(state, np.float32([0.5, -0.3, 1.0, 0.8, -1.0])).state
    turn = 0.8 * np.pi / 6
    c, s = np.cos(turn), np.sin(turn)
    turned = [c * grip[0] - s * grip[1], s * grip[0] + c * grip[1], grip[2]]
    np.testing.assert_allclose(after.position - after.tip, turned, atol=1e-7)
    np.testing.assert_allclose(after.tip - state.tip, [0.005, -0.003, 0.01], atol=1e-7)
    np.testing.assert_allclose(after.object_yaw - state.object_yaw, turn, rtol=1e-5)
    end = step(after).state
    assert not end.held and end.position[2] == np.float32(FLOOR + 0.0005)
    np.testing.assert_array_equal(end.position[:2], after.position[:2])


def test_rewards_are_sparse_and_shaping_adds_up_to_the_progress():
    """Sparse rewards are -1 and 0 as in SurRoL; shaped ones sum to the covered distance."""
    state = state_above(2)
    for off, reward in ((0.0049, 0.0), (0.0051, -1.0)):
        there = replace(state, goal=state.position + np.float32([off, 0.0, 0.0]))
        assert step(there).reward == reward
    shaped = rl.make("surgical/needle-pick", shaping=20.0)
    move, key = jax.jit(shaped.step, compiler_options=FEW), jax.random.key(0)
    rng = np.random.default_rng(0)
    first, _ = RESET(jax.random.key(3))
    remaining = lambda s: (
        np.linalg.norm(s.tip - s.position) * (not s.held) + np.linalg.norm(s.position - s.goal)
    )
    state, total = first, 0.0
    for _ in range(6):
        out = move(state, rng.uniform(-1, 1, 5).astype(np.float32), key)
        state, total = out.state, total + float(out.reward) + (not out.info["success"])
    np.testing.assert_allclose(total, 20 * (remaining(first) - remaining(state)), rtol=1e-4)


def test_the_arm_can_stand_wherever_the_tool_may_be():
    """Joints within their limits reach all corners and rotations of a half turn."""
    side = np.array([-1, 1]) * (HALF + MARGIN)
    parts = (side, side, [FLOOR, FLOOR + HEIGHT + MARGIN], np.linspace(-np.pi / 2, np.pi / 2, 7))
    poses = jnp.asarray(np.array(np.meshgrid(*parts)).reshape(4, -1).T, jnp.float32)
    state, _ = RESET(jax.random.key(0))
    stand = lambda pose: ENV.joints(replace(state, tip=pose[:3], yaw=pose[3]))
    q = np.asarray(jax.jit(jax.vmap(stand))(poses))
    assert (np.array(PSM.lower) <= q).all() and (q <= np.array(PSM.upper)).all()
    tip, R = jax.jit(jax.vmap(lambda q: forward_kinematics(PSM, q)))(q)
    np.testing.assert_allclose(tip, poses[:, :3], atol=1e-6)
    np.testing.assert_allclose(R, jax.vmap(downward_frame)(poses[:, 3]), atol=1e-5)
