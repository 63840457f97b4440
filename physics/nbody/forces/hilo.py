"""The pull of `pairs` with two float32 numbers per value, for devices with slow or no float64.

A coordinate is a pair hi + lo with a relative precision of 2^-48. Separations, where digits cancel,
use both parts. All later terms are float32, with a relative error that no later operation
amplifies. A close pair deep in a cluster is thus pulled as accurately as any other. At a separation
of 1e-7 of the coordinates, float32 alone has no correct digit (Gaburov, Harfst & Portegies Zwart
2009, doi:10.1016/j.newast.2009.03.002, do the same on GPUs).

A pair costs 12 operations more than in float32: 51 and an inverse square root. Sums run in float32
over at most 4096 sources, and the partial sums are added in pairs. On GPUs and TPUs one kernel adds
all terms in pairs. Compilers that reorder sums destroy this arithmetic: never apply
`precision.reassociation` to a program that contains it.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.geometry.vectors import dot

from .pair_kernels import two_sum
from .pair_sums import pair_sum, sum_sources
from .powers import inverse_powers

_CHUNK = 4096


def split(x: Array) -> Array:
    """Split the float64 `x` [...] into a float32 pair [2, ...] hi, lo, to a relative 2^-48.

    Valid up to float32's largest number, 3e38; below 1e-30 the lower part loses its digits.
    """
    if x.dtype != jnp.float64:
        raise TypeError(f"hilo.split: x is {x.dtype}; must be float64; a float32 has no lower part")
    hi = x.astype(jnp.float32)
    return jnp.stack([hi, (x - hi.astype(jnp.float64)).astype(jnp.float32)])


def join(x: Array) -> Array:
    """Return the float64 sum [...] of the pair [2, ...]."""
    return x[0].astype(jnp.float64) + x[1].astype(jnp.float64)


def pull(points: Array, sources: Array, m: Array, softening: Array | float = 0.0) -> Array:
    """Return acceleration and jerk [2, 6, K] at points in pairs of float32; see `pairs.pull`.

    Args:
        points: positions and velocities [2, 6, K], float32, as `split` returns them.
        sources: positions and velocities [2, 6, N].
        m: masses of the sources [N], float32.
        softening: softening length; 0 for none.

    Separations have an error of at most 2u + 11 u^2 |x| / r, with u = 2^-24, and a term of the
    acceleration at most 16u + 21 u^2 |x| / r. Separations must lie between 1e-12 and 1e12, so that
    float32 can hold their cubes. All operations are float32. Supports forward-mode differentiation.

    >>> point, source = jnp.zeros((2, 2, 6, 1)).at[:, 0, 0].set(1.0)
    >>> source = source.at[1, 0].set(2.0**-30)  # at 1 + 2^-30, which is 1 in float32
    >>> float(pull(point, source, jnp.ones(1))[0, 0, 0]) == 2.0**60
    True
    """
    if points.dtype != jnp.float32 or points.ndim != 3 or points.shape[:2] != (2, 6):
        given = f"{points.dtype} {list(points.shape)}"
        raise ValueError(f"hilo.pull: points {given}; must be float32 [2, 6, K]; use hilo.split")
    eps2 = jnp.asarray(softening, jnp.float32) ** 2
    return _pull_sum([points.reshape(12, -1)], [sources.reshape(12, -1), m], eps2[None])


def _pull_terms(t: list[Array], s: list[Array], c: list[Array], powers: Callable) -> list[Array]:
    apart = [(s[k] - t[k]) + (s[k + 6] - t[k + 6]) for k in range(6)]
    d, w = apart[:3], apart[3:]
    u2, u3 = powers(dot(d, d) + c[0])
    p, q = s[12] * u3, 3 * dot(d, w) * u2
    return [p * e for e in d] + [p * (f - q * e) for e, f in zip(d, w)]


def _pull_in_chunks(targets: list[Array], sources: list[Array], numbers: Array) -> Array:
    """Sum in float32 over chunks of the sources and add the chunks in pairs."""
    terms = lambda t, s: _pull_terms(t, s, list(numbers), inverse_powers)
    columns = jnp.concatenate([sources[0], sources[1][None]])
    count = -(-columns.shape[1] // _CHUNK)
    if count == 1:
        total = sum_sources(terms, targets, [columns], 6)
        return jnp.stack([total, jnp.zeros_like(total)])
    # padding: massless sources, distant enough for finite inverse powers (no overflow)
    spare = jnp.full((13, count * _CHUNK - columns.shape[1]), 1e18, jnp.float32).at[12].set(0)
    columns = jnp.concatenate([columns, spare], 1)

    def add(i: Array, total: Array) -> Array:
        chunk = lax.dynamic_slice(columns, (0, i * _CHUNK), (13, _CHUNK))
        return _add_compensated(total, sum_sources(terms, targets, [chunk], 6))

    start = jnp.zeros((2, 6, targets[0].shape[1]), jnp.float32)
    return lax.fori_loop(0, count, add, start)


_pull_sum = pair_sum("pair_pull_hilo", _pull_terms, 6, plain=_pull_in_chunks, exact=True)


def _add_compensated(x: Array, term: Array) -> Array:
    """Add a float32 term [...] to the pair [2, ...]; the rounding error goes to the low part."""
    high, low = two_sum(x[0], term)
    low = low + x[1]
    total = high + low
    return jnp.stack([total, low - (total - high)])
