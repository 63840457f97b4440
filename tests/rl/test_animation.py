"""Videos: positions of the drawn parts at a state."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.render import Camera, Capsules, show
from jaxgpu.rl.animation import render_frames
from jaxgpu.rl.envs.locomotion import robot
from jaxgpu.rl.envs.locomotion.drawing import draw_links
from jaxgpu.rl.envs.surgical.kinematics import forward_kinematics


@pytest.mark.parametrize("name, count", [("needle-pick", 12), ("peg-transfer", 12 + 3)])
def test_jaw_and_object_stand_where_the_state_says(name, count):
    env = rl.make(f"surgical/{name}")
    begin = lambda key: ((state := env.reset(key)[0]), env.scene(state))
    state, seen = jax.tree.map(np.asarray, jax.jit(begin)(jax.random.key(0)))
    jaw, solids = slice(8, 10), slice(10, None)
    assert seen.start[solids].shape == (count, 3)
    np.testing.assert_allclose(np.mean(seen.end[jaw], 0), state.tip, atol=1e-7)
    np.testing.assert_allclose(seen.end[6], state.tip, atol=1e-6)  # where the arm ends
    blue = np.asarray(seen.colour[solids, 2] > 0.6)
    np.testing.assert_array_equal(blue, np.arange(count) >= count - (12 if count == 12 else 3))
    near = np.linalg.norm(np.asarray(seen.start[solids])[blue] - state.position, axis=1)
    assert near.max() < 0.03


@pytest.mark.slow
def test_the_goal_turns_green_when_it_is_reached():
    """Test a goal, a moving goal, and a target that a camera must center."""
    orange = lambda env, state: bool(np.diff(env.scene(state).colour[-1, :2])[0] < 0)
    for name in ("psm-reach", "psm-track", "ecm-centre"):
        env = rl.make(f"surgical/{name}")
        state, _ = jax.jit(env.reset)(jax.random.key(0))
        assert orange(env, state)
    lens, R = forward_kinematics(env.arm, state.q)
    assert not orange(env, replace(state, goal=lens + 0.05 * R[:, 2], goal_roll=state.q[3]))
    assert orange(env, replace(state, goal=lens + 0.05 * R[:, 2], goal_roll=state.q[3] + 0.1))
    reach = rl.make("surgical/psm-reach")
    state, _ = reach.reset(jax.random.key(0))
    assert not orange(reach, replace(state, goal=forward_kinematics(reach.arm, state.q)[0]))
    camera = Camera((0.27, -0.33, 0.03), (0.0, 0.0, -0.11), (0.0, 0.0, 1.0), width=8, height=8)
    states = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    assert render_frames(reach, states, camera).shape == (2, 8, 8, 3)


def test_a_robot_is_where_mujoco_has_it():
    """Compare the origins and centers of bodies, for a bent and displaced swimmer."""
    file = Path(robot.__file__).parent / "assets" / "swimmer.xml"
    env, source = rl.make("swimmer"), mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(source)
    data.qpos[:] = [0.4, -0.3, 0.7, -1.1, 0.9]
    mujoco.mj_forward(source, data)
    body = env.begin(jnp.asarray(data.qpos, jnp.float32)).body
    seen = jax.jit(lambda body: draw_links(env.model, body))(body)
    hangs = np.arange(2, source.nbody)  # on another body than the world
    start = np.concatenate([data.xpos[source.body_parentid[hangs]], data.xpos[1:]])
    end = np.concatenate([data.xpos[hangs], data.xipos[1:]])
    np.testing.assert_allclose(seen.start, start, atol=1e-6)
    np.testing.assert_allclose(seen.end, end, atol=1e-6)
    assert seen.floor < data.xipos[1:, 2].min() - 0.01
    states = jax.tree.map(lambda x: jnp.stack([x, x]), env.begin(env.model.qpos0))
    assert show(env, states).moments == 2


@pytest.mark.parametrize("height, floor", [(5.0, 0.0), (0.0, -0.1), (-5.0, -5.1)])
def test_the_floor_is_at_0_m_or_below_all_of_a_robot(height, floor):
    """One body has no parent, one is a metre beside it; links are a tenth as thick."""
    row = lambda *along: jnp.array([[x, 0.0, height] for x in along])
    ends = row(0.0, 0.0, 0.0, 1.0), row(0.0, 1.0, 0.0, 1.0)  # to each body, then to its middle
    tree = SimpleNamespace(body_parent=[0, 0, 1])
    seen = draw_links(SimpleNamespace(layout=tree, view=lambda state: {"links": ends}), None)
    np.testing.assert_allclose(seen.floor, floor, rtol=1e-6)
    np.testing.assert_allclose(seen.radius, 0.1, rtol=1e-6)


def test_anybodys_environment_is_filmed_through_its_method():
    class Falling:
        """A ball at a height, which is neither a task of this package nor a pytree."""

        def scene(self, height):
            at = jnp.stack([jnp.zeros_like(height), jnp.zeros_like(height), height])[None]
            red = jnp.array([[1.0, 0.0, 0.0]])
            return Capsules(at, at, jnp.array([0.2]), red, jnp.float32(-1), jnp.float32(0.5))

    camera = Camera((0.0, -3.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), width=20, height=20)
    images = render_frames(Falling(), jnp.array([0.5, -0.5]), camera).astype(int)
    rows = [np.flatnonzero((image[..., 0] > 2 * image[..., 1]).any(1)).mean() for image in images]
    assert rows[0] < 8 < 12 < rows[1]  # higher up, then further down
    with pytest.raises(TypeError, match="render_frames: object has no method `scene`; write one"):
        render_frames(object(), jnp.zeros(2), camera)
    # The number of states divides by no number of cores, and each image shows its own state.
    heights = jnp.linspace(-0.5, 0.5, 7)
    alone = render_frames(Falling(), heights[5:6], camera)
    np.testing.assert_array_equal(render_frames(Falling(), heights, camera)[5:6], alone)
    for amiss in (heights[:0], heights[0], {}, (heights, heights[:2])):
        with pytest.raises(
            ValueError, match=r"render_frames: states begins with .*; all of its arrays must"
        ):
            render_frames(Falling(), amiss, camera)
