"""Forces between pairs of points, summed (`pair_sums`) without storing a value per pair.

A pair of `pull` takes 38 operations, a division and a square root. It reads the 56 bytes of its
source from cache; only the six sums are written. A core of an AMD EPYC (Zen 4, 3.66 GHz) does
1.06e9 divisions with a square root per second alone. It evaluates 0.98e9 complete pairs in float64,
93 % of that, as many as a C loop with AVX-512 intrinsics (`benchmarks/pair_kernel.py`).

A gradient costs one such pass for the targets and one for the sources: the derivative rules below
are explicit, so no tape of N x K values is stored. On GPUs and TPUs every pass is one kernel
(`pair_kernels`). For devices with slow float64, see `hilo`.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.devices.primitive import jvp_of, primitive
from jaxgpu.geometry.vectors import dot

from .pair_sums import check_rows, pair_sum, sum_sources


def pull(points: Any, sources: Any, m: Array, softening: Array | float = 0.0) -> Array:
    """Return acceleration and jerk [6, K] at points due to N sources, with G = 1.

    a = sum m d / r^3 and its time derivative sum m (w - 3 (d . w) d / r^2) / r^3, where d and w are
    the separation and the relative velocity and r^2 = d . d + softening^2. A point that is one of
    the sources is not pulled by itself. On CPUs, pulls at separations below 1e-77 (float32: 1e-9)
    are softened; on other devices, float32 pulls at separations below 1e-12 are zero.

    On a TPU, which has no true float64, float64 uses pairs of float32. Separations are as accurate
    as in float64; between 1e-12 and 1e12, each pull has float32 rounding errors (see `hilo`).
    Export of a program that contains this sum is described in `jaxgpu.devices.kernels`.

    Args:
        points: positions and velocities [6, K], or a tuple of their six rows [K].
        sources: positions and velocities [6, N], or their rows.
        m: masses of the sources [N].
        softening: softening length; 0 for none.

    Differentiable in points, sources and m, not in the softening: forward mode costs one more pass,
    reverse mode two, without storing values per pair. Only second derivatives need O(N K) memory.

    Raises:
        ValueError: points, sources or masses of another shape.

    >>> pull(jnp.zeros((6, 1)), jnp.array([[2.0, 0, 0, 0, 1, 0]]).T, jnp.ones(1))[:, 0].round(6)
    Array([0.25 , 0.   , 0.   , 0.   , 0.125, 0.   ], dtype=float32)
    """
    check_rows("pairs.pull", 6, points, sources, m)
    return _pull(points, sources, m, jnp.asarray(softening, m.dtype))


@jax.custom_jvp
def _pull(points: Any, sources: Any, m: Array, softening: Array) -> Array:
    return _pull_sum(jax.tree.leaves(points), [*jax.tree.leaves(sources), m], softening[None])


def _pull_terms(t: list[Array], s: list[Array], c: list[Array], powers: Callable) -> list[Array]:
    d, w, _, u3, q = _pair_geometry(t, s, c[0], powers)
    p = s[6] * u3
    return [p * e for e in d] + [p * (e - q * f) for f, e in zip(d, w)]


def _pull_on_cpu(targets: list[Array], sources: list[Array], numbers: Array) -> Array:
    # with `least` in the denominator a point does not pull itself (0 / least), without a comparison
    softening, m = numbers[0], sources[-1]
    least = softening * softening + float(jnp.finfo(m.dtype).tiny) ** 0.5

    def terms(t: list[Array], s: list[Array]) -> list[Array]:
        d, w = _separations(t, s)
        # divider and multipliers work in parallel: 1.3 times as fast as XLA's inverse square root
        u2 = 3 / (least + d[0] * d[0] + d[1] * d[1] + d[2] * d[2])
        p, q = s[6] * (u2 * jnp.sqrt(u2)), dot(d, w) * u2
        return [p * c for c in d] + [p * (e - q * c) for c, e in zip(d, w)]

    return sum_sources(terms, targets, [*sources[:-1], m / 27**0.5], 6)


@_pull.defjvp
def _pull_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    stack_rows = lambda q: jnp.stack(q) if isinstance(q, tuple) else q
    given = tuple(map(stack_rows, primals))
    return _pull(*primals), pair_tangent(given, tuple(map(stack_rows, tangents[:3])))


def _tangent(given: tuple, tangents: tuple) -> Array:
    """Return the tangent [6, K] of acceleration and jerk, linear in the input tangents."""
    points, sources, m, softening = given
    by_point, by_source, by_mass = tangents
    return _change_sum([points, by_point], [sources, m, by_source, by_mass], softening[None])


def _change_terms(t: list[Array], s: list[Array], c: list[Array], powers: Callable) -> list[Array]:
    d, w, u2, u3, q = _pair_geometry(t, s, c[0], powers)
    p = s[6] * u3
    dd, dw = ([b - a for a, b in zip(t[k : k + 3], s[k + 1 : k + 4])] for k in (6, 9))
    fall = dot(d, dd) * u2
    dp = u3 * s[13] - 3 * p * fall
    dq = 3 * (dot(dd, w) + dot(d, dw)) * u2 - 2 * q * fall
    pull = [dp * c + p * e for c, e in zip(d, dd)]
    return pull + [dp * (w[k] - q * d[k]) + p * (dw[k] - dq * d[k] - q * dd[k]) for k in range(3)]


def _cotangent(given: tuple, ct: Array) -> tuple[Array, Array, Array]:
    """Return the gradients with respect to points [6, K], sources [6, N] and masses [N]."""
    points, sources, m, softening = given
    for_points = _points_sum([points, ct], [sources, m], softening[None])
    for_sources = _sources_sum([sources, m], [points, ct], softening[None])
    return for_points, for_sources[:6], for_sources[6]


def _gradients(d: list, w: list, u2: Array, p: Array, q: Array, ct: list) -> list[Array]:
    """Return the gradients with respect to the separation and relative velocity of each pair."""
    alpha, beta = ct[:3], ct[3:]
    ad, bw, bd = dot(alpha, d), dot(beta, w), dot(beta, d)
    fall = 3 * u2 * (ad + bw - q * bd) - 2 * q * bd * u2
    by_d = [p * (alpha[k] - q * beta[k] - 3 * bd * u2 * w[k] - fall * d[k]) for k in range(3)]
    return by_d + [p * (beta[k] - 3 * bd * u2 * d[k]) for k in range(3)]


def _points_terms(t: list[Array], s: list[Array], c: list[Array], powers: Callable) -> list[Array]:
    d, w, u2, u3, q = _pair_geometry(t, s, c[0], powers)
    return [-g for g in _gradients(d, w, u2, s[6] * u3, q, t[6:])]


def _sources_terms(t: list[Array], s: list[Array], c: list[Array], powers: Callable) -> list[Array]:
    """Return the gradients of a source, the target of this sum, due to each point."""
    d, w, u2, u3, q = _pair_geometry(s, t, c[0], powers)
    by_mass = dot(s[6:9], d) + dot(s[9:], w) - q * dot(s[9:], d)
    return [*_gradients(d, w, u2, t[6] * u3, q, s[6:]), u3 * by_mass]


def pair_tangent(given: tuple, tangents: tuple) -> Array:
    """Return `_tangent` in a form that JAX can transpose, unlike a variadic reduction."""
    return _tangent_sum(*given, *tangents, batch=0)


def _map_batch(f: Callable, batch: int) -> Callable:
    """Map `f(given, linear)` over `batch` leading axes of all arguments."""
    for _ in range(batch):
        f = jax.vmap(f)
    return f


def _evaluate(*args: Array, batch: int) -> Array:
    return _map_batch(_tangent, batch)(args[:4], args[4:])


def _transpose(ct: Array, args: list, *, batch: int) -> list:
    return [None] * 4 + list(_map_batch(_cotangent, batch)(tuple(args[:4]), ct))


# the arguments are four fixed values, then the tangents of the first three (the linear inputs)
_tangent_sum = primitive(
    "pair_tangent",
    _evaluate,
    lambda *args, batch: args[4].update(weak_type=False),
    batch=lambda size, *args, batch: _tangent_sum(*args, batch=batch + 1),
    jvp=jvp_of(_evaluate),
    transpose=_transpose,
)


def _separations(t: list[Array], s: list[Array]) -> list[list[Array]]:
    """Return separation and relative velocity of every pair, from targets to sources."""
    return [[b - a for a, b in zip(t[k : k + 3], s[k : k + 3])] for k in (0, 3)]


def _pair_geometry(
    t: list[Array], s: list[Array], softening: Array, powers: Callable
) -> tuple[list[Array], list[Array], Array, Array, Array]:
    """Return separation, relative velocity, 1 / r^2, 1 / r^3 and 3 (d . w) / r^2 of every pair."""
    d, w = _separations(t, s)
    u2, u3 = powers(dot(d, d) + softening * softening)
    return d, w, u2, u3, 3 * dot(d, w) * u2


_pull_sum = pair_sum("pair_pull", _pull_terms, 6, cpu=_pull_on_cpu)
_change_sum = pair_sum("pair_change", _change_terms, 6)
_points_sum = pair_sum("pair_gradient_of_points", _points_terms, 6)
_sources_sum = pair_sum("pair_gradient_of_sources", _sources_terms, 7)


def batched_pull(sources: Array, gm: Array, x: Array) -> Array:
    """Return the acceleration [K, 3, B] at points `x` [K, 3, B] due to N sources at [K, N, 3].

    One variadic reduction over the sources computes all three sums in one pass, with the pair's
    expression evaluated once. The targets fill the vector registers, so no compiler options are
    needed. Meant for N up to some tens; K is any batch, such as the nodes of a step.

    A pair takes 19 operations and an inverse square root, and reads only its target from memory.
    """
    d = [sources[:, :, k].T[:, :, None] - x[:, k][None] for k in range(3)]
    u = lax.rsqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2])
    w = gm[:, None, None] * u * u * u
    zero = jnp.zeros((), x.dtype)
    add = lambda s, t: tuple(p + q for p, q in zip(s, t))
    return jnp.stack(lax.reduce(tuple(w * c for c in d), (zero,) * 3, add, (0,)), 1)
