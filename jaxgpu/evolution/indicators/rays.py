"""Hypervolume and all exclusive contributions for any number of objectives, estimated by rays.

In polar coordinates around the reference point r (Deng & Zhang 2019, doi:10.1109/TEVC.2018.2859638;
Shang, Ishibuchi & Ni 2020, doi:10.1109/TEVC.2019.2912917)

    HV = c E[ max_i s_i^m ],    s_i = min_k (r_k - f_ik) / w_k,    c = pi^(m/2) / (2^m G(m/2 + 1)),

over directions w uniform on the positive orthant of the sphere; G is the gamma function. On each
ray, the farthest point exclusively covers the part beyond the second farthest, so the same pass
gives every exclusive contribution. Directions come from a Kronecker sequence with random shifts;
the shifts are independent, and their scatter gives the standard error.

About 2 m + 6 operations per ray and point; memory O(n).
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.inputs import arguments
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import pytree
from jaxgpu.inputs.ranges import Range, refuse

from .arguments import check_points, check_vector

SHIFTS = 8  # independent replicates for every standard error
TILE = 64  # rays evaluated in parallel
_CELLS = 1024  # cells of the quantile table; its error is below 1e-6 of a quarter turn


@pytree
class VolumeEstimate:
    """Hypervolume and exclusive contributions, each with a standard error."""

    volume: Array  # [] hypervolume
    error: Array  # [] standard error of the volume
    contributions: Array  # [n] volume that only this point covers
    errors: Array  # [n] standard errors of the contributions


@explain_errors
def hypervolume_by_rays(
    f: Array, reference: Array, key: Array, rays: int = 1 << 14
) -> VolumeEstimate:
    """Estimate the hypervolume and the exclusive contribution of each point.

    Args:
        f: objectives to minimise, [n, m], m >= 2. Points not better than the reference in every
            objective contribute nothing. NaN and -inf raise if values are known; in a compiled
            program a point with NaN is ignored.
        reference: [m], worse than the points in every objective.
        key: random key of the shifts.
        rays: number of directions, a multiple of 512.
    Returns:
        Volume. Differentiable in f and reference almost everywhere.

    >>> square = hypervolume_by_rays(jnp.zeros((1, 2)), jnp.ones(2), jax.random.key(0))
    >>> bool(abs(square.volume - 1) < 1e-3)
    True
    """
    f = check_points("hypervolume_by_rays: f", f)
    n, m = f.shape
    if m < 2:
        raise ValueError("hypervolume_by_rays: one objective; it must be two or more")
    reference = check_vector("hypervolume_by_rays: reference", reference, f)
    arguments.key("hypervolume_by_rays: key", key)
    refuse("hypervolume_by_rays: rays", rays, Range(whole=True, one=True))
    if rays < 1 or rays % (SHIFTS * TILE):
        raise ValueError(f"hypervolume_by_rays: {rays} rays; need a multiple of {SHIFTS * TILE}")
    reach = improvements(f, reference)
    shifts = jax.random.bits(key, (SHIFTS, m - 1), jnp.uint32)
    starts = jnp.arange(0, rays // SHIFTS, TILE, dtype=jnp.uint32)

    def replicate(shift: Array) -> tuple[Array, Array]:
        def add_tile(total: tuple[Array, Array], start: Array) -> tuple[tuple[Array, Array], None]:
            volume, own = _sum_ray_volumes(reach, directions(shift, start, f.dtype))
            return (total[0] + volume, total[1] + own), None

        zero = jnp.zeros((), f.dtype), jnp.zeros(n, f.dtype)
        volume, own = lax.scan(add_tile, zero, starts)[0]
        scale = orthant_volume(m) * SHIFTS / rays
        return scale * volume, scale * own

    volumes, owns = lax.map(replicate, shifts)
    spread = math.sqrt(1 / (SHIFTS - 1))
    return VolumeEstimate(
        jnp.mean(volumes),
        spread * jnp.std(volumes),
        jnp.mean(owns, axis=0),
        spread * jnp.std(owns, axis=0),
    )


def improvements(f: Array, reference: Array) -> Array:
    """Return reference - f, zero for points that are not strictly better. [n, m]."""
    inside = jnp.all(f < reference[None], axis=1)[:, None]
    return jnp.where(inside, reference[None] - jnp.where(inside, f, 0), 0)


def orthant_volume(m: int) -> float:
    """Return the volume of the positive orthant of the unit ball in m dimensions."""
    return math.pi ** (m / 2) / (2**m * math.gamma(m / 2 + 1))


def directions(shift: Array, start: Array, dtype: jnp.dtype) -> Array:
    """Return `TILE` directions of a shifted Kronecker sequence, [tile, m], unit and positive.

    The sequence has multiples of the powers of the root of t^m = t + 1, as 32-bit fractions of a
    turn, which wrap around exactly. Each of the m - 1 fractions is the quantile of a polar angle.

    Args:
        shift: shift of the sequence, [m - 1] uint32.
        start: index of the first direction, uint32.
    """
    m = shift.shape[0] + 1
    root = 2.0
    for _ in range(64):
        root = (1 + root) ** (1 / m)
    fractions = np.array([(root ** -(k + 1) % 1) * 2**32 for k in range(m - 1)])
    steps = (start + jnp.arange(TILE, dtype=jnp.uint32))[:, None]
    turn = shift[None] + steps * jnp.asarray(fractions.astype(np.uint32))[None]
    u = ((turn >> 9).astype(dtype) + 0.5) * 2.0**-23  # 23 bits, never 0 or 1
    columns, rest = [], jnp.ones(TILE, dtype)
    for k in range(m - 1):
        angle = _angle_quantile(u[:, k], m - 2 - k)
        columns.append(rest * jnp.cos(angle))
        rest = rest * jnp.sin(angle)
    return jnp.stack([*columns, rest], axis=1)


def _angle_quantile(u: Array, power: int) -> Array:
    """Return the angle in (0, pi/2) below which the density sin^power has the fraction u."""
    if power == 0:
        return u * (jnp.pi / 2)
    angle = np.linspace(0, np.pi / 2, 16 * _CELLS + 1)
    density = np.sin(angle) ** power
    share = np.cumsum(density) - density / 2
    share = ((share - share[0]) / (share[-1] - share[0]))[::16]
    return jnp.interp(u, jnp.asarray(share, u.dtype), jnp.asarray(angle[::16], u.dtype))


def ray_lengths(reach: Array, w: Array) -> Array:
    """Return how far each point reaches along each direction. [n, m], [rays, m] -> [rays, n]."""
    s = reach[None, :, 0] / w[:, :1]
    for k in range(1, w.shape[1]):
        s = jnp.minimum(s, reach[None, :, k] / w[:, k : k + 1])
    return s


def _sum_ray_volumes(reach: Array, w: Array) -> tuple[Array, Array]:
    """Return the sum over rays of (max reach)^m, and the part of it exclusive to each point."""
    m = w.shape[1]
    s = ray_lengths(reach, w)
    far = jnp.max(s, axis=1, keepdims=True)
    best = s == far
    second = jnp.max(jnp.where(best, 0, s), axis=1, keepdims=True)
    alone = jnp.sum(best, axis=1, keepdims=True) == 1
    own = jnp.where(alone, far**m - second**m, 0)
    return jnp.sum(far**m), jnp.sum(jnp.where(best, own, 0), axis=0)
