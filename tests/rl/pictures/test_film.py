"""Films: what stands where at a state, and colours that survive the writing."""

import io
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from jaxgpu import rl
from jaxgpu.render import Camera
from jaxgpu.rl.envs.surgical.kinematics import forward_kinematics
from jaxgpu.rl.pictures import film


def test_a_film_keeps_the_colours_of_the_scene():
    images = np.zeros((2, 8, 8, 3), np.uint8)
    images[0, 2, 2], images[1, 3, 3] = np.round(255 * np.array([film.INKS[2], film.INKS[3]]))
    shown = Image.open(io.BytesIO(film.gif(images)))
    for frame, spot in ((0, (2, 2)), (1, (3, 3))):
        shown.seek(frame)
        near = np.array(shown.convert("RGB").getpixel(spot), int) - images[frame][spot]
        assert np.abs(near).max() <= 7  # a shade: 255 / 41


@pytest.mark.parametrize("name, count", [("needle-pick", 12), ("peg-transfer", 12 + 3)])
def test_jaw_and_object_stand_where_the_state_says(name, count):
    env = rl.make(f"surgical/{name}")
    begin = lambda key: ((state := env.reset(key)[0]), film.scene(env, state))
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
    """Of a goal, of a swinging one, and of what a camera should have in its centre."""
    orange = lambda env, state: bool(np.diff(film.scene(env, state).colour[-1, :2])[0] < 0)
    for name in ("psm-reach", "psm-track", "ecm-centre"):
        env = rl.make(f"surgical/{name}")
        state, _ = jax.jit(env.reset)(jax.random.key(0))
        assert orange(env, state)
    lens, R = forward_kinematics(env.arm, state.q)
    assert not orange(env, replace(state, target=lens + 0.05 * R[:, 2], roll=state.q[3]))
    assert orange(env, replace(state, target=lens + 0.05 * R[:, 2], roll=state.q[3] + 0.1))
    reach = rl.make("surgical/psm-reach")
    state, _ = reach.reset(jax.random.key(0))
    assert not orange(reach, replace(state, goal=forward_kinematics(reach.arm, state.q)[0]))
    camera = Camera((0.27, -0.33, 0.03), (0.0, 0.0, -0.11), (0.0, 0.0, 1.0), width=8, height=8)
    states = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    assert film.film(reach, states, camera).shape == (2, 8, 8, 3)
