"""The pull of `pairs` for devices whose float64 is slow or absent: sums of two float32 numbers.

A coordinate is a pair hi + lo, good to 2^-48 of itself. Separations, where digits cancel, are taken
of both parts; all that follows is float32, with a relative error that no later step enlarges. So a
close pair deep in a cluster is pulled as exactly as any other: at a separation of 1e-7 of the
coordinates, float32 alone has lost every digit (Gaburov, Harfst & Portegies Zwart 2009,
doi:10.1016/j.newast.2009.03.002, do so on graphics processors).

A pair costs 12 operations more than in float32, 51 and an inverse root. Sums run over at most 4096
sources in float32 and from there in pairs; on GPUs and TPUs one kernel adds all terms in pairs.
Compilers that reorder sums destroy this arithmetic: never give `precision.reassociation` to a
program that holds it.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.geometry.vectors import dot

from .powers import inverse_powers
from .sums import pair_sum, summed
from .tiles import two_sum

_CHUNK = 4096


def split(x: Array) -> Array:
    """The float32 pair [2, ...] hi, lo whose sum is the float64 `x` [...], to 2^-48 of itself.

    Up to float32's largest number, 3e38; below 1e-30 the lower part fades out.
    """
    if x.dtype != jnp.float64:
        raise TypeError(f"hilo.split: x is {x.dtype}; must be float64; a float32 has no lower part")
    hi = x.astype(jnp.float32)
    return jnp.stack([hi, (x - hi.astype(jnp.float64)).astype(jnp.float32)])


def joined(x: Array) -> Array:
    """The float64 [...] that is the sum of the pair [2, ...]."""
    return x[0].astype(jnp.float64) + x[1].astype(jnp.float64)


def pull(points: Array, sources: Array, m: Array, softening: Array | float = 0.0) -> Array:
    """Acceleration and jerk [2, 6, K] at points by N sources, in pairs; see `pairs.pull`.

    Args:
        points: positions and velocities [2, 6, K], float32, as `split` makes them.
        sources: positions and velocities [2, 6, N].
        m: masses of the sources [N], float32.
        softening: length at which the pull is softened; 0 for none.

    Separations are within 2u + 11 u^2 |x| / r of the true ones, u = 2^-24, and so is a term of the
    acceleration within 16u + 21 u^2 |x| / r. They must lie between 1e-12 and 1e12, for float32 to
    hold their cubes. Nothing but float32 is computed. Forward mode runs through.

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
    """Float32 sums over chunks of the sources, which are added in pairs."""
    terms = lambda t, s: _pull_terms(t, s, list(numbers), inverse_powers)
    columns = jnp.concatenate([sources[0], sources[1][None]])
    count = -(-columns.shape[1] // _CHUNK)
    if count == 1:
        total = summed(terms, targets, [columns], 6)
        return jnp.stack([total, jnp.zeros_like(total)])
    # filled up with sources that have no mass, and are so far away that no power overflows
    spare = jnp.full((13, count * _CHUNK - columns.shape[1]), 1e18, jnp.float32).at[12].set(0)
    columns = jnp.concatenate([columns, spare], 1)

    def add(i: Array, total: Array) -> Array:
        chunk = lax.dynamic_slice(columns, (0, i * _CHUNK), (13, _CHUNK))
        return _added(total, summed(terms, targets, [chunk], 6))

    start = jnp.zeros((2, 6, targets[0].shape[1]), jnp.float32)
    return lax.fori_loop(0, count, add, start)


_pull_sum = pair_sum("pair_pull_hilo", _pull_terms, 6, plain=_pull_in_chunks, exact=True)


def _added(x: Array, term: Array) -> Array:
    """The pair [2, ...] plus a float32 [...]: the exact sum of two, the rest to the rest."""
    high, low = two_sum(x[0], term)
    low = low + x[1]
    total = high + low
    return jnp.stack([total, low - (total - high)])
