"""Samples of the posterior of the Galaxy's four numbers around a fit, weighted by importance.

Samples are proposed by Student's distribution and weighted by the posterior over the
mixture of all proposals, each round by the moments of all before it (adaptive multiple importance
sampling: Cornuet, Marin, Mira & Robert 2012, doi:10.1111/j.1467-9469.2011.00756.x).
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import gammaln

from jaxgpu.pytree import number, pytree, size

from .fit import Fit

_dot = partial(jnp.matmul, precision="highest")
TRIED = 64  # draws for each sample, of which those within the prior ranges are taken
ENOUGH = 40.0  # effective samples, at which half of a proposal is their moments


@pytree
class Samples:
    """Samples in rounds of M, in coordinates in which the fit's errors are one."""

    y: Array  # [K, M, F]
    log_density: Array  # [K, M] of the posterior, up to a constant; -inf in rounds to come
    centre: Array  # [K + 1, F] of the proposals
    spread: Array  # [K + 1, F, F] Cholesky factors of their scales, lower
    inside: Array  # [K] share of each that is within the prior ranges, to which it is cut


@pytree
class Sampler:
    """Rounds of weighted samples."""

    rounds: int = size(default=4, least=1)
    count: int = size(default=40, least=16)  # samples of a round
    freedom: float = number(default=5.0, above=2)  # degrees of the proposals
    wider: float = number(default=1.3, above=0)  # proposals than what is known of the posterior

    def samples(self, fit: Fit, key: Array) -> tuple[Array, Array]:
        """Samples p [K M, F] and the logs [K M] of their weights, which sum to one."""
        like = fit.p
        root = jnp.linalg.cholesky(jnp.linalg.inv(fit.curve))
        d, rounds = len(like), self.rounds
        eye = jnp.eye(d, dtype=like.dtype)
        begun = Samples(
            y=jnp.zeros((rounds, self.count, d), like.dtype),
            log_density=jnp.full((rounds, self.count), -jnp.inf, like.dtype),
            centre=jnp.zeros((rounds + 1, d), like.dtype),
            spread=jnp.broadcast_to(self.wider * eye, (rounds + 1, d, d)),
            inside=jnp.ones(rounds, like.dtype),
        )
        place = lambda y: fit.p + _dot(root, y)
        density = lambda y: fit.target.log_density(place(y))
        held = lambda y: jnp.all((place(y) > 0) & (place(y) < 1))
        turn = lambda i, now: self._round(density, held, now, i, jax.random.fold_in(key, i))
        done = lax.fori_loop(0, rounds, turn, begun)
        return jax.vmap(place)(done.y.reshape(-1, d)), self.log_weights(done, rounds)

    def log_weights(self, samples: Samples, rounds: Array | int) -> Array:
        """Logs [K M] of the weights of all samples of the first rounds, which sum to one."""
        y = samples.y.reshape(-1, samples.y.shape[-1])
        of = lambda centre, spread: student_at(y, centre, spread, self.freedom)
        every = jax.vmap(of)(samples.centre[:-1], samples.spread[:-1])
        used = jnp.arange(len(every)) < rounds
        mixed = jax.nn.logsumexp(
            jnp.where(used[:, None], every - jnp.log(samples.inside)[:, None], -jnp.inf), 0
        )
        log = samples.log_density.ravel() - mixed
        return log - jax.nn.logsumexp(log)

    def _proposed(self, centre: Array, spread: Array, held, key: Array) -> tuple[Array, Array]:
        """Draws [M, F] of Student's distribution where `held` is true, and its share there []."""
        normal, gamma = jax.random.split(key)
        shape = (TRIED * self.count, len(centre))
        noise = jax.random.normal(normal, shape, centre.dtype)
        chi2 = 2 * jax.random.gamma(gamma, self.freedom / 2, (shape[0], 1), centre.dtype)
        y = centre[None] + _dot(noise * jnp.sqrt(self.freedom / chi2), spread.T)
        inside = jax.vmap(held)(y)
        first = jnp.argsort(~inside, stable=True)[: self.count]
        share = jnp.mean(inside.astype(centre.dtype))
        return y[first], jnp.maximum(share, 1 / shape[0])

    def _round(self, density, held, now: Samples, i: Array, key: Array) -> Samples:
        """A round more, and the proposal of the next."""
        y, inside = self._proposed(now.centre[i], now.spread[i], held, key)
        log = lax.map(density, y)
        log = jnp.where(jnp.isnan(log), -jnp.inf, log)
        now = replace(
            now,
            y=now.y.at[i].set(y),
            log_density=now.log_density.at[i].set(log),
            inside=now.inside.at[i].set(inside),
        )
        weights = jnp.exp(self.log_weights(now, i + 1))
        weights = jnp.where(jnp.isnan(weights), 0, weights)  # where no sample has any density
        every = now.y.reshape(-1, y.shape[1])
        mean = _dot(weights, every)
        away = every - mean[None]
        # few effective samples say where the posterior is, not yet how wide
        share = 1 / jnp.sum(weights**2)
        share = share / (share + ENOUGH)
        moments = _dot(away.T, weights[:, None] * away)
        scale = share * moments + (1 - share) * jnp.eye(y.shape[1], dtype=y.dtype)
        spread = self.wider * jnp.linalg.cholesky(scale)
        return replace(
            now, centre=now.centre.at[i + 1].set(mean), spread=now.spread.at[i + 1].set(spread)
        )


def student_at(y: Array, centre: Array, spread: Array, freedom: Array | float) -> Array:
    """Log density [N] of Student's distribution in P dimensions, at y [N, P].

    Args:
        y: where.
        centre: [P].
        spread: [P, P] Cholesky factor of its scale, lower.
        freedom: its degrees of freedom.
    """
    d = len(centre)
    u = solve_triangular(spread, (y - centre[None]).T, lower=True)
    constant = gammaln((freedom + d) / 2) - gammaln(freedom / 2) - d / 2 * jnp.log(freedom * np.pi)
    scale = jnp.sum(jnp.log(jnp.diag(spread)))
    return constant - scale - (freedom + d) / 2 * jnp.log1p(jnp.sum(u * u, 0) / freedom)
