"""Levenberg-Marquardt fits, with derivatives through every orbit.

Moré (1978), doi:10.1007/BFb0067700, in its simplest form. The likelihood's covariance and mean are
recomputed at the start of each round of a fit.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import number, pytree, size

from .likelihood import Pool, Target

# maximum step and minimum distance to an end, as fractions of a prior range
MAX_STEP, NEAREST = 0.2, 0.01
MIN_DAMPING = 1e-3  # minimum damping


@pytree
class Fit:
    """State of the fit of one mock."""

    target: Target
    p: Array  # [P] coordinates
    value: Array  # [] minus the log posterior, up to a constant; infinite initially
    residual: Array  # [D] whitened residual
    slope: Array  # [P] gradient of the value
    curve: Array  # [P, P] Gauss-Newton approximation of its Hessian


@pytree
class LevenbergMarquardt:
    """Rounds of a fit, each with several iterations."""

    pool: Pool
    turns: int = size(default=12, least=1)  # iterations per round
    damping: float = number(default=0.1, above=0)  # initial damping of a round

    def round(self, target: Target, p: Array, key: Array) -> Fit:
        """Return the fit after a round, started at coordinates p [P] with the likelihood there."""
        begun = self.init(self.pool.target_near(p, target, key), p)
        damping = jnp.asarray(self.damping, p.dtype)
        turn = lambda _, now: self._iterate(*now)
        return lax.fori_loop(0, self.turns + 1, turn, (begun, damping))[0]

    def init(self, target: Target, p: Array) -> Fit:
        """Return a fit at coordinates p [P] before its first iteration, which only evaluates it."""
        like = target.data
        return Fit(
            target=target,
            p=p,
            value=jnp.full((), jnp.inf, like.dtype),
            residual=0 * like,
            slope=0 * p,
            curve=jnp.eye(len(p), dtype=like.dtype),
        )

    def _iterate(self, fit: Fit, damping: Array) -> tuple[Fit, Array]:
        """Try a step, accept it if the value decreases, and return the fit and the next damping."""
        # A coordinate fixed at an end of its range must not influence the others.
        out = ((fit.p <= NEAREST) & (fit.slope > 0)) | ((fit.p >= 1 - NEAREST) & (fit.slope < 0))
        free = jnp.where(out, 0.0, 1.0).astype(fit.p.dtype)
        scaled = fit.curve + damping * jnp.diag(jnp.diag(fit.curve))
        scaled = scaled * free[:, None] * free[None] + jnp.diag(1 - free)
        step = -jnp.linalg.solve(scaled, free * fit.slope)
        p = fit.p + step / jnp.maximum(1, jnp.max(jnp.abs(step)) / MAX_STEP)
        p = jnp.clip(p, NEAREST, 1 - NEAREST)
        tried = fit_at(fit.target, p)
        better = tried.value < fit.value
        kept = jax.tree.map(partial(jnp.where, better), tried, fit)
        eased = jnp.where(jnp.isinf(fit.value), damping, jnp.maximum(damping / 5, MIN_DAMPING))
        return kept, jnp.where(better, eased, 4 * damping)


def fit_at(target: Target, p: Array) -> Fit:
    """Return a fit at coordinates p [P] within their ranges, with its derivatives."""

    def residual_twice(p: Array) -> tuple[Array, Array]:
        r = target.residual(p)
        return r, r

    jacobian, r = jax.jacfwd(residual_twice, has_aux=True)(p)
    dot = partial(jnp.matmul, precision="highest")
    return Fit(
        target=target,
        p=p,
        value=jnp.sum(r * r) / 2 + jnp.sum(jnp.log(jnp.diag(target.root))),
        residual=r,
        slope=dot(jacobian.T, r),
        curve=dot(jacobian.T, jacobian),
    )
