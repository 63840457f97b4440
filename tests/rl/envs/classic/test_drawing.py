"""Scenes of the classic tasks: positions of their parts, and green parts at the goal."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.render.capsules import GREEN, ORANGE

CASES = {  # a state; which rod; its end (x, z); which rod has a colour, and whether it is green
    "cartpole": ([1.0, 0.0, np.pi / 6, 0.0], 2, (1.5, 0.1 + 0.75**0.5), 2, False),
    "acrobot": ([np.pi / 2, np.pi / 2, 0.0, 0.0], 2, (1.0, 1.0), 0, False),
    "mountain-car": ([0.6, 0.0], 25, (0.6, 0.61 + 0.45 * np.sin(1.8)), 24, True),
    "mountain-car-continuous": ([0.3, 0.0], 25, (0.3, 0.61 + 0.45 * np.sin(0.9)), 24, False),
}


@pytest.mark.parametrize("name", CASES)
def test_stands_where_the_state_says(name):
    x, rod, end, inked, there = CASES[name]
    env = rl.make(name)
    state = replace(env.reset(jax.random.key(0))[0], x=jnp.array(x, jnp.float32))
    scene = env.scene(state)
    np.testing.assert_allclose(scene.end[rod], [end[0], 0.0, end[1]], atol=1e-6)
    np.testing.assert_allclose(scene.colour[inked], GREEN if there else ORANGE, atol=1e-7)


@pytest.mark.parametrize("angle", [0.2, 2.0])
def test_the_pendulum_is_green_when_it_is_up(angle):
    env = rl.make("pendulum")
    state = replace(env.reset(jax.random.key(0))[0], angle=jnp.float32(angle))
    scene = env.scene(state)
    np.testing.assert_allclose(scene.end[2], [np.sin(angle), 0.0, np.cos(angle)], atol=1e-6)
    np.testing.assert_allclose(scene.colour[2], GREEN if angle < 0.3 else ORANGE, atol=1e-7)
    assert not scene.start[:2].any() and not scene.end[1].any()  # rod and hub are at the pivot
    np.testing.assert_array_equal(scene.start[2], scene.end[2])
