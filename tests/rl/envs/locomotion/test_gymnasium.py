"""Every task against gymnasium's, step for step from recorded states."""

import jax
import numpy as np
import pytest
from doors import as_users
from rl_locomotion import recorded, replay

from jaxgpu import rl

QUICK = ["hopper", "reacher"]
SLOW = """half-cheetah walker2d swimmer inverted-double-pendulum pusher ant humanoid
humanoid-standup""".split()
TASKS = QUICK + [pytest.param(name, marks=pytest.mark.slow) for name in SLOW]


@pytest.mark.parametrize("name", TASKS)
def test_random_steps_are_those_of_gymnasium(x64, name):
    """Both solve the contact problem to its end; every number within 1e-6 of its size, or of 1."""
    want = recorded(name)
    with as_users():
        step = replay(rl.make(name), want)
    near = dict(rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(step.observation, want["observation"], **near)
    np.testing.assert_allclose(step.reward, want["reward"], **near)
    np.testing.assert_array_equal(step.terminated, want["terminated"])
    parts = [step.info[part] for part in sorted(step.info) if part.startswith("reward_")]
    for got, part in zip(parts, want["parts"].T):
        np.testing.assert_allclose(got, part, **near)
    assert not step.truncated.any() and not step.state.body.overflow.any()


@pytest.mark.parametrize("name", TASKS)
def test_the_first_observation_is_that_of_gymnasium(x64, name):
    """Forces of contacts are not yet there, and a quaternion is as it was drawn."""
    want, env = recorded(name), rl.make(name)
    with as_users():
        first = jax.jit(lambda q, v: env._observe(env.begin(q, v)))
        observation = first(want["start/qpos"], want["start/qvel"])
    np.testing.assert_allclose(observation, want["start/observation"], rtol=0, atol=1e-9)
