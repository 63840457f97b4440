"""Properties that every task of handling materials must have."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.rl.plan import cost, trajectory


def slope_is_that_of_differences(env, actions):
    """Compare the reward's gradient in `actions` [T, A] with differences along one direction.

    Frames are shortened and computed in float64; call with x64.
    """

    def to_float64(a):
        return a.astype(jnp.float64) if jnp.asarray(a).dtype == jnp.float32 else a

    env = dataclasses.replace(jax.tree.map(to_float64, env), substeps=10)
    state, _ = jax.jit(env.reset)(jax.random.key(0))
    value_and_slope = jax.jit(jax.value_and_grad(lambda a: cost(env, state, a)))
    way = jnp.cos(jnp.arange(float(actions.size))).reshape(actions.shape)
    exact = jnp.sum(value_and_slope(actions)[1] * way)
    assert abs(exact) > 0
    # contact starts node by node, so the loss has kinks: use small steps and a tolerance of 1e-3
    shifted_cost = lambda h: value_and_slope(actions + h * way)[0]
    central = [(shifted_cost(h) - shifted_cost(-h)) / (2 * h) for h in (1e-4, 1e-5, 1e-6)]
    assert min(abs(c - exact) for c in central) <= 1e-3 * abs(exact)


def places(particles):
    """Return the positions [D, N] of all slots in float64, and a mask [N] of filled slots."""
    return np.asarray(particles.x, float).T, np.asarray(particles.active)


def play(env, *plans):
    """Return states and steps of plans [T, A] and then of random actions, and sums of rewards."""
    state, _ = jax.jit(env.reset)(jax.random.key(0))
    noise = jax.random.uniform(jax.random.key(0), plans[0].shape, minval=-1, maxval=1)
    whole = jax.jit(lambda state, actions: trajectory(env, state, actions))
    played = [whole(state, actions) for actions in (*plans, noise)]
    return played, [float(jnp.sum(steps["reward"])) for _, steps in played]
