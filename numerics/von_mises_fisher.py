"""The von Mises-Fisher distribution: the normal distribution's kin on the unit sphere.

    p(x) = C_d(k) exp(k m.x),    log C_d(k) = -log 0F1(; d/2; k^2/4) - log area(d)

for unit vectors x in d dimensions, with mean direction m and concentration k. Written with 0F1 the
density is smooth at k = 0, where it is uniform. The mean of m.x is the resultant length
A(k) = I_{d/2}(k) / I_{d/2-1}(k).

Mardia & Jupp (2000), Directional Statistics, doi:10.1002/9780470316979, sections 9.3.2 and 10.3.
"""

from functools import partial
from math import lgamma, log, pi

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from jaxgpu.numerics.bessel_ratio import iv_ratio, iv_ratio_inverse
from jaxgpu.numerics.hypergeometric import log_hyp0f1
from jaxgpu.numerics.sphere_sampling import draw
from jaxgpu.precision import scope
from jaxgpu.pytree import pytree


@pytree
class VonMisesFisher:
    """A von Mises-Fisher distribution on the unit sphere in d >= 2 dimensions.

    Differentiable in both fields; `vmap` over them makes a batch of distributions.

    >>> north = VonMisesFisher(jnp.array([0.0, 0.0, 1.0]), jnp.array(2.0))
    >>> north.log_prob(jnp.array([0.0, 0.0, 1.0]))  # log(2 / (4 pi sinh 2)) + 2
    Array(-1.1262..., dtype=float32)
    """

    mean_direction: Array  # [d] unit vector
    concentration: Array  # [] at least 0

    @property
    def dimension(self) -> int:
        """Number of dimensions d of the space around the sphere."""
        return self.mean_direction.shape[-1]

    @property
    def resultant(self) -> Array:
        """A(k), the length of the mean vector, []."""
        return iv_ratio(self.dimension / 2 - 1, self.concentration)

    @property
    def mean(self) -> Array:
        """Mean vector, [d]; shorter than 1."""
        with scope(self):
            return self.resultant * self.mean_direction

    def log_normalizer(self) -> Array:
        """-log C_d(k), []."""
        with scope(self):
            half = self.dimension / 2
            k = self.concentration
            return log_hyp0f1(half, 0.25 * k * k) + log_sphere_area(self.dimension)

    def log_prob(self, x: ArrayLike) -> Array:
        """Log density at the unit vectors `x`, [..., d] -> [...], per unit of area."""
        with scope(self):
            x = jnp.asarray(x)
            along = jnp.sum(x * _like(self.mean_direction, x), -1)
            return self.concentration * along - self.log_normalizer()

    def entropy(self) -> Array:
        """Differential entropy -E[log p], []."""
        with scope(self):
            return self.log_normalizer() - self.concentration * self.resultant

    def kl_divergence(self, other: "VonMisesFisher") -> Array:
        """E[log p - log q] of this p from `other` q, []."""
        with scope(self):
            cosine = jnp.sum(self.mean_direction * other.mean_direction)
            pull = self.concentration - other.concentration * cosine
            return other.log_normalizer() - self.log_normalizer() + self.resultant * pull

    def fisher_information(self) -> tuple[Array, Array]:
        """Of one draw: about the concentration, A'(k), and about each tangent component of the
        mean direction, k A(k); the two are orthogonal. Both []."""
        with scope(self):
            k = self.concentration
            rise = jax.jvp(partial(iv_ratio, self.dimension / 2 - 1), (k,), (jnp.ones_like(k),))[1]
            return rise, k * self.resultant

    def sample(self, key: Array, count: int) -> Array:
        """`count` draws, [count, d], in O(count d); reparametrised in both fields."""
        with scope(self):
            return draw(key, self.mean_direction, self.concentration, count)

    @classmethod
    def fit(cls, x: ArrayLike, weights: ArrayLike | None = None) -> "VonMisesFisher":
        """Maximum-likelihood distribution of unit vectors.

        Args:
            x: unit vectors, [N, d].
            weights: how often each counts, [N], not negative; all the same when left out.
        Returns:
            the distribution, its concentration to 1e-12 relative times the condition number of
            the problem; infinite where all vectors are the same.
        """
        x = unit_vectors("fit", x)
        with scope(x):
            if weights is None:
                total = jnp.mean(x, 0)
            else:
                w = jnp.asarray(weights, x.dtype)
                if w.shape != x.shape[:1]:
                    raise ValueError(
                        f"fit: weights has shape {w.shape}, x has {len(x)} rows; they must agree; "
                        "give one weight a row"
                    )
                total = jnp.sum(w[:, None] * x, 0) / jnp.sum(w)
            return cls.from_mean(total)

    @classmethod
    def from_mean(cls, mean: Array) -> "VonMisesFisher":
        """The distribution whose mean vector is `mean`, [d], of length below 1."""
        with scope(mean):
            return cls(*_direction_and_concentration(mean))


@jax.jit  # or every fit outside of a jit would compile the loops of the inverse ratio anew
def _direction_and_concentration(mean: Array) -> tuple[Array, Array]:
    square = jnp.sum(mean * mean)
    length = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
    first = jnp.zeros_like(mean).at[0].set(1)  # any direction will do for no direction
    direction = jnp.where(square > 0, mean / jnp.where(square > 0, length, 1.0), first)
    return direction, iv_ratio_inverse(mean.shape[-1] / 2 - 1, length)


def log_sphere_area(dimension: int) -> float:
    """Logarithm of the area of the unit sphere in `dimension` dimensions.

    >>> round(log_sphere_area(3), 6)  # log(4 pi)
    2.531024
    """
    return log(2) + dimension / 2 * log(pi) - lgamma(dimension / 2)


def unit_vectors(name: str, x: ArrayLike) -> Array:
    """`x` as floating [N, d], d >= 2, for the function `name`."""
    with scope(x):
        x = jnp.asarray(x)
    if x.ndim != 2 or x.shape[0] < 1 or x.shape[1] < 2:
        raise ValueError(
            f"{name}: x has shape {x.shape}; it must be [N, d], N >= 1 unit vectors in d >= 2 "
            "dimensions, one a row; reshape it"
        )
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise TypeError(
            f"{name}: x is {x.dtype}; it must be floating; divide its rows by their norms"
        )
    return x


def _like(a: Array, x: Array) -> Array:
    """`a` with leading axes of length 1, as many as `x` has."""
    return a.reshape((1,) * (x.ndim - a.ndim) + a.shape)
