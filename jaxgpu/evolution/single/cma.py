"""CMA-ES: a normal distribution that learns the shape of the level sets.

Hansen (2016), "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772, with the negative
weights of its active update. Invariant under rotations of the space, and under increasing
transformations of the objective, which enters by ranks alone.

Departures: candidates outside the box are moved to its nearest points, and learnt from as such;
of equal candidates each gets the mean of their weights. The eigenvectors are renewed at the
tutorial's interval of 1 / (10 D (c_1 + c_mu)) generations. O(D^3) then, O(N D^2) otherwise.

In hundreds of dimensions with large populations that is every generation and most of the time. With
`factor="cholesky"` the distribution is the same, C = L L^T in place of (B D)(B D)^T, for a
hundredth of the cost; but the path of the step size is measured by L^-1 in place of C^(-1/2), which
turns slowly as C is learnt (Krause, Arbones & Igel 2016, "CMA-ES with optimal covariance update and
storage complexity", NeurIPS 29).
"""

import math

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.evolution.population import inside
from jaxgpu.evolution.problem import Box, Problem
from jaxgpu.evolution.protocol import ask, init, tell
from jaxgpu.evolution.single.adaptation import (
    Rates,
    above_zero,
    rates,
    stalled,
    step_size,
    walked,
)
from jaxgpu.evolution.single.ranking import Best, better, nothing, start, utilities, width
from jaxgpu.pytree import pytree, static


def default_population(dimension: int) -> int:
    """4 + 3 ln D (table 1).

    >>> default_population(5), default_population(20)
    (8, 12)
    """
    return 4 + int(3 * math.log(dimension))


@pytree
class CMAES:
    """What to run."""

    population: int = static()  # N; `default_population(D)` is the tutorial's
    sigma: Array | float = 0.2  # [] first step size, in widths of the box
    start: Array | float = 0.8  # [] share of the box, about its middle, that the first mean is in
    factor: str = static(default="eigenvectors")  # or "cholesky"

    def __post_init__(self) -> None:
        if self.factor not in ("eigenvectors", "cholesky"):
            raise ValueError(
                f"CMAES: factor={self.factor!r}; it must be 'eigenvectors' or 'cholesky'"
            )
        if self.population < 4:
            raise ValueError(f"CMAES: population={self.population}; it must be at least 4")


@pytree
class Shape:
    """The distribution x = mean + sigma width B D z, z standard normal."""

    mean: Array  # [D]
    sigma: Array  # [] step size, in widths of the box
    covariance: Array  # [D, D] C = B D^2 B^T, as last decomposed or since updated
    axes: Array  # [D, D] B, eigenvectors in columns; or L, lower triangular
    lengths: Array  # [D] roots of the eigenvalues; ones with L
    path: Array  # [D] p_c
    step_path: Array  # [D] p_sigma
    generation: Array  # [] updates so far


@pytree
class State:
    """Where the run is."""

    shape: Shape
    best: Best
    box: Box


def fresh(mean: Array, sigma: Array | float) -> Shape:
    """An isotropic distribution."""
    zero, one = jnp.zeros_like(mean), jnp.ones_like(mean)
    eye = jnp.diag(one)
    sigma = jnp.asarray(sigma, mean.dtype)
    return Shape(mean, sigma, eye, eye, one, zero, zero, jnp.int32(0))


def draw(shape: Shape, box: Box, key: Array, count: int) -> Array:
    """Candidates, [count, D]."""
    z = jax.random.normal(key, (count, shape.mean.shape[0]), shape.mean.dtype)
    y = jnp.matmul(z * shape.lengths[None], shape.axes.T, precision="highest")
    return inside(box, shape.mean[None] + shape.sigma * width(box)[None] * y)


@init.register
def _(spec: CMAES, key: Array, problem: Problem) -> State:
    mean = start("CMAES", key, problem, spec.start)
    return State(fresh(mean, spec.sigma), nothing(problem), problem.box)


@ask.register
def _(spec: CMAES, state: State, key: Array) -> Array:
    return draw(state.shape, state.box, key, spec.population)


@tell.register
def _(spec: CMAES, state: State, x: Array, f: Array, violation: Array) -> State:
    n, d = x.shape
    learn = rates(n, float(n), d, x.dtype)
    weight = utilities(f, violation, learn.weights)
    positive = utilities(f, violation, jnp.maximum(learn.weights, 0))
    triangular = spec.factor == "cholesky"
    shape = update(state.shape, state.box, learn, x, weight, positive, triangular)
    return State(shape, better(state.best, x, f, violation), state.box)


def update(
    s: Shape,
    box: Box,
    learn: Rates,
    x: Array,
    weight: Array,
    positive: Array,
    triangular: bool = False,
) -> Shape:
    """The distribution after one generation.

    Args:
        x: candidates [N, D].
        weight: of each in the covariance [N], negative for the worse half.
        positive: of each in the mean [N].
        triangular: the axes are L.
    """
    d = x.shape[1]
    y = (x - s.mean[None]) / (s.sigma * width(box)[None])
    # sums of products in place of a product of a vector and a matrix: no precision to lose
    step = jnp.sum(positive[:, None] * y, axis=0)
    mean = inside(box, (s.mean + s.sigma * width(box) * step)[None])[0]
    white = _whitened(s, y, triangular)
    along = jnp.sum(positive[:, None] * white, axis=0)
    # C^(-1/2) times the step
    turned = along if triangular else jnp.sum(s.axes * along[None], axis=1)
    step_path = walked(s.step_path, learn.sigma, learn.mu_eff, turned)
    wait = stalled(learn, step_path, s.generation)
    path = walked(s.path, learn.path, learn.mu_eff, jnp.where(wait, 0, step))
    # equation 46: a negative weight never takes more than a unit of variance
    far = jnp.sum(white * white, axis=1)
    weight = jnp.where(weight < 0, weight * d / jnp.maximum(far, 1e-30), weight)
    kept = 1 - learn.one - learn.mu * jnp.sum(learn.weights)
    kept += jnp.where(wait, learn.one * learn.path * (2 - learn.path), 0)
    covariance = kept * s.covariance + learn.one * path[:, None] * path[None]
    covariance += learn.mu * jnp.matmul((weight[:, None] * y).T, y, precision="highest")
    every = jnp.maximum(1, jnp.floor(1 / (10 * d * (learn.one + learn.mu)))).astype(jnp.int32)
    covariance, axes, lengths = lax.cond(
        (s.generation + 1) % every == 0,
        lambda: _triangle(s, covariance) if triangular else _decompose(covariance),
        lambda: (covariance, s.axes, s.lengths),
    )
    sigma = step_size(learn, s.sigma, step_path)
    return Shape(mean, sigma, covariance, axes, lengths, path, step_path, s.generation + 1)


def _whitened(s: Shape, y: Array, triangular: bool) -> Array:
    """The normal vectors [N, D] that the steps y came from."""
    if triangular:
        return lax.linalg.triangular_solve(s.axes, y, lower=True, transpose_a=True)
    return jnp.matmul(y, s.axes, precision="highest") / s.lengths[None]


def _triangle(s: Shape, covariance: Array) -> tuple[Array, Array, Array]:
    """L; where rounding has made the covariance indefinite, all stays as it was."""
    lower = lax.linalg.cholesky((covariance + covariance.T) / 2, symmetrize_input=False)
    sound = jnp.all(jnp.isfinite(lower))
    return jnp.where(sound, covariance, s.covariance), jnp.where(sound, lower, s.axes), s.lengths


def _decompose(covariance: Array) -> tuple[Array, Array, Array]:
    """The symmetric part, its eigenvectors and the roots of its eigenvalues, kept positive."""
    covariance = (covariance + covariance.T) / 2
    values, axes = jnp.linalg.eigh(covariance)
    # rounding makes the least eigenvalues random below this share of the greatest
    floor = above_zero(jnp.finfo(values.dtype).eps * jnp.max(values))
    return covariance, axes, jnp.sqrt(jnp.maximum(values, floor))
