"""Samples of the von Mises-Fisher distribution, and their derivatives in its parameters.

A sample is w m + sqrt(1 - w^2) t. Its cosine w to the mean direction m is drawn by rejection (Wood
1994, doi:10.1080/03610919408813161). The uniform unit vector t orthogonal to m is a projected
normal vector. No rotation matrix is needed, so N samples cost O(N d): ten thousand in 8192
dimensions take a second of one core in float32, two in float64. The derivative of the cosine in the
concentration k is taken at fixed probability, dw/dk = -(dF/dk) / p(w), so gradients of expectations
are unbiased; the derivative of the accepted proposal alone would be biased (Figurnov et al. 2018,
arXiv:1805.08498).
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.devices import allocation
from jaxgpu.devices.precision import safe_tiny, scope
from jaxgpu.inputs.explanations import explain_errors, keeps_64_bits

from ..bessel.ratios import iv_ratio
from .arguments import check_concentration, check_count, check_direction, check_key

_BLOCK = 1 << 15  # values per block; a block fits the cache, which more than halves the time
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)


@explain_errors
@keeps_64_bits
def sample_vmf(key: Array, mean_direction: Array, concentration: Array, count: int) -> Array:
    """Sample `count` unit vectors [count, d], differentiable in both parameters.

    Args:
        key: typed key.
        mean_direction: unit vector, [d].
        concentration: at least 0, [].
        count: number of samples.

    Raises:
        ValueError: the length is not 1, the concentration is negative, or a value is nan.

    >>> north = jnp.array([0.0, 0.0, 1.0])
    >>> sample_vmf(jax.random.key(0), north, jnp.array(1e6), 2).shape
    (2, 3)
    """
    m = check_direction("sample: mean_direction", mean_direction)
    k = check_concentration("sample: concentration", concentration, m)
    key, count = check_key("sample", key), check_count("sample: count", count, least=0)
    with scope((m, k)):
        return _sample_directions(key, m, k, count)


@allocation.limit_memory
def _sample_directions(
    key: Array, mean_direction: Array, concentration: Array, count: int
) -> Array:
    d = mean_direction.shape[0]
    for_cosine, for_tangent = jax.random.split(key)
    gap = sample_gaps(for_cosine, d, jax.lax.stop_gradient(concentration), count)
    gap = _attach_concentration_gradient(d, gap, concentration)
    rows = max(1, min(count, _BLOCK // d))
    blocks = -(-count // rows)
    gap = jnp.pad(gap, (0, blocks * rows - count)).reshape(blocks, rows)
    keys = jax.random.split(for_tangent, blocks)
    x = jax.lax.map(lambda one: _sample_around(mean_direction, *one), (keys, gap))
    return x.reshape(blocks * rows, d)[:count]


def _sample_around(m: Array, key: Array, gap: Array) -> Array:
    """Sample unit vectors [n, d] uniformly from the circle of cosine 1 - gap to m."""
    normal = jax.random.normal(key, (gap.shape[0], m.shape[0]), m.dtype)
    tangent = normal - jnp.sum(normal * m[None], 1, keepdims=True) * m[None]
    sine2 = jnp.maximum(gap * (2 - gap), safe_tiny(m.dtype))
    scale = jnp.sqrt(sine2) / jnp.sqrt(jnp.sum(tangent * tangent, 1))
    return (1 - gap)[:, None] * m[None] + scale[:, None] * tangent


def sample_gaps(key: Array, d: int, concentration: Array, count: int) -> Array:
    """Sample 1 - w [count] to full relative precision; not differentiable."""
    k, n = concentration, d - 1
    b = n / (2 * k + jnp.sqrt(4 * k * k + n * n))
    c = 2 * b / (1 + b)  # 1 - w at the mode of the envelope

    def propose(carry):
        gap, waiting, key = carry
        key, for_radius, for_angle, for_level = jax.random.split(key, 4)
        uniform = lambda key: jax.random.uniform(key, (count,), k.dtype, minval=1e-30)
        # z and 1 - z follow a symmetric beta law: a coordinate of a point on the sphere in n + 1
        # dimensions (Ulrich 1984, doi:10.2307/2347441); each is a sum of positive terms
        power = 2 / (n - 1) * jnp.log(uniform(for_radius)) if n > 1 else -jnp.inf
        radius = jnp.sqrt(-jnp.expm1(power))
        rest = 0.5 * jnp.exp(power) / (1 + radius)
        half = np.pi * uniform(for_angle)
        z, away = rest + radius * jnp.cos(half) ** 2, rest + radius * jnp.sin(half) ** 2
        new = 2 * b * z / (away + b * z)
        level = jnp.log(uniform(for_level))
        # log of target over envelope, whose maximum is 0 at new = c
        gain = k * (c - new) + n * jnp.log((c + (1 - c) * new) / (c * (2 - c)))
        accepted = waiting & ~(gain < level)  # nan is accepted, else the loop would not end
        return jnp.where(accepted, new, gap), waiting & ~accepted, key

    start = jnp.zeros((count,), k.dtype), jnp.ones((count,), bool), key
    gap = jax.lax.while_loop(lambda carry: jnp.any(carry[1]), propose, start)[0]
    return jnp.clip(gap, 0, 2)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _attach_concentration_gradient(d: int, gap: Array, concentration: Array) -> Array:
    return gap


@_attach_concentration_gradient.defjvp
def _attach_concentration_gradient_jvp(d, primals, tangents):
    (gap, k), (dgap, dk) = primals, tangents
    return gap, dgap - cosine_derivative(d, gap, k) * dk


def cosine_derivative(d: int, gap: Array, concentration: Array) -> Array:
    """Return dw/dk [N] of w = 1 - gap at fixed probability: the integral of (t - A) p(t) / p(w).

    It runs from w to 1. With t = cos r the integrand is smooth for all d >= 2. The integral is
    taken over the side of w away from the mode (both sides cancel), up to 10 standard deviations.
    """
    k, w = concentration, 1 - gap
    a = iv_ratio(0.5 * d - 1, k)
    sine2 = jnp.maximum(gap * (2 - gap), safe_tiny(w.dtype))
    angle = jnp.arctan2(jnp.sqrt(sine2), w)
    upper = w > a
    room = jnp.where(upper, angle, np.pi - angle)
    width = 10 / jnp.sqrt(k * jnp.abs(w) + (d - 2) / sine2 + 1e-6)
    length = jnp.minimum(room, width)
    steps = (0.5 * (1 + _NODES)).astype(w.dtype)[None] * length[:, None]
    r = angle[:, None] + jnp.where(upper, -1, 1)[:, None].astype(w.dtype) * steps
    # log of the density ratio of r to w, without a difference of two large terms
    cosine_gap = -2 * jnp.sin(0.5 * (r + angle[:, None])) * jnp.sin(0.5 * (r - angle[:, None]))
    sine_ratio = jnp.maximum(jnp.sin(r), 0) / jnp.sqrt(sine2)[:, None]
    density = jnp.exp(k * cosine_gap + (d - 2) * jnp.log(jnp.maximum(sine_ratio, 1e-30)))
    pull = (w[:, None] - a + cosine_gap) * density * (0.5 * _WEIGHTS).astype(w.dtype)[None]
    total = jnp.sum(pull, 1) * length * jnp.sqrt(sine2)
    return jnp.where(upper, total, -total)
