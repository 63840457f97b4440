"""Fits by Levenberg and Marquardt's method, with derivatives that run through every orbit.

Moré (1978), doi:10.1007/BFb0067700, in its simplest form. The likelihood's covariance and mean
are found anew at the start of each round of a fit.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import number, pytree, size

from .likelihood import Pool, Target

# steps of a fit: their longest, and how near they come to an end, in shares of a prior range
LONGEST, NEAREST = 0.2, 0.01
LEAST = 1e-3  # damping


@pytree
class Fit:
    """Where the fit of one mock is."""

    target: Target
    p: Array  # [P] coordinates
    value: Array  # [] minus the log posterior, up to a constant; infinite before the first turn
    residual: Array  # [D] in units in which errors are one and apart
    slope: Array  # [P] of the value
    curve: Array  # [P, P] its second derivative as Gauss and Newton have it


@pytree
class LevenbergMarquardt:
    """Rounds of a fit, each of several turns."""

    pool: Pool
    turns: int = size(default=12, least=1)  # of a round
    damping: float = number(default=0.1, above=0)  # that a round begins with

    def round(self, target: Target, p: Array, key: Array) -> Fit:
        """The fit after a round in the likelihood around coordinates p [P], where it begins."""
        begun = self.init(self.pool.around(p, target, key), p)
        damping = jnp.asarray(self.damping, p.dtype)
        turn = lambda _, now: self._turned(*now)
        return lax.fori_loop(0, self.turns + 1, turn, (begun, damping))[0]

    def init(self, target: Target, p: Array) -> Fit:
        """A fit at coordinates p [P], before its first turn, which moves nothing."""
        like = target.data
        return Fit(
            target=target,
            p=p,
            value=jnp.full((), jnp.inf, like.dtype),
            residual=0 * like,
            slope=0 * p,
            curve=jnp.eye(len(p), dtype=like.dtype),
        )

    def _turned(self, fit: Fit, damping: Array) -> tuple[Fit, Array]:
        """A step that is taken if it makes the value less, and the damping of the next."""
        # a coordinate that is held by an end of its range does not move the others
        out = ((fit.p <= NEAREST) & (fit.slope > 0)) | ((fit.p >= 1 - NEAREST) & (fit.slope < 0))
        free = jnp.where(out, 0.0, 1.0).astype(fit.p.dtype)
        scaled = fit.curve + damping * jnp.diag(jnp.diag(fit.curve))
        scaled = scaled * free[:, None] * free[None] + jnp.diag(1 - free)
        step = -jnp.linalg.solve(scaled, free * fit.slope)
        p = fit.p + step / jnp.maximum(1, jnp.max(jnp.abs(step)) / LONGEST)
        p = jnp.clip(p, NEAREST, 1 - NEAREST)
        tried = fit_at(fit.target, p)
        better = tried.value < fit.value
        kept = jax.tree.map(partial(jnp.where, better), tried, fit)
        eased = jnp.where(jnp.isinf(fit.value), damping, jnp.maximum(damping / 5, LEAST))
        return kept, jnp.where(better, eased, 4 * damping)


def fit_at(target: Target, p: Array) -> Fit:
    """A fit at coordinates p [P] within their ranges, with its derivatives."""

    def twice(p: Array) -> tuple[Array, Array]:
        r = target.residual(p)
        return r, r

    jacobian, r = jax.jacfwd(twice, has_aux=True)(p)
    dot = partial(jnp.matmul, precision="highest")
    return Fit(
        target=target,
        p=p,
        value=jnp.sum(r * r) / 2 + jnp.sum(jnp.log(jnp.diag(target.root))),
        residual=r,
        slope=dot(jacobian.T, r),
        curve=dot(jacobian.T, jacobian),
    )
