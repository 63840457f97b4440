"""Mixtures of von Mises-Fisher distributions by expectation-maximisation.

Banerjee, Dhillon, Ghosh & Sra (2005), JMLR 6, 1345: soft or hard assignment, started from
spherical k-means. What differs: concentrations are exact solutions, not the estimate of the paper,
and all is in logarithms, so that it neither overflows nor saturates in 32768 dimensions.
One step costs two matrix products of [N, d] with [d, K].
"""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from jaxgpu.numerics.bessel_ratio import iv_ratio_inverse
from jaxgpu.numerics.hypergeometric import log_hyp0f1
from jaxgpu.numerics.von_mises_fisher import log_sphere_area, unit_vectors
from jaxgpu.precision import scope
from jaxgpu.pytree import pytree
from jaxgpu.run import run


@pytree
class Mixture:
    """A mixture of K von Mises-Fisher distributions."""

    mean_directions: Array  # [K, d] unit vectors
    concentrations: Array  # [K] at least 0
    log_weights: Array  # [K] logarithms of shares that sum to 1

    def joint(self, x: ArrayLike) -> Array:
        """log of weight times density of every component at `x`, [N, d] -> [N, K]."""
        with scope(self):
            d, k = self.mean_directions.shape[1], self.concentrations
            cosine = jnp.dot(jnp.asarray(x), self.mean_directions.T, precision="highest")
            offset = self.log_weights - log_hyp0f1(0.5 * d, 0.25 * k * k) - log_sphere_area(d)
            return k[None] * cosine + offset[None]

    def log_prob(self, x: ArrayLike) -> Array:
        """Log density at the unit vectors `x`, [N, d] -> [N]."""
        with scope(self):
            return jax.nn.logsumexp(self.joint(x), 1)

    def responsibilities(self, x: ArrayLike) -> Array:
        """Probability of every component given `x`, [N, d] -> [N, K]."""
        with scope(self):
            return jax.nn.softmax(self.joint(x), 1)


@pytree
class _State:
    x: Array  # [N, d] unit vectors
    mixture: Mixture
    score: Array  # [] mean log density before the last step


def fit_mixture(
    x: ArrayLike, components: int, key: Array, *, steps: int = 50, hard: bool = False
) -> tuple[Mixture, Array]:
    """Fit a mixture to unit vectors.

    Args:
        x: unit vectors, [N, d].
        components: K, from 1 to N.
        key: for the start.
        steps: expectation-maximisation steps.
        hard: give every vector wholly to its likeliest component.
    Returns:
        the mixture, and the mean log density before every step, [steps]; soft steps never lower it.
    """
    x = unit_vectors("fit_mixture", x)
    if not 1 <= components <= len(x):
        raise ValueError(
            f"fit_mixture: {components} components for {len(x)} vectors; there must be at least 1 "
            "and no more than vectors; ask for fewer"
        )
    with scope(x):
        start = _State(x, spherical_kmeans(x, components, key), jnp.zeros((), x.dtype))
        done = run(partial(_step, hard), start, steps, measure=lambda state: state.score)
        return done.state.mixture, done.history


def _step(hard: bool, state: _State) -> _State:
    joint = state.mixture.joint(state.x)
    score = jnp.mean(jax.nn.logsumexp(joint, 1))
    if hard:
        share = jax.nn.one_hot(jnp.argmax(joint, 1), joint.shape[1], dtype=joint.dtype)
    else:
        share = jax.nn.softmax(joint, 1)
    mixture = maximise(state.x, share, state.mixture)
    return dataclasses.replace(state, mixture=mixture, score=score)


def maximise(x: Array, share: Array, before: Mixture) -> Mixture:
    """The likeliest mixture given each component's share of each vector, [N, K].

    A thousandth of a vector without direction is added to each component: one that holds a single
    vector stays finite. A component without any share keeps its direction.
    """
    count = jnp.sum(share, 0) + 1e-3
    direction, length = _means(x, share, before.mean_directions)
    k = iv_ratio_inverse(0.5 * x.shape[1] - 1, length / count)
    return Mixture(direction, k, jnp.log(count / jnp.sum(count)))


@partial(jax.jit, static_argnums=(1, 3))
def spherical_kmeans(x: Array, components: int, key: Array, rounds: int = 10) -> Mixture:
    """A start: centres far apart, then `rounds` of nearest centres.

    Greedy k-means++ in the cosine: of eight candidates the one that brings all vectors nearest.
    """
    keys = jax.random.split(key, components)
    first = x[jax.random.randint(keys[0], (), 0, len(x))]
    cosines = lambda centres: jnp.dot(x, centres.T, precision="highest")

    def spread(j, carry):
        centres, cosine = carry
        gap = jnp.log(jnp.maximum(1 - cosine, 1e-12))
        tries = x[jax.random.categorical(keys[j], gap, shape=(8,))]
        nearer = jnp.maximum(cosine[:, None], cosines(tries))
        best = jnp.argmax(jnp.mean(nearer, 0))
        return centres.at[j].set(tries[best]), nearer[:, best]

    def nearest(centres):
        return jax.nn.one_hot(jnp.argmax(cosines(centres), 1), components, dtype=x.dtype)

    centres = jnp.zeros((components, x.shape[1]), x.dtype).at[0].set(first)
    start = centres, jnp.dot(x, first, precision="highest")
    centres, _ = jax.lax.fori_loop(1, components, spread, start)
    gather = lambda _, centres: _means(x, nearest(centres), centres)[0]
    centres = jax.lax.fori_loop(1, rounds, gather, centres)
    flat = jnp.zeros(components, x.dtype)
    return maximise(x, nearest(centres), Mixture(centres, flat, flat))


def _means(x: Array, share: Array, before: Array) -> tuple[Array, Array]:
    """Directions of the weighted sums of the vectors, [K, d], and the lengths of the sums, [K]."""
    total = jnp.dot(share.T, x, precision="highest")
    length = jnp.sqrt(jnp.sum(total * total, 1))
    empty = length <= 1e-3 * jnp.finfo(x.dtype).eps
    direction = total / jnp.where(empty, 1.0, length)[:, None]
    return jnp.where(empty[:, None], before, direction), length
