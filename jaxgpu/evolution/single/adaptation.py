"""Weights and learning rates of the CMA family, and the adaptation of its step size.

Hansen (2016), "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772, table 1. They are
functions of the population size as an operand, so a restart can change it in a compiled loop.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.devices.precision import safe_tiny
from jaxgpu.inputs.fields import pytree


@pytree
class Rates:
    """Learning rates and weights of CMA-ES."""

    mu_eff: Array  # [] effective number of parents
    weights: Array  # [N] by rank, best first: positive ones sum to 1, 0 beyond the population
    sigma: Array  # [] c_sigma, rate of the step-size path
    damping: Array  # [] d_sigma, damping of the step size
    path: Array  # [] c_c, rate of the covariance path
    one: Array  # [] c_1, rate of the rank-one update
    mu: Array  # [] c_mu, rate of the rank-mu update


def rates(size: int, count: Array | float, dimension: int, dtype: jnp.dtype) -> Rates:
    """Return the rates of a population of `count`, stored in `size` slots, for D = `dimension`."""
    n, place = dimension, jnp.arange(1, size + 1).astype(dtype)
    count = jnp.asarray(count, dtype)
    raw = jnp.where(place <= count, jnp.log((count + 1) / 2) - jnp.log(place), 0)
    up, down = jnp.maximum(raw, 0), jnp.maximum(-raw, 0)
    mu_eff = jnp.sum(up) ** 2 / jnp.sum(up * up)
    mu_less = jnp.sum(down) ** 2 / jnp.maximum(jnp.sum(down * down), 1e-30)
    one = 2 / ((n + 1.3) ** 2 + mu_eff)
    mu = jnp.minimum(1 - one, 2 * (mu_eff - 1.75 + 1 / mu_eff) / ((n + 2) ** 2 + mu_eff))
    # equations 50 to 53: upper limit of the sum of the negative weights
    most = jnp.minimum(1 + one / mu, 1 + 2 * mu_less / (mu_eff + 2))
    most = jnp.minimum(most, (1 - one - mu) / (n * mu))
    sigma = (mu_eff + 2) / (n + mu_eff + 5)
    return Rates(
        mu_eff=mu_eff,
        weights=up / jnp.sum(up) - most * down / jnp.maximum(jnp.sum(down), 1e-30),
        sigma=sigma,
        damping=1 + 2 * jnp.maximum(0, jnp.sqrt((mu_eff - 1) / (n + 1)) - 1) + sigma,
        path=(4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n),
        one=one,
        mu=mu,
    )


def normal_length(dimension: int) -> float:
    """Return the mean length of a standard normal vector, to 1e-4 relative for dimension >= 2."""
    n = dimension
    return n**0.5 * (1 - 1 / (4 * n) + 1 / (21 * n * n))


def step_size(rates: Rates, sigma: Array, path: Array) -> Array:
    """Return sigma by equation 44: it grows if the path is longer than that of a random walk.

    The growth per generation is limited to e, as in the authors' programs.
    """
    longer = jnp.sqrt(jnp.sum(path * path)) / normal_length(path.shape[0]) - 1
    return avoid_underflow(sigma * jnp.exp(jnp.minimum(1, rates.sigma / rates.damping * longer)))


def avoid_underflow(size: Array) -> Array:
    """Return the size, increased if necessary so that one can divide by it and by its square.

    A run that continues after all candidates have become equal would shrink its steps forever.
    """
    return jnp.maximum(size, safe_tiny(size.dtype) ** 0.5)


def update_path(path: Array, rate: Array, mu_eff: Array, step: Array) -> Array:
    """Return the path after one more step; its variance stays 1 under random selection."""
    return (1 - rate) * path + jnp.sqrt(rate * (2 - rate) * mu_eff) * step


def is_path_long(rates: Rates, path: Array, generation: Array) -> Array:
    """Return whether h_sigma is 0: the path is too long to update the covariance path. [] bool."""
    n = path.shape[0]
    age = 1 - (1 - rates.sigma) ** (2 * (generation + 1).astype(path.dtype))
    length = jnp.sqrt(jnp.sum(path * path) / age)
    return length >= (1.4 + 2 / (n + 1)) * normal_length(n)
