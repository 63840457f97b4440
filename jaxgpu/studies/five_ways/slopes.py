"""How far the derivative of a return can be trusted, by the length of its window."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.rl.plan import EpisodeCost, initial_states

WINDOWS = (5, 15, 30, 75)  # frames
NEARBY = 1e-3  # how far another plan is, in shares of the greatest action


def agreement(env: Any, seeds: int, seed: int) -> dict[str, np.ndarray]:
    """Of derivatives at two plans that are nearly the same: cosine and norm, [windows, seeds].

    A slope that is of use is the same nearby; one that a splash has blown up is not.
    """
    states = initial_states(env, seeds, seed)
    shape = (seeds, env.max_steps, len(env.controls))
    plans = 0.5 * jax.random.normal(jax.random.key(seed), shape).clip(-2, 2)
    aside = NEARBY * jax.random.normal(jax.random.key(seed + 1), shape)
    rows = [_pair(env, states, plans, aside, frames) for frames in WINDOWS]
    return {
        "cosine": np.stack([cosine for cosine, _ in rows]),
        "norm": np.stack([norm for _, norm in rows]),
    }


def _pair(env: Any, states: Any, plans: Array, aside: Array, frames: int) -> Any:
    def one(args: tuple[Any, Array, Array]) -> tuple[Array, Array]:
        state, plan, move = args
        slope = jax.grad(EpisodeCost(env, state))
        here, there = slope(plan[:frames]), slope((plan + move)[:frames])
        length = lambda a: jnp.sqrt(jnp.sum(a * a))
        return jnp.sum(here * there) / (length(here) * length(there)), length(here)

    return jax.jit(lambda args: jax.lax.map(one, args))((states, plans, aside))
