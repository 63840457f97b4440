"""CMA-ES: a normal distribution that learns the shape of the level sets.

Hansen (2016), "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772, with the negative
weights of its active update. Invariant under rotations of the space, and under increasing
transformations of the objective, which enters by ranks alone.

Departures: the distribution is not bounded, and its samples are evaluated inside the box, as
`bounds` says; of equal candidates each gets the mean of their weights. The eigenvectors are renewed
at the tutorial's interval of 1 / (10 D (c_1 + c_mu)) generations. O(D^3) then, O(N D^2) otherwise.

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

from jaxgpu.inputs import ranges
from jaxgpu.inputs.doors import explained
from jaxgpu.inputs.fields import number, pytree, size, static

from ..problem import Box, Problem
from ..protocol import PopulationAlgorithm, told
from . import bounds
from .adaptation import Rates, above_zero, cumulated, rates, stalled, step_size
from .ranking import Best, about_middle, best_of, checked, unevaluated, utilities, width


@explained
def default_pop_size(dimension: int) -> int:
    """4 + 3 ln D (table 1).

    >>> default_pop_size(5), default_pop_size(20)
    (8, 12)
    """
    among = ranges.Range(least=1, whole=True, one=True)
    ranges.refuse("default_pop_size: dimension", dimension, among)
    return 4 + int(3 * math.log(dimension))


@pytree
class CMAES(PopulationAlgorithm["State"]):
    """What to run."""

    pop_size: int = size(least=4)  # N; `default_pop_size(D)` is the tutorial's
    # [] first step size, in widths of the box
    sigma: Array | float = number(default=0.2, above=0, unit="widths of the box", one=True)
    # [] share of the box, about its middle, that the first mean is in
    start: Array | float = number(default=0.8, least=0, most=1, one=True)
    factor: str = static(default="eigenvectors")  # or "cholesky"

    def __post_init__(self) -> None:
        if self.factor not in ("eigenvectors", "cholesky"):
            raise ValueError(
                f"CMAES: factor={self.factor!r}; it must be 'eigenvectors' or 'cholesky'"
            )
        super().__post_init__()

    def init(self, key: Array, problem: Problem) -> "State":
        """The first mean, uniform in a share of the box."""
        problem = checked(self, key, problem)
        box = problem.box
        mean = bounds.free(box, about_middle(key, box, self.start))
        return State(isotropic(mean, self.sigma), unevaluated(problem), box)

    def ask(self, state: "State", key: Array) -> Array:
        shape, box = state.shape, state.box
        own = bounds.own_key(shape.mean, shape.generation)
        draws = draw(shape, box, self.pop_size)
        return bounds.candidates(box, own, key, cloud(shape, box), draws)

    def tell(self, state: "State", x: Array, f: Array, violation: Array | None = None) -> "State":
        x, f, violation = told(self, state, x, f, violation)
        n, d = x.shape
        learn = rates(n, float(n), d, x.dtype)
        weight = utilities(f, violation, learn.weights)
        positive = utilities(f, violation, jnp.maximum(learn.weights, 0))
        triangular, box = self.factor == "cholesky", state.box
        own = bounds.own_key(state.shape.mean, state.shape.generation)
        draws = draw(state.shape, box, self.pop_size)
        y = bounds.samples(box, own, x, cloud(state.shape, box), draws)
        shape = update(state.shape, box, learn, y, weight, positive, triangular)
        return State(shape, best_of(state.best, x, f, violation), box)


@pytree
class Shape:
    """The distribution x = mean + sigma width B D z, z standard normal."""

    mean: Array  # [D] free: the point of the box is `bounds.point(box, mean)`
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


def isotropic(mean: Array, sigma: Array | float) -> Shape:
    """An isotropic distribution."""
    zero, one = jnp.zeros_like(mean), jnp.ones_like(mean)
    eye = jnp.diag(one)
    sigma = jnp.asarray(sigma, mean.dtype)
    return Shape(
        mean=mean,
        sigma=sigma,
        covariance=eye,
        axes=eye,
        lengths=one,
        path=zero,
        step_path=zero,
        generation=jnp.int32(0),
    )


def draw(shape: Shape, box: Box, count: int) -> bounds.Draw:
    """How free candidates [count, D] are drawn."""

    def of(key: Array) -> Array:
        z = jax.random.normal(key, (count, shape.mean.shape[0]), shape.mean.dtype)
        y = jnp.matmul(z * shape.lengths[None], shape.axes.T, precision="highest")
        return shape.mean[None] + shape.sigma * width(box)[None] * y

    return of


def cloud(shape: Shape, box: Box) -> bounds.Cloud:
    """Where they are drawn."""
    root = jnp.sqrt(jnp.sum((shape.axes * shape.lengths[None]) ** 2, axis=1))
    return bounds.Cloud(shape.mean, shape.sigma * width(box) * root)


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
        x: free candidates [N, D].
        weight: of each in the covariance [N], negative for the worse half.
        positive: of each in the mean [N].
        triangular: the axes are L.
    """
    d = x.shape[1]
    y = (x - s.mean[None]) / (s.sigma * width(box)[None])
    # sums of products in place of a product of a vector and a matrix: no precision to lose
    step = jnp.sum(positive[:, None] * y, axis=0)
    mean = bounds.settled(box, s.mean + s.sigma * width(box) * step)
    white = _whitened(s, y, triangular)
    along = jnp.sum(positive[:, None] * white, axis=0)
    # C^(-1/2) times the step
    turned = along if triangular else jnp.sum(s.axes * along[None], axis=1)
    step_path = cumulated(s.step_path, learn.sigma, learn.mu_eff, turned)
    wait = stalled(learn, step_path, s.generation)
    path = cumulated(s.path, learn.path, learn.mu_eff, jnp.where(wait, 0, step))
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
    return Shape(
        mean=mean,
        sigma=sigma,
        covariance=covariance,
        axes=axes,
        lengths=lengths,
        path=path,
        step_path=step_path,
        generation=s.generation + 1,
    )


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
