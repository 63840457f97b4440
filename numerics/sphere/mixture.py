"""Mixtures of von Mises-Fisher distributions by expectation-maximisation (EM).

Banerjee, Dhillon, Ghosh & Sra (2005), JMLR 6, 1345: soft or hard assignment, initialised by
spherical k-means. Differences from the paper: concentrations are exact solutions instead of
estimates, and all densities are logarithms, which neither overflow nor saturate in 32768
dimensions. One step costs two matrix products of [N, d] with [d, K].
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from jaxgpu.devices import allocation
from jaxgpu.devices.precision import scope
from jaxgpu.inputs import ranges
from jaxgpu.inputs.calls import defer_check
from jaxgpu.inputs.explanations import explain_errors, keeps_64_bits, on_host
from jaxgpu.inputs.fields import number, pytree
from jaxgpu.runs import Keep, Resume
from jaxgpu.runs.loop import Run, run

from ..arguments import work_dtype
from ..bessel.hypergeometric import log_hyp0f1
from ..bessel.ratios import iv_ratio_inverse
from .arguments import (
    check_count,
    check_key,
    check_lengths,
    check_points,
    check_unit_vectors,
    check_weights,
    to_work_dtype,
)
from .von_mises_fisher import log_sphere_area


@pytree
class Mixture:
    """A mixture of K von Mises-Fisher distributions."""

    mean_directions: Array = number()  # [K, d] unit vectors, to 1e-5
    concentrations: Array = number(least=0)  # [K] concentration parameters
    log_weights: Array = number(most=1e-3, infinite=True)  # [K] logs of weights that sum to 1

    @keeps_64_bits
    def joint(self, x: ArrayLike) -> Array:
        """Return log(weight times density) of every component at `x`, [N, d] -> [N, K]."""
        return self._map_log_joint("joint", x, lambda joint: joint)

    @keeps_64_bits
    def log_prob(self, x: ArrayLike) -> Array:
        """Return the log density at the unit vectors `x`, [N, d] -> [N]."""
        return self._map_log_joint("log_prob", x, partial(jax.nn.logsumexp, axis=1))

    @keeps_64_bits
    def responsibilities(self, x: ArrayLike) -> Array:
        """Return the posterior probability of every component given `x`, [N, d] -> [N, K]."""
        return self._map_log_joint("responsibilities", x, partial(jax.nn.softmax, axis=1))

    @keeps_64_bits
    def em_step(self, x: ArrayLike, weights: ArrayLike | None = None) -> "Mixture":
        """Return the mixture after one EM step, as a pure function.

        It can be jitted, mapped over and differentiated. A `jaxgpu.runs.rollout` of it fits inside
        a program, where `fit_mixture` cannot be called.

        Args:
            x: unit vectors, [N, d].
            weights: weights of the vectors, [N], not negative; all equal by default. Weight 0
                excludes a vector.

        >>> x = jnp.eye(3)[jnp.arange(60) % 3]
        >>> begun = Mixture(jnp.eye(3)[:2], jnp.ones(2), jnp.log(jnp.full(2, 0.5)))
        >>> share = jax.jit(begun.em_step)(x, weights=x[:, 0] + x[:, 1]).log_weights
        >>> jnp.allclose(share, jnp.log(0.5)).item()
        True
        """
        held = _check_mixture("refined", self)
        x = check_points("refined", x, held.mean_directions.shape[1], rows=True)
        with scope((held, x)):
            share = held.responsibilities(x)
            if weights is not None:
                share = share * check_weights("refined", weights, x)[:, None]
            return m_step(to_work_dtype(jnp.asarray(x)), share, held)

    def _map_log_joint(self, name: str, x: ArrayLike, then: Callable[[Array], Array]) -> Array:
        """Return `then` of the joint log density, for the method `name`; halves use float32."""
        held = _check_mixture(name, self)
        d = held.mean_directions.shape[1]
        with scope(held):
            x = jnp.asarray(check_points(name, x, d, rows=True))
            m, k, log_w, x32 = (
                a.astype(work_dtype(a.dtype))
                for a in (held.mean_directions, held.concentrations, held.log_weights, x)
            )
            cosine = jnp.dot(x32, m.T, precision="highest")
            offset = log_w - log_hyp0f1(0.5 * d, 0.25 * k * k) - log_sphere_area(d)
            return then(k[None] * cosine + offset[None]).astype(
                jnp.result_type(held.log_weights, x)
            )


def _check_mixture(name: str, mixture: Mixture) -> Mixture:
    """Check the fields of a mixture and return it with arrays as fields."""
    ranges.check(name, mixture)
    fields = mixture.mean_directions, mixture.concentrations, mixture.log_weights
    with scope(fields):
        m, k, w = (jnp.asarray(a) for a in fields)
        is_floating = lambda a: jnp.issubdtype(a.dtype, jnp.floating)
        m, k, w = (a if is_floating(a) else a.astype(jnp.result_type(float)) for a in (m, k, w))
    count = m.shape[0] if m.ndim == 2 else -1
    if m.ndim != 2 or m.shape[1] < 2 or k.shape != (count,) or w.shape != (count,):
        raise ValueError(
            f"{name}: a mixture of mean_directions {list(m.shape)}, concentrations {list(k.shape)} "
            f"and log_weights {list(w.shape)}; they must be [K, d], [K] and [K]; use vmap for more"
        )
    check_lengths(f"{name}: mean_directions", m)
    defer_check(partial(_check_log_weights, name), w)
    return Mixture(m, k, w)


def _check_log_weights(name: str, w: Array) -> None:
    total = float(np.sum(np.exp(np.asarray(w, np.float64))))
    if abs(total - 1) > max(1e-3, 4 * float(jnp.finfo(w.dtype).eps)):
        raise ValueError(
            f"{name}: the sum of exp(log_weights) is {total:.6g}; it must be 1; subtract its "
            "logarithm"
        )


@pytree
class FitState:
    """State of a fit."""

    mixture: Mixture
    joint: Array  # [N, K] log of weight times density of every component at every vector
    score: Array  # [] mean log density of the vectors
    gain: Array  # [] increase of the score in the last step, infinite before the first


@dataclass(frozen=True, repr=False)
class MixtureFit(Run[FitState]):
    """A fitted mixture, with the mean log density at the start and after every step."""

    mixture: Mixture


@explain_errors
@on_host
def fit_mixture(
    x: ArrayLike,
    components: int,
    key: Array,
    *,
    steps: int = 50,
    hard: bool = False,
    until: Callable[[FitState], Any] | None = None,
    measure: Callable[[FitState], Any] | None = None,
    out: str | Path | None = None,
    resume: Resume = False,
    keep: Keep = None,
) -> MixtureFit:
    """Fit a mixture to unit vectors by expectation-maximisation.

    A second fit with the same numbers of vectors and components reuses the compiled program.

    Args:
        x: unit vectors, [N, d], of length 1 to 1e-5. Rows of float16 and bfloat16 may be off by 4
            eps; they are converted to float32, normalised and fitted there.
        components: K, from 1 to N.
        key: random key of the initial mixture.
        steps: number of EM steps, at least 0; the maximum with `until`.
        hard: assign every vector to its most probable component only.
        until: maps the state to a bool on the device; the fit ends when it is true.
        measure: maps the state to the value recorded at the start and after each step; by default
            `score`.
        out: folder of checkpoints.
        resume: resume from the newest checkpoint in `out`: True, names of values that may differ,
            or a `Branch`, as in `jaxgpu.runs.run`.
        keep: checkpoints to retain, counted in steps, as in `jaxgpu.runs.run`.
    Returns:
        The mixture. Its history is the mean log density at the start and after every step,
        [1 + steps]; soft steps never lower it.

    >>> x = jnp.eye(3)[jnp.arange(60) % 3] + 0.2 * jax.random.normal(jax.random.key(0), (60, 3))
    >>> x = x / jnp.linalg.norm(x, axis=1, keepdims=True)
    >>> fit = fit_mixture(x, 3, jax.random.key(0), until=lambda state: state.gain < 1e-3)
    >>> fit.mixture.mean_directions.shape, fit.timing.steps < 50
    ((3, 3), True)
    """
    x, components = _check_vectors("fit_mixture", x, components)
    check_key("fit_mixture", key)
    steps = check_count("fit_mixture: steps", steps, least=0)
    with scope(x):
        kind, x = x.dtype, to_work_dtype(x)
        done = run(
            partial(_em_step, x, hard),
            _evaluate_fit(x, _kmeans(x, components, key, 10), jnp.array(-jnp.inf, x.dtype)),
            steps,
            measure=_score if measure is None else measure,
            until=until,
            out=out,
            resume=resume,
            keep=keep,
        )
        mixture = jax.tree.map(lambda a: a.astype(kind), done.state.mixture)
        history = done.history.astype(kind) if measure is None else done.history
        return MixtureFit(done.state, history, done.timing, mixture)


def _check_vectors(name: str, x: ArrayLike, components: int) -> tuple[Array, int]:
    """Check unit vectors and a number of components, at most the number of vectors."""
    x = check_unit_vectors(name, x)
    components = check_count(f"{name}: components", components, least=1)
    if components > len(x):
        raise ValueError(
            f"{name}: {components} components for {len(x)} vectors; there must be 1 to as many as "
            "vectors; give fewer"
        )
    with scope(x):
        return jnp.asarray(x), components


@allocation.limit_memory
@jax.jit
def _evaluate_fit(x: Array, mixture: Mixture, before: Array) -> FitState:
    joint = mixture.joint(x)
    score = jnp.mean(jax.nn.logsumexp(joint, 1))
    return FitState(mixture=mixture, joint=joint, score=score, gain=score - before)


def _score(state: FitState) -> Array:
    return state.score


def _em_step(x: Array, hard: bool, state: FitState) -> FitState:
    if hard:
        likeliest = jnp.argmax(state.joint, 1)
        share = jax.nn.one_hot(likeliest, state.joint.shape[1], dtype=state.joint.dtype)
    else:
        share = jax.nn.softmax(state.joint, 1)
    return _evaluate_fit(x, m_step(x, share, state.mixture), state.score)


def m_step(x: Array, share: Array, before: Mixture) -> Mixture:
    """Return the maximum-likelihood mixture given the responsibilities `share` [N, K].

    A thousandth of a vector without direction is added to each component: one with a single vector
    stays finite. A component with zero total share keeps its direction.
    """
    count = jnp.sum(share, 0) + 1e-3
    direction, length = _weighted_directions(x, share, before.mean_directions)
    k = iv_ratio_inverse(0.5 * x.shape[1] - 1, length / count)
    return Mixture(direction, k, jnp.log(count / jnp.sum(count)))


@explain_errors
@keeps_64_bits
def spherical_kmeans(x: ArrayLike, components: int, key: Array, rounds: int = 10) -> Mixture:
    """Initialise a mixture by greedy k-means++ and `rounds` of spherical k-means.

    Of eight candidates for a center, the seeding selects the one that brings all vectors closest.

    >>> x = jnp.array([[1.0, 0.0], [0.8, 0.6], [-1.0, 0.0]])
    >>> start = spherical_kmeans(x, 2, jax.random.key(0))
    >>> start.responsibilities(x).shape
    (3, 2)
    """
    x, components = _check_vectors("spherical_kmeans", x, components)
    check_key("spherical_kmeans", key)
    rounds = check_count("spherical_kmeans: rounds", rounds, least=1)
    with scope(x):
        mixture = _kmeans(to_work_dtype(x), components, key, rounds)
        return jax.tree.map(lambda a: a.astype(x.dtype), mixture)


@allocation.limit_memory
@partial(jax.jit, static_argnums=(1, 3))
def _kmeans(x: Array, components: int, key: Array, rounds: int) -> Mixture:
    keys = jax.random.split(key, components)
    first = x[jax.random.randint(keys[0], (), 0, len(x))]
    cosines = lambda centres: jnp.dot(x, centres.T, precision="highest")

    def add_center(j, carry):
        centres, cosine = carry
        gap = jnp.log(jnp.maximum(1 - cosine, 1e-12))
        tries = x[jax.random.categorical(keys[j], gap, shape=(8,))]
        nearer = jnp.maximum(cosine[:, None], cosines(tries))
        best = jnp.argmax(jnp.mean(nearer, 0))
        return centres.at[j].set(tries[best]), nearer[:, best]

    def one_hot_nearest_center(centres):
        return jax.nn.one_hot(jnp.argmax(cosines(centres), 1), components, dtype=x.dtype)

    centres = jnp.zeros((components, x.shape[1]), x.dtype).at[0].set(first)
    start = centres, jnp.dot(x, first, precision="highest")
    centres, _ = jax.lax.fori_loop(1, components, add_center, start)
    gather = lambda _, centres: _weighted_directions(x, one_hot_nearest_center(centres), centres)[0]
    centres = jax.lax.fori_loop(1, rounds, gather, centres)
    flat = jnp.zeros(components, x.dtype)
    return m_step(x, one_hot_nearest_center(centres), Mixture(centres, flat, flat))


def _weighted_directions(x: Array, share: Array, before: Array) -> tuple[Array, Array]:
    """Return the directions [K, d] and lengths [K] of the weighted sums of the vectors."""
    total = jnp.dot(share.T, x, precision="highest")
    length = jnp.sqrt(jnp.sum(total * total, 1))
    empty = length <= 1e-3 * jnp.finfo(x.dtype).eps
    direction = total / jnp.where(empty, 1.0, length)[:, None]
    return jnp.where(empty[:, None], before, direction), length
