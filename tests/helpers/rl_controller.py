"""A resolved-rate controller, damped least squares: it shares nothing with learning."""

import jax
import jax.numpy as jnp
import numpy as np


def play(env, arm, residual, episodes=64, at="q"):
    """States and measurements [episodes, steps - 1]; `residual(state, q)` [M] should vanish.

    at: the joints of the state that actions move.
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
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(episode))(keys))
