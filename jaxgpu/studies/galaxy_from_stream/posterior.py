"""Posterior samples by an emulator that is refined with simulations in rounds.

The residual of the tracks is emulated by cubic polynomials in the Galaxy's parameters, fitted to
all simulations so far. An ensemble of walkers (Goodman & Weare 2010, doi:10.2140/camcos.2010.5.65)
samples the emulated posterior, whose valleys may be curved; the next simulations are at positions
of walkers. Those of the last round compare the true with the emulated posterior.
"""

from functools import partial
from itertools import combinations_with_replacement

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.inputs.fields import pytree, size

from .fit import Fit
from .likelihood import student_t

_dot = partial(jnp.matmul, precision="highest")
TEMPERATURE = (
    3.0  # tempering of the log density in early rounds, so that simulations cover a wider region
)
HALF_WEIGHT = (
    50.0  # chi-squared above the minimum at which a simulation has half weight in an emulator
)
STRETCH = 2.0  # of the stretch moves of Goodman & Weare


@pytree
class Emulator:
    """Cubic polynomials of the residual."""

    centre: Array  # [F]
    scale: Array  # [F] unit of the coordinates relative to the centre
    factors: Array  # [35, D] for F = 4
    sets: int = size(default=1000, least=2)  # mock data sets behind the covariance

    def log_density(self, p: Array) -> Array:
        """Return the log posterior [] at fractions p [F] of the prior ranges, up to a constant."""
        r = _dot(monomials((p - self.centre) / self.scale), self.factors)
        return jnp.where(jnp.all((p > 0) & (p < 1)), student_t(r, self.sets), -jnp.inf)


def monomials(q: Array) -> Array:
    """Return all monomials up to third order of the coordinates q [F], each once.

    >>> monomials(jnp.array([2.0, 3.0])).tolist()
    [1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 8.0, 12.0, 18.0, 27.0]
    """
    d = len(q)
    sets = [s for order in range(4) for s in combinations_with_replacement(range(d), order)]
    which = np.array([(*s, *[d] * (3 - len(s))) for s in sets])  # index d stands for the factor 1
    first, second, third = jnp.append(q, jnp.ones(1, q.dtype))[which.T]
    return first * second * third


def fit_emulator(fit: Fit, p: Array, residual: Array, used: Array) -> Emulator:
    """Fit the emulator to simulations by weighted ridge regression.

    Args:
        fit: fit around which they were made.
        p: [N, F] their parameters.
        residual: [N, D] their residuals.
        used: [N] bool, which rows contain simulations.
    """
    scale = jnp.clip(jnp.sqrt(jnp.diag(jnp.linalg.inv(fit.curve))), 0.03, 0.3)
    x = jax.vmap(lambda p: monomials((p - fit.p) / scale))(p)
    chi2 = jnp.where(used, jnp.sum(residual**2, 1), jnp.inf)
    weights = jnp.where(used, 1 / (1 + (chi2 - jnp.min(chi2)) / HALF_WEIGHT), 0)
    d = p.shape[1]
    straight, bent = 1 + d, 1 + d + d * (d + 1) // 2
    place = jnp.arange(x.shape[1])
    ridge = jnp.where(place < straight, 1e-6, jnp.where(place < bent, 1e-2, 0.1))
    gram = _dot(x.T, weights[:, None] * x) + jnp.diag(ridge.astype(x.dtype))
    factors = jnp.linalg.solve(gram, _dot(x.T, weights[:, None] * residual))
    return Emulator(centre=fit.p, scale=scale, factors=factors, sets=fit.target.sets)


@pytree
class Sampler:
    """Posterior sampler: rounds of simulations, with moves of walkers in between."""

    rounds: int = size(default=4, least=2)
    simulations: int = size(default=48, least=16)  # per round
    walkers: int = size(default=256, least=64)  # even, and at least the number of simulations
    turns: int = size(default=400, least=1)  # moves of the walkers per round

    def samples(self, fit: Fit, key: Array) -> tuple[Array, Array]:
        """Return posterior samples p [W, F], and the error [] of the emulator.

        The error is the standard deviation of the true minus the emulated log density among the
        simulations of the last round.
        """
        d, size_ = len(fit.p), (self.rounds, self.simulations)
        keys = jax.random.split(key, self.rounds + 1)
        root = jnp.linalg.cholesky(jnp.linalg.inv(fit.curve))
        first = fit.p[None] + _dot(jax.random.normal(keys[0], (self.walkers, d)), root.T)
        walkers = jnp.clip(first, 0.01, 0.99)
        p = jnp.zeros((*size_, d), fit.p.dtype)
        residual = jnp.zeros((*size_, len(fit.target.data)), fit.p.dtype)

        def turn(i: Array, now: tuple[Array, ...]) -> tuple[Array, ...]:
            p, residual, walkers, _, key = now
            key, move = jax.random.split(key)
            p = p.at[i].set(walkers[: self.simulations])
            known = lax.map(fit.target.residual, p[i])
            before = self._emulator_of_rounds(fit, p, residual, i)
            true = jax.vmap(partial(student_t, sets=fit.target.sets))(known)
            error = jnp.std(true - jax.vmap(before.log_density)(p[i]))
            residual = residual.at[i].set(known)
            made = self._emulator_of_rounds(fit, p, residual, i + 1)
            warm = jnp.where(i + 2 < self.rounds, TEMPERATURE, 1.0)
            density = lambda p: made.log_density(p) / warm
            # Walkers restart at simulations, selected by their true posterior.
            best = jax.random.categorical(move, true / TEMPERATURE, shape=(self.walkers,))
            noise = 0.3 * _dot(jax.random.normal(key, walkers.shape), root.T)
            begun = jnp.clip(p[i][best] + noise, 0.005, 0.995)
            return p, residual, move_walkers(density, begun, self.turns, move), error, key

        zero = jnp.zeros((), fit.p.dtype)
        begun = p, residual, walkers, zero, keys[1]
        done = lax.fori_loop(0, self.rounds, turn, begun)
        return done[2], done[3]

    def _emulator_of_rounds(self, fit: Fit, p: Array, residual: Array, rounds: Array) -> Emulator:
        """Return the emulator of the first `rounds` rounds."""
        used = jnp.repeat(jnp.arange(self.rounds) < rounds, self.simulations)
        flat = p.reshape(-1, p.shape[-1]), residual.reshape(-1, residual.shape[-1])
        return fit_emulator(fit, *flat, used)


def move_walkers(log_density, walkers: Array, turns: int, key: Array) -> Array:
    """Advance an even number of walkers [W, F] by stretch moves, each half guided by the other."""
    half, d = len(walkers) // 2, walkers.shape[1]
    many = jax.vmap(log_density)

    def move(x: Array, log: Array, others: Array, key: Array) -> tuple[Array, Array]:
        pick, far, luck = jax.random.split(key, 3)
        other = others[jax.random.randint(pick, (half,), 0, half)]
        u = jax.random.uniform(far, (half, 1), x.dtype)
        z = (1 + (STRETCH - 1) * u) ** 2 / STRETCH
        tried = other + z * (x - other)
        new = many(tried)
        chance = (d - 1) * jnp.log(z[:, 0]) + new - log
        taken = jnp.log(jax.random.uniform(luck, (half,), x.dtype)) < chance
        return jnp.where(taken[:, None], tried, x), jnp.where(taken, new, log)

    def turn(now: tuple[Array, ...], key: Array) -> tuple[tuple[Array, ...], None]:
        a, log_a, b, log_b = now
        first, second = jax.random.split(key)
        a, log_a = move(a, log_a, b, first)
        b, log_b = move(b, log_b, a, second)
        return (a, log_a, b, log_b), None

    a, b = walkers[:half], walkers[half:]
    begun = a, many(a), b, many(b)
    end, _ = lax.scan(turn, begun, jax.random.split(key, turns))
    # Interleave the halves, so that any leading rows come from both.
    return jnp.stack([end[0], end[2]], 1).reshape(-1, d)
