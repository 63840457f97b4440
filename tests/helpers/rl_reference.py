"""Steps of gymnasium's classic tasks, and jaxgpu's steps from the same states."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu import rl

FILE = np.load(Path(__file__).parents[1] / "rl/gymnasium_reference.npz")


def load_steps(name):
    """Return before, action, after, observation, reward, terminated of 1000 random steps."""
    kinds = ("before", "action", "after", "observation", "reward", "terminated")
    return {kind: FILE[f"{name}/{kind}"] for kind in kinds}


def check_steps(name, state, dtype, tolerance):
    """Compare steps from `state(x, t)` in `dtype` with the steps of gymnasium."""
    before, actions = (jnp.asarray(load_steps(name)[kind]) for kind in ("before", "action"))
    if jnp.issubdtype(actions.dtype, jnp.floating):
        actions = actions.astype(dtype)
    states = state(before.astype(dtype), jnp.zeros(len(before), jnp.int32))
    step = replay(rl.make(name), states, actions)
    assert_like_gymnasium(name, step, step.state.x, tolerance)


def replay(env, states, actions):
    """Return one jaxgpu step from each state: `jax.vmap` of `step`."""
    step = lambda state, action: env.step(state, action, jax.random.key(0))
    return jax.jit(jax.vmap(step))(states, jnp.asarray(actions))


def assert_like_gymnasium(name, step, state, tolerance):
    """Compare states, observations, rewards and terminations of 1000 random steps."""
    want = load_steps(name)
    pairs = [
        (state, want["after"]),
        (step.observation, want["observation"]),
        (step.reward, want["reward"]),
    ]
    for got, expected in pairs:
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * scale)
    np.testing.assert_array_equal(step.terminated, want["terminated"])
