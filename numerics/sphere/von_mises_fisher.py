"""The von Mises-Fisher distribution, the analogue of the normal distribution on the unit sphere.

    p(x) = C_d(k) exp(k m.x),    log C_d(k) = -log 0F1(; d/2; k^2/4) - log area(d)

for unit vectors x in d dimensions, with mean direction m and concentration k. With 0F1 the density
is smooth at k = 0, where it is uniform. The mean of m.x is the resultant length
A(k) = I_{d/2}(k) / I_{d/2-1}(k).

Mardia & Jupp (2000), Directional Statistics, doi:10.1002/9780470316979, sections 9.3.2 and 10.3.
"""

from functools import partial
from math import lgamma, log, pi

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from jaxgpu.devices.precision import scope
from jaxgpu.inputs.explanations import keeps_64_bits, keeps_64_bits_of_specs
from jaxgpu.inputs.fields import number, pytree

from ..arguments import work_dtype
from ..bessel.hypergeometric import log_hyp0f1
from ..bessel.ratios import iv_ratio, iv_ratio_inverse
from .arguments import (
    check_concentration,
    check_direction,
    check_mean,
    check_points,
    check_unit_vectors,
    check_weights,
    to_work_dtype,
    tolerance,
)
from .sampling import sample_vmf


@pytree
class VonMisesFisher:
    """A von Mises-Fisher distribution on the unit sphere in d >= 2 dimensions.

    Differentiable in both fields; `vmap` over them makes a batch of distributions. Where values are
    known, outside of `jit`, vectors that are nan or not of unit length raise an error. Half
    precisions are computed in float32.

    >>> north = VonMisesFisher(jnp.array([0.0, 0.0, 1.0]), jnp.array(2.0))
    >>> north.log_prob(jnp.array([0.0, 0.0, 1.0]))  # log(2 / (4 pi sinh 2)) + 2
    Array(-1.1262..., dtype=float32)
    """

    mean_direction: Array = number()  # [d] unit vector, to 1e-5
    concentration: Array = number(least=0, infinite=True)  # [] if infinite, all samples are m

    @property
    def dimension(self) -> int:
        """Number of dimensions d of the space around the sphere."""
        return np.shape(self.mean_direction)[-1]

    @property
    def resultant_length(self) -> Array:
        """The length A(k) of the mean vector, []."""
        m, k = self._check_fields("resultant")
        return iv_ratio(len(m) / 2 - 1, k)

    @property
    def mean(self) -> Array:
        """The mean vector, [d]; its length is less than 1."""
        m, k = self._check_fields("mean")
        with scope((m, k)):
            return iv_ratio(len(m) / 2 - 1, k) * m

    @keeps_64_bits
    def log_normalizer(self) -> Array:
        """Return -log C_d(k), []."""
        m, k = self._check_fields("log_normalizer")
        with scope((m, k)):
            return _log_normalizer(len(m), _promote(k)).astype(k.dtype)

    @keeps_64_bits_of_specs
    def log_prob(self, x: ArrayLike) -> Array:
        """Return the log density per unit of area at the unit vectors `x`, [..., d] -> [...]."""
        m, k = self._check_fields("log_prob")
        with scope((m, k)):
            x = jnp.asarray(check_points("log_prob", x, len(m)))
            along = jnp.sum(_promote(x) * _add_leading_axes(_promote(m), x), -1)
            log_p = _promote(k) * along - _log_normalizer(len(m), _promote(k))
            return log_p.astype(jnp.result_type(m, k, x))

    @keeps_64_bits
    def entropy(self) -> Array:
        """Return the differential entropy -E[log p], []."""
        m, k = self._check_fields("entropy")
        with scope((m, k)):
            wide = _promote(k)
            pull = wide * iv_ratio(len(m) / 2 - 1, wide)
            return (_log_normalizer(len(m), wide) - pull).astype(k.dtype)

    @keeps_64_bits
    def kl_divergence(self, other: "VonMisesFisher") -> Array:
        """Return the Kullback-Leibler divergence E[log p - log q] [] of this p from `other` q."""
        (m, k), (n, h) = self._check_fields("kl_divergence"), other._check_fields("kl_divergence")
        if len(m) != len(n):
            raise ValueError(
                f"kl_divergence: dimensions {len(m)} and {len(n)}; they must be the same; "
                "compare distributions on one sphere"
            )
        with scope((m, k, n, h)):
            kind, d = jnp.result_type(m, k, n, h), len(m)
            m, k, n, h = (_promote(a) for a in (m, k, n, h))
            pull = k - h * jnp.sum(m * n)
            drop = _log_normalizer(d, h) - _log_normalizer(d, k)
            return (drop + iv_ratio(d / 2 - 1, k) * pull).astype(kind)

    @keeps_64_bits
    def fisher_information(self) -> tuple[Array, Array]:
        """Return the Fisher information [] of one sample about k, and about the direction.

        The first is A'(k); the second, per tangent component of the direction, is k A(k). The two
        parameters are orthogonal.
        """
        m, k = self._check_fields("fisher_information")
        with scope((m, k)):
            ratio = partial(iv_ratio, len(m) / 2 - 1)
            return jax.jvp(ratio, (k,), (jnp.ones_like(k),))[1], k * ratio(k)

    @keeps_64_bits
    def sample(self, key: Array, count: int) -> Array:
        """Sample `count` vectors [count, d] in O(count d), reparametrised in both fields."""
        return sample_vmf(key, self.mean_direction, self.concentration, count)

    @classmethod
    @keeps_64_bits
    def fit(cls, x: ArrayLike, weights: ArrayLike | None = None) -> "VonMisesFisher":
        """Return the maximum-likelihood distribution of unit vectors.

        Args:
            x: unit vectors, [N, d], of length 1 to 1e-5 as in SciPy. Rows of float16 and bfloat16
                may be off by 4 eps; they are converted to float32 and normalised there.
            weights: multiplicities of the vectors, [N], not negative; all equal by default.
        Returns:
            The distribution; its concentration has a relative error of 1e-12 times the condition
            number of the problem, and is infinite if all vectors are equal to rounding.

        Raises:
            ValueError: nan, infinity or a length other than 1 in `x`, a weight that is negative or
                not finite, or weights that are all 0. Under `jit`, where values are unknown, nan
                gives nan, and rows must be of unit length.
        """
        x = check_unit_vectors("fit", x)
        with scope(x):
            x = jnp.asarray(x)
            kind, x = x.dtype, to_work_dtype(x)
            if weights is None:
                total = jnp.mean(x, 0)
            else:
                w = check_weights("fit", weights, x)
                total = jnp.sum(w[:, None] * x, 0) / jnp.sum(w)
            return cls(*(a.astype(kind) for a in _direction_and_concentration(total)))

    @classmethod
    @keeps_64_bits
    def from_mean(cls, mean: ArrayLike) -> "VonMisesFisher":
        """Return the distribution whose mean vector is `mean`, [d], of length at most 1."""
        mean = check_mean("from_mean", mean)
        with scope(mean):
            found = _direction_and_concentration(_promote(mean))
            return cls(*(a.astype(mean.dtype) for a in found))

    def _check_fields(self, name: str) -> tuple[Array, Array]:
        """Check both fields and return them as arrays, for the method `name`."""
        m = check_direction(f"{name}: mean_direction", self.mean_direction)
        return m, check_concentration(f"{name}: concentration", self.concentration, m)


@jax.jit  # else every fit outside of a jit would recompile the loops of the inverse ratio
def _direction_and_concentration(mean: Array) -> tuple[Array, Array]:
    square = jnp.sum(mean * mean)
    none = square == 0  # false for nan, so that nan gives nan
    length = jnp.where(none, 0.0, jnp.sqrt(jnp.where(none, 1.0, square)))
    first = jnp.zeros_like(mean).at[0].set(1)  # an arbitrary direction for a zero mean
    direction = jnp.where(none, first, mean / jnp.where(none, 1.0, length))
    # the mean of equal vectors is as long as they are, i.e. 1 to rounding
    room = tolerance(mean.dtype, len(mean))
    length = jnp.where((length > 1) & (length <= 1 + room), 1.0, length)
    return direction, iv_ratio_inverse(mean.shape[-1] / 2 - 1, length)


def _log_normalizer(d: int, k: Array) -> Array:
    return log_hyp0f1(d / 2, 0.25 * k * k) + log_sphere_area(d)


def log_sphere_area(dimension: int) -> float:
    """Return the logarithm of the area of the unit sphere in `dimension` dimensions.

    >>> round(log_sphere_area(3), 6)  # log(4 pi)
    2.531024
    """
    return log(2) + dimension / 2 * log(pi) - lgamma(dimension / 2)


def _promote(a: Array) -> Array:
    """Convert `a` to the dtype in which it is computed."""
    return a.astype(work_dtype(a.dtype))


def _add_leading_axes(a: Array, x: Array) -> Array:
    """Return `a` with leading axes of length 1, up to the number of axes of `x`."""
    return a.reshape((1,) * (x.ndim - a.ndim) + a.shape)
