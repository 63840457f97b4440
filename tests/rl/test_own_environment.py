"""Errors for a user's environment that a learner cannot use."""

import jax
import jax.numpy as jnp
import pytest

from jaxgpu import rl


class Walk:
    """A walk on a line; `change` makes its steps invalid."""

    action_space = rl.Discrete(2)
    differentiable = False

    def __init__(self, change=lambda step: step, seen=1):
        self.change, self.observation_space = change, rl.Box(-9.0, 9.0, (seen,))

    def reset(self, key):
        return jnp.zeros(1), jnp.zeros(1)

    def step(self, state, action, key):
        x = state + action.astype(float) - 0.5
        over = jnp.abs(x[0]) > 2
        return self.change(rl.Step(x, x, x[0], over, jnp.zeros((), bool), {}))


def train_ppo(env, key=None):
    key = jax.random.key(0) if key is None else key
    return rl.train(env, rl.PPO(num_envs=4, num_steps=8), key, 32)


@pytest.mark.parametrize(
    "env, said",
    [
        (Walk, "PPO: env is the class Walk; it must be an environment, an object with reset"),
        (object(), "PPO: env is a object; it must be an environment"),
        (
            Walk(tuple),
            r"a step of Walk returns a tuple; it must return rl.Step\(state, observation",
        ),
        (
            Walk(lambda s: s._replace(info=None)),
            "returns an info that is a NoneType; it must be a d",
        ),
        (
            Walk(lambda s: s._replace(truncated=jnp.zeros(()))),
            "returns truncated of float32; it must be bool; compare numbers",
        ),
    ],
)
def test_what_is_no_environment_is_named(env, said):
    with pytest.raises(TypeError, match=said):
        train_ppo(env)


def test_an_observation_has_the_shape_that_its_space_says():
    with pytest.raises(ValueError, match=r"Walk has shape \[1\]; its observation_space says \[2\]"):
        train_ppo(Walk(seen=2))


def test_a_seed_is_no_key():
    with pytest.raises(TypeError, match=r"train: key=7; it must be a key; make it by jax.random"):
        train_ppo(Walk(), key=7)
