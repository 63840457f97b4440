"""Generalized advantage estimation: Schulman et al. (2016), arXiv:1506.02438, equation 16."""

import jax
import jax.numpy as jnp
from jax import Array

from ..vector import Outcome


def advantages(
    reward: Array,
    value: Array,
    final_value: Array,
    terminated: Array,
    truncated: Array,
    gamma: Array | float,
    gae_lambda: Array | float,
    broken: Array | bool = False,
) -> Array:
    """Return the advantages [T, ...] of the actions taken, by one backward scan.

    Args:
        reward: rewards, [T, ...].
        value: values of the observations acted on, [T, ...].
        final_value: values of the observations after the steps, before any reset, [T, ...]; ignored
            where the episode terminated, used to bootstrap where it was truncated.
        terminated: [T, ...] bool.
        truncated: [T, ...] bool.
        gamma: discount, in [0, 1].
        gae_lambda: lambda, in [0, 1].
        broken: [T, ...] bool, steps with a non-finite result: their advantage is 0, and the
            preceding steps bootstrap from the value of the observation acted on.

    >>> one, no = jnp.ones(2), jnp.zeros(2, bool)
    >>> advantages(one, 0 * one, 0 * one, no, no, 0.5, 1.0)
    Array([1.5, 1. ], dtype=float32)
    """
    error = reward + gamma * jnp.where(terminated, 0.0, final_value) - value
    error = jnp.where(broken, 0.0, error)
    decay = jnp.where(terminated | truncated | broken, 0.0, gamma * gae_lambda)

    def accumulate(later: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        now = row[0] + row[1] * later
        return now, now

    return jax.lax.scan(accumulate, jnp.zeros_like(error[0]), (error, decay), reverse=True)[1]


def outcome_advantages(
    out: Outcome, value: Array, final_value: Array, gamma: Array | float, gae_lambda: Array | float
) -> Array:
    """Return the `advantages` [T, B] of the actions that led to `out`."""
    ends = out.terminated, out.truncated
    return advantages(out.reward, value, final_value, *ends, gamma, gae_lambda, out.broken)
