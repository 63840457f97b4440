"""A resolved-rate controller (damped least squares), and gradient checks by differences."""

import jax
import jax.numpy as jnp
import numpy as np


def play(env, arm, residual, episodes=64, at="q"):
    """Return states and measurements [episodes, steps - 1] that reduce `residual(state, q)` [M].

    at: the field of the state with the joints that actions move.
    """
    low, high = arm.working_range(jnp.float32)

    def act(state):
        now = getattr(state, at)
        jacobian = jax.jacfwd(lambda q: residual(state, q))(now) * (high - low)[None]
        left = -residual(state, now)
        gram = jnp.einsum("ik,jk->ij", jacobian, jacobian, precision="highest")
        step = jnp.linalg.solve(gram + 1e-6 * jnp.eye(len(left)), left)
        move = jnp.einsum("ik,i->k", jacobian, step, precision="highest") / env.speed
        return jnp.clip(move / jnp.maximum(1.0, jnp.abs(move).max()), -1, 1)

    def episode(key):
        def move(state, _):
            out = env.step(state, act(state), key)
            return out.state, (out.state, out.info)

        return jax.lax.scan(move, env.reset(key)[0], length=env.max_steps - 1)[1]

    keys = jax.random.split(jax.random.key(0), episodes)
    few = {"xla_backend_optimization_level": 0}
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(episode), compiler_options=few)(keys))


def slope_is_that_of_differences(f, x, rtol, step=1e-5):
    """Compare the gradient of `f(x)` [] at `x` with central differences; call with x64."""
    x = np.asarray(x, float)
    ways = step * np.eye(x.size).reshape(-1, *x.shape)
    few = {"xla_backend_optimization_level": 0}
    lanes = jax.jit(jax.vmap(jax.value_and_grad(f)), compiler_options=few)
    value, slope = map(np.asarray, lanes(np.concatenate([x[None], x + ways, x - ways])))
    central = (value[1 : 1 + x.size] - value[1 + x.size :]) / (2 * step)
    np.testing.assert_allclose(slope[0].ravel(), central, rtol=rtol, atol=rtol)
    assert np.abs(central).max() > 0
