"""Environments with known returns, and one that fails at random."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.inputs.fields import pytree, static
from jaxgpu.rl import Box, Step
from jaxgpu.rl.vector import vectorize


@pytree
class Probe:
    """Environment with reward 1 at every step and one observation; truncated after 20 steps."""

    period: int = 20

    observation_space = Box(-np.inf, np.inf, (1,))
    action_space = Box(-1.0, 1.0, (1,))
    differentiable = True

    def reset(self, key):
        return jnp.int32(0), jnp.zeros(1)

    def step(self, state, action, key):
        over = state + 1 >= self.period
        info = {"success": over}
        return Step(state + 1, jnp.zeros(1), jnp.ones(()), jnp.zeros_like(over), over, info)


@pytree
class Drift:
    """A position that drifts by 0.3 per step under any action; reward 1 - x^2, ends above 1.

    It starts within `spread` of 0.25 and is truncated after 3 steps.
    """

    action_space: Any = static()
    spread: float = 0.75

    observation_space = Box(-np.inf, np.inf, (1,))
    differentiable = True

    def reset(self, key):
        x = 0.25 + self.spread * jax.random.uniform(key, (), minval=-1, maxval=1)
        return (x, jnp.int32(0)), x[None]

    def step(self, state, action, key):
        x, t = state[0] + 0.3, state[1] + 1
        over = x > 1
        return Step((x, t), x[None], 1 - x * x, over, (t >= 3) & ~over, {"success": over})


def drift_outcomes(x):
    """Return the outcomes of steps from positions x [T, B] of `Drift` with resets, in NumPy.

    These are next positions, rewards, and masks of terminated and of truncated steps, [T, B] each.
    """
    after = x + np.float32(0.3)
    ended = after > 1
    cut, t = np.zeros_like(ended), np.zeros(x.shape[1], int)
    for i in range(len(x)):
        t += 1
        cut[i] = (t >= 3) & ~ended[i]
        t[ended[i] | cut[i]] = 0
        if i + 1 < len(x):
            on = ~(ended[i] | cut[i])
            np.testing.assert_allclose(x[i + 1][on], after[i][on], rtol=1e-6)
    return after, 1 - after**2, ended, cut


def lambda_returns(reward, ahead, ended, cut, gamma, share):
    """Return TD(lambda) returns [T, B] by recursion; `ahead` are values of the next states."""
    returns, later = np.zeros_like(reward), ahead[-1]
    for i in range(len(reward))[::-1]:
        mixed = (1 - share) * ahead[i] + share * later
        beyond = np.where(ended[i], 0, np.where(cut[i], ahead[i], mixed))
        returns[i] = later = reward[i] + gamma * beyond
    return returns


def init_state(learner, env, key):
    """Return the state of a training before its first step, with arbitrary cosines as weights."""
    shapes = jax.eval_shape(lambda key: learner.init(env, key, 10), key)
    state = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes)
    weights = {"params": waves(state.params, 0.0)}
    if hasattr(state, "target"):
        weights["target"] = waves(state.target, 1.0)
    envs = vectorize(env, learner.num_envs).reset(key)
    return replace(state, env_state=envs, num_updates=np.float32(10), **weights)


def waves(tree, shift):
    """Replace all arrays by cosines, all of them different."""
    leaves, structure = jax.tree.flatten(tree)
    wave = lambda i, x: np.cos(shift + 0.8 * i + 1.7 * np.arange(x.size)).reshape(x.shape)
    return structure.unflatten(wave(i, x).astype(x.dtype) for i, x in enumerate(leaves))


@pytree
class Brittle:
    """An environment whose steps randomly lead to nan and reward inf; a start may be nan too."""

    env: Any
    chance: float = 0.1
    torn: float = 0.0  # probability of a nan start

    observation_space = property(lambda self: self.env.observation_space)
    action_space = property(lambda self: self.env.action_space)
    differentiable = property(lambda self: self.env.differentiable)

    def reset(self, key):
        """Reset the environment; the result may be nan."""
        return corrupt(self.env.reset(key), jax.random.bernoulli(key, self.torn))

    def step(self, state, action, key):
        """Step the environment; the result may be nan, including its derivatives."""
        step = self.env.step(state, action, key)
        bad = jax.random.bernoulli(key, self.chance)
        state, observation = corrupt((step.state, step.observation), bad)
        reward = step.reward + jnp.where(bad, jnp.inf, 0.0)
        return step._replace(state=state, observation=observation, reward=reward)


def corrupt(tree, bad):
    factor = jnp.where(bad, jnp.nan, 1.0)
    is_floating = lambda x: jnp.issubdtype(x.dtype, jnp.floating)
    return jax.tree.map(lambda x: x * factor if is_floating(x) else x, tree)


def is_finite(tree):
    """Return whether all floating numbers of a tree are finite."""
    return all(np.isfinite(x).all() for x in jax.tree.leaves(tree) if x.dtype.kind == "f")
