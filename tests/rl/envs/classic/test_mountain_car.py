"""Both mountain cars against gymnasium, step by step."""

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_reference import check_steps

from jaxgpu import rl
from jaxgpu.rl.envs.classic.mountain_car import State

NAMES = ["mountain-car", "mountain-car-continuous"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-7), ("float32", 1e-6)])
def test_1000_random_steps_are_those_of_gymnasium(x64, name, dtype, tolerance):
    check_steps(name, State, dtype, tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_the_hill_terminates(name):
    env = rl.make(name)
    near = State(jnp.array([0.499, 0.05]), jnp.int32(0))
    action = jnp.int32(2) if name == "mountain-car" else jnp.array([1.0])
    step = env.step(near, action, jax.random.key(0))
    assert step.terminated and step.info["success"]
    assert step.reward == pytest.approx(-1 if name == "mountain-car" else 99.9)


@pytest.mark.parametrize("name", NAMES)
def test_conforms(name):
    env = rl.make(name)
    state, _ = env.reset(jax.random.key(0))
    action = env.action_space.sample(jax.random.key(2))
    conformance.check(jax.jit(env.step), state, action, jax.random.key(1), batched=(0,))


def test_the_car_is_drawn_on_its_hill():
    """The car is a ball of 5 cm, 6 cm above the hill."""
    env = rl.make("mountain-car")
    for x in (-0.9, -0.5, 0.3):
        drawn = env.scene(State(np.float32([x, 0]), np.int32(0)))
        car = np.argmin(np.abs(drawn.end - drawn.start).max(1))  # a ball
        hill = 0.45 * np.sin(3 * x) + 0.55
        np.testing.assert_allclose(drawn.start[car], [x, 0, hill + 0.06], atol=1e-6)
