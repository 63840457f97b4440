"""Samples of a posterior: drawn from its second-order form at the fit, weighted by the true one.

Near the fit the residual is a polynomial of second order, whose coefficients are differences of
derivatives that run through every orbit. Many short Metropolis chains sample the posterior of
that, at no cost worth counting; each one's end is then weighted by the true posterior over the
polynomial's, which costs one simulation (importance sampling).
"""

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.pytree import number, pytree, size

from .fit import Fit
from .likelihood import Target, log_prior, student


@pytree
class Surrogate:
    """A posterior whose residual is of second order in whitened coordinates y [P]."""

    centre: Array  # [P]
    scale: Array  # [P, P]: coordinates are centre + scale y
    r: Array  # [D] residual at the centre
    first: Array  # [D, P] its derivative
    second: Array  # [D, P, P] and second derivative
    sets: int = size(default=1000, least=2)  # of mock data that the covariance is from

    def place(self, y: Array) -> Array:
        """Coordinates [..., P] of whitened ones [..., P]."""
        return self.centre + jnp.matmul(y, self.scale.T, precision="highest")

    def log_density(self, y: Array) -> Array:
        """Log posterior density [] at y [P], up to a constant."""
        bend = jnp.matmul(self.second, y, precision="highest")
        r = self.r + jnp.matmul(self.first + bend / 2, y, precision="highest")
        return log_prior(self.place(y)) + student(r, self.sets)


def second_order(fit: Fit) -> Surrogate:
    """The posterior of second order at a fit, by central differences over a standard error."""
    target = fit.target
    count = len(fit.p)
    scale = jnp.linalg.cholesky(jnp.linalg.inv(fit.curve))
    at = lambda y: target.residual(fit.p + jnp.matmul(scale, y, precision="highest"))
    ends = jnp.concatenate([jnp.eye(count), -jnp.eye(count), jnp.zeros((1, count))])
    slopes = lax.map(jax.jacfwd(at), ends.astype(fit.p.dtype))  # [2 P + 1, D, P]
    second = jnp.moveaxis(slopes[:count] - slopes[count : 2 * count], 0, -1) / 2
    return Surrogate(
        centre=fit.p,
        scale=scale,
        r=target.residual(fit.p),
        first=slopes[-1],
        second=(second + jnp.swapaxes(second, 1, 2)) / 2,
        sets=target.sets,
    )


@pytree
class Sampler:
    """Chains in the surrogate, and the weights of their ends."""

    count: int = size(default=200, least=2)  # samples
    turns: int = size(default=400, least=1)  # of each chain
    warmth: float = number(default=1.2, least=1)  # the surrogate's log density is over this

    def samples(self, target: Target, surrogate: Surrogate, key: Array) -> tuple[Array, Array]:
        """Coordinates [K, P] and the logs [K] of their weights, which sum to one."""
        first, second = jax.random.split(key)
        shape = (self.count, len(surrogate.centre))
        y = jax.random.normal(first, shape, surrogate.r.dtype)
        log_warm = lambda y: surrogate.log_density(y) / self.warmth
        ends = jax.vmap(lambda y, key: metropolis(log_warm, y, self.turns, key))
        y = ends(y, jax.random.split(second, self.count))
        p = surrogate.place(y)
        log = lax.map(target.log_density, p) - jax.vmap(log_warm)(y)
        # a chain that never came into the prior ranges is not in them
        log = jnp.where(jnp.isnan(log), -jnp.inf, log)
        return p, log - jax.nn.logsumexp(log)


def metropolis(log_density, y: Array, turns: int, key: Array) -> Array:
    """Where a chain of Metropolis ends that began at y [P], which is near to normal.

    Steps are normal and 2.4 / sqrt(P) long in each coordinate: Roberts, Gelman & Gilks (1997),
    doi:10.1214/aoap/1034625254.
    """
    reach = 2.4 / jnp.sqrt(len(y))

    def turn(now: tuple[Array, Array], key: Array) -> tuple[tuple[Array, Array], None]:
        y, log = now
        step, luck = jax.random.split(key)
        tried = y + reach * jax.random.normal(step, y.shape, y.dtype)
        new = log_density(tried)
        taken = jnp.log(jax.random.uniform(luck, dtype=y.dtype)) < new - log
        taken |= ~jnp.isfinite(log) & jnp.isfinite(new)
        return (jnp.where(taken, tried, y), jnp.where(taken, new, log)), None

    return lax.scan(turn, (y, log_density(y)), jax.random.split(key, turns))[0][0]
