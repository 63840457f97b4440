"""Properties of all tasks with fluids: motion of the tools, and the start of an episode."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu import rl
from jaxgpu.rl.envs.matter.task import State
from jaxgpu.rl.envs.matter.workspace import BoxWorkspace

ENV = rl.make("matter/pouring")  # frames of 20 ms


def test_a_tool_has_the_velocity_of_the_action_and_ends_its_frame_on_the_border_at_most():
    matter = jax.jit(ENV.simulation.init)()
    place = np.asarray(matter.tools[0].x)
    upper = place + np.array([0.001, 1.0], np.float32)
    env = replace(ENV, workspace=BoxWorkspace(tuple(place - 1), tuple(upper)))
    for action, v in (([-1.0, 0.5, 1.0], [-0.1, 0.05]), ([1.0, 0.0, 0.0], [0.05, 0.0])):
        tool = env._drive_tool(matter, jnp.array(action), jnp.int32(0)).tools[0]
        np.testing.assert_allclose(tool.v, v, atol=1e-5)
        np.testing.assert_allclose(tool.spin, [4.0 * action[2]], rtol=1e-6)


def test_particles_begin_within_a_share_of_their_spacing_on_either_side():
    begun = jax.jit(lambda key: ENV.reset(key)[0].matter.bodies)(jax.random.key(0))
    for body, particles in zip(ENV.simulation.bodies, begun):
        spacing = np.sqrt(np.asarray(body.volume))
        shift = np.asarray(particles.x)[np.asarray(particles.active)] - np.asarray(body.x)
        share = shift / (ENV.jitter * spacing)
        assert 0.95 < share.max() < 1.001 and -1.001 < share.min() < -0.95


def test_a_frame_counts_one_and_the_last_of_them_ends_the_episode(monkeypatch):
    """The reward is (1 - l / l_0) / max_steps, where `l` and `l_0` are 0.3 and 0.5."""
    said = SimpleNamespace(loss=lambda *_: jnp.float32(0.3), success=lambda *_: jnp.bool_(True))
    env, matter = replace(ENV, goal=said), jax.jit(ENV.simulation.init)()
    monkeypatch.setattr(type(env), "_simulate", lambda self, matter, *_: (matter, ()))
    begin = lambda t: State(matter, (), jnp.float32(0.5), jnp.int32(t))
    step = jax.jit(lambda t: env.step(begin(t), jnp.zeros(3), jax.random.key(0)))
    for t, over in ((0, False), (73, False), (74, True)):
        out = step(t)
        assert out.state.t == t + 1 and out.truncated == over and not out.terminated
        np.testing.assert_allclose(out.reward, (1 - 0.3 / 0.5) / 75, rtol=1e-5)
        assert out.info["success"] and out.info["loss"] == np.float32(0.3)
