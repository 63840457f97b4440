"""CMA-ES: a normal distribution whose covariance adapts to the level sets of the objective.

Hansen (2016), "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772, with the negative weights
of its active update. Invariant under rotations of the space, and under increasing transformations
of the objective, which enters only by ranks.

Differences from the tutorial: the distribution is unbounded, and its samples are mapped into the
box, see `bounds`; equal candidates all get the mean of their weights. The eigenvectors are updated
at the tutorial's interval of 1 / (10 D (c_1 + c_mu)) generations. O(D^3) then, O(N D^2) otherwise.

In hundreds of dimensions with large populations the decomposition runs every generation and takes
most of the time. `factor="cholesky"` gives the same distribution, with C = L L^T instead of (B D)(B
D)^T, for a hundredth of the cost. But the path of the step size is then measured by L^-1 instead of
C^(-1/2), which rotates slowly as C is learned (Krause, Arbones & Igel 2016, "CMA-ES with optimal
covariance update and storage complexity", NeurIPS 29).
"""

import math

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import number, pytree, size, static

from ..problem import Box, Problem
from ..protocol import PopulationAlgorithm, check_tell
from . import bounds
from .adaptation import Rates, avoid_underflow, is_path_long, rates, step_size, update_path
from .ranking import Best, check_single, init_best, sample_center, update_best, utilities, width


@explain_errors
def default_pop_size(dimension: int) -> int:
    """Return the default population size 4 + 3 ln D (table 1).

    >>> default_pop_size(5), default_pop_size(20)
    (8, 12)
    """
    among = ranges.Range(least=1, whole=True, one=True)
    ranges.refuse("default_pop_size: dimension", dimension, among)
    return 4 + int(3 * math.log(dimension))


@pytree
class CMAES(PopulationAlgorithm["State"]):
    """CMA-ES (Hansen 2016) with a full covariance matrix and active update."""

    pop_size: int = size(least=4)  # N; the tutorial uses `default_pop_size(D)`
    # [] first step size, in widths of the box
    sigma: Array | float = number(default=0.2, above=0, unit="widths of the box", one=True)
    # [] fraction of the box, about its center, from which the first mean is sampled
    start: Array | float = number(default=0.8, least=0, most=1, one=True)
    factor: str = static(default="eigenvectors")  # or "cholesky"

    def __post_init__(self) -> None:
        if self.factor not in ("eigenvectors", "cholesky"):
            raise ValueError(
                f"CMAES: factor={self.factor!r}; it must be 'eigenvectors' or 'cholesky'"
            )
        super().__post_init__()

    def init(self, key: Array, problem: Problem) -> "State":
        """Return the state with the first mean, uniform in a fraction of the box."""
        problem = check_single(self, key, problem)
        box = problem.box
        mean = bounds.from_box(box, sample_center(key, box, self.start))
        return State(isotropic_shape(mean, self.sigma), init_best(problem), box)

    def ask(self, state: "State", key: Array) -> Array:
        shape, box = state.shape, state.box
        own = bounds.state_key(shape.mean, shape.generation)
        draws = sampler(shape, box, self.pop_size)
        return bounds.candidates(box, own, key, distribution(shape, box), draws)

    def tell(self, state: "State", x: Array, f: Array, violation: Array | None = None) -> "State":
        x, f, violation = check_tell(self, state, x, f, violation)
        n, d = x.shape
        learn = rates(n, float(n), d, x.dtype)
        weight = utilities(f, violation, learn.weights)
        positive = utilities(f, violation, jnp.maximum(learn.weights, 0))
        triangular, box = self.factor == "cholesky", state.box
        own = bounds.state_key(state.shape.mean, state.shape.generation)
        draws = sampler(state.shape, box, self.pop_size)
        y = bounds.samples(box, own, x, distribution(state.shape, box), draws)
        shape = update(state.shape, box, learn, y, weight, positive, triangular)
        return State(shape, update_best(state.best, x, f, violation), box)


@pytree
class SearchShape:
    """The search distribution x = mean + sigma width B D z, z standard normal."""

    mean: Array  # [D] unconstrained: the point of the box is `bounds.to_box(box, mean)`
    sigma: Array  # [] step size, in widths of the box
    covariance: Array  # [D, D] C = B D^2 B^T, as last decomposed or since updated
    axes: Array  # [D, D] B, eigenvectors in columns; or L, lower triangular
    lengths: Array  # [D] square roots of the eigenvalues; ones with L
    path: Array  # [D] p_c, path of the covariance
    step_path: Array  # [D] p_sigma, path of the step size
    generation: Array  # [] number of updates so far


@pytree
class State:
    """State of a CMA-ES run."""

    shape: SearchShape
    best: Best
    box: Box


def isotropic_shape(mean: Array, sigma: Array | float) -> SearchShape:
    """Return an isotropic distribution."""
    zero, one = jnp.zeros_like(mean), jnp.ones_like(mean)
    eye = jnp.diag(one)
    sigma = jnp.asarray(sigma, mean.dtype)
    return SearchShape(
        mean=mean,
        sigma=sigma,
        covariance=eye,
        axes=eye,
        lengths=one,
        path=zero,
        step_path=zero,
        generation=jnp.int32(0),
    )


def sampler(shape: SearchShape, box: Box, count: int) -> bounds.Sampler:
    """Return the function that samples unconstrained candidates [count, D] from a key."""

    def sample(key: Array) -> Array:
        z = jax.random.normal(key, (count, shape.mean.shape[0]), shape.mean.dtype)
        y = jnp.matmul(z * shape.lengths[None], shape.axes.T, precision="highest")
        return shape.mean[None] + shape.sigma * width(box)[None] * y

    return sample


def distribution(shape: SearchShape, box: Box) -> bounds.SearchDistribution:
    """Return the mean and the standard deviations of the samples."""
    root = jnp.sqrt(jnp.sum((shape.axes * shape.lengths[None]) ** 2, axis=1))
    return bounds.SearchDistribution(shape.mean, shape.sigma * width(box) * root)


def update(
    s: SearchShape,
    box: Box,
    learn: Rates,
    x: Array,
    weight: Array,
    positive: Array,
    triangular: bool = False,
) -> SearchShape:
    """Return the distribution after one generation.

    Args:
        x: unconstrained candidates [N, D].
        weight: weights [N] in the covariance, negative for the worse half.
        positive: weights [N] in the mean.
        triangular: the axes are L.
    """
    d = x.shape[1]
    y = (x - s.mean[None]) / (s.sigma * width(box)[None])
    # elementwise sums of products, unlike matrix products, have full precision on accelerators
    step = jnp.sum(positive[:, None] * y, axis=0)
    mean = bounds.wrap_mean(box, s.mean + s.sigma * width(box) * step)
    white = _whiten(s, y, triangular)
    along = jnp.sum(positive[:, None] * white, axis=0)
    # C^(-1/2) times the step (L^-1 if triangular)
    turned = along if triangular else jnp.sum(s.axes * along[None], axis=1)
    step_path = update_path(s.step_path, learn.sigma, learn.mu_eff, turned)
    wait = is_path_long(learn, step_path, s.generation)
    path = update_path(s.path, learn.path, learn.mu_eff, jnp.where(wait, 0, step))
    # equation 46: a negative weight never subtracts more than one unit of variance
    far = jnp.sum(white * white, axis=1)
    weight = jnp.where(weight < 0, weight * d / jnp.maximum(far, 1e-30), weight)
    kept = 1 - learn.one - learn.mu * jnp.sum(learn.weights)
    kept += jnp.where(wait, learn.one * learn.path * (2 - learn.path), 0)
    covariance = kept * s.covariance + learn.one * path[:, None] * path[None]
    covariance += learn.mu * jnp.matmul((weight[:, None] * y).T, y, precision="highest")
    every = jnp.maximum(1, jnp.floor(1 / (10 * d * (learn.one + learn.mu)))).astype(jnp.int32)
    covariance, axes, lengths = lax.cond(
        (s.generation + 1) % every == 0,
        lambda: _factorize_cholesky(s, covariance) if triangular else _factorize_eigen(covariance),
        lambda: (covariance, s.axes, s.lengths),
    )
    sigma = step_size(learn, s.sigma, step_path)
    return SearchShape(
        mean=mean,
        sigma=sigma,
        covariance=covariance,
        axes=axes,
        lengths=lengths,
        path=path,
        step_path=step_path,
        generation=s.generation + 1,
    )


def _whiten(s: SearchShape, y: Array, triangular: bool) -> Array:
    """Return the normal vectors [N, D] that correspond to the steps y."""
    if triangular:
        return lax.linalg.triangular_solve(s.axes, y, lower=True, transpose_a=True)
    return jnp.matmul(y, s.axes, precision="highest") / s.lengths[None]


def _factorize_cholesky(s: SearchShape, covariance: Array) -> tuple[Array, Array, Array]:
    """Return C and L; keep both if rounding has made the covariance indefinite."""
    lower = lax.linalg.cholesky((covariance + covariance.T) / 2, symmetrize_input=False)
    sound = jnp.all(jnp.isfinite(lower))
    return jnp.where(sound, covariance, s.covariance), jnp.where(sound, lower, s.axes), s.lengths


def _factorize_eigen(covariance: Array) -> tuple[Array, Array, Array]:
    """Return the symmetric part, its eigenvectors, and the positive roots of its eigenvalues."""
    covariance = (covariance + covariance.T) / 2
    values, axes = jnp.linalg.eigh(covariance)
    # below this fraction of the largest eigenvalue, rounding makes eigenvalues random
    floor = avoid_underflow(jnp.finfo(values.dtype).eps * jnp.max(values))
    return covariance, axes, jnp.sqrt(jnp.maximum(values, floor))
