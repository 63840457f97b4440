"""Transfers between particles and grid, closed under transposition and differentiation.

With quadratic B-splines w and node offset o = (i, j, k) from a particle's base node,

    spread:   g_o += w_o Q_o,          Q_o = Q_0 + i Q_1 + j Q_2 + k Q_3
    moments:  M_0 = sum_o w_o g_o,  M_1 = sum_o i w_o g_o,  M_2 = sum_o j w_o g_o, ...
    slopes:   S_d = sum_o (dw_o / dx_d) <g_o, Q_o>

in one to three dimensions D. `spread` is linear in Q and `moments` in g, and they are each
other's transpose; both x-derivatives are one `slopes` gather when transposed. A weight replaced
by its derivative along an axis is only another layout, so the family is closed: reverse mode,
forward mode and every mixture of them cost a few passes of these same kernels, at any order.
They are JAX primitives because no custom rule (custom_vjp, custom_jvp) gives both modes.

Under `vmap` the grids of a batch are stacked and every particle's row index shifted: one
program on any device. Kernels are chosen per platform: chunks in cache on a CPU, windows else.
Hu, Fang, Ge, Qu, Zhu, Pradhana & Jiang (2018), doi:10.1145/3197517.3201293, for MLS-MPM.
"""

from collections.abc import Callable, Sequence
from functools import partial

import jax
from jax import Array, lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from . import chunked, windows
from .stencil import ROW, Layout


def spread(x: Sequence[Array], q: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """Sum of the particles' contributions on a grid.

    Args:
        x: D arrays [C, P], position in units of the grid spacing, in [0.5, shape[d] - 1.5).
        q: rows of Q_0, then of each slope Q_1..Q_D, as one flat list of arrays [C, P]; Q_0 has
            D + 1 rows and the slopes D (momentum and mass), or all have D.
        shape: number of nodes along each of the D axes, at least 3.
    Returns:
        [nodes, 4], the grid flattened row-major; rows beyond those of Q are zero.
    Differentiable in x and q, any mode and order.

    >>> import jax.numpy as jnp
    >>> at, one, zero = jnp.array([[1.0]]), jnp.array([[1.0]]), jnp.array([[0.0]])
    >>> spread([at], [zero, one, zero], (3,))[:, 1]
    Array([0.125, 0.75 , 0.125], dtype=float32)
    """
    d = len(shape)
    first = len(q) - d * d  # the slopes carry no mass
    layout = Layout(1, tuple(shape), (first, d), (0,) * d)
    return _spread.bind(*x, *q, layout=layout)


def moments(
    x: Sequence[Array], grid: Array, shape: tuple[int, ...], columns: int = 0
) -> list[list[Array]]:
    """Moments M_0, M_1, ..., M_D of the first D columns of a grid field at the particles.

    Args:
        x: D arrays [C, P], as in `spread`.
        grid: [nodes, 4].
        shape: number of nodes along each axis.
        columns: of which M_0 is taken, D or D + 1.
    Returns:
        D + 1 lists of D arrays [C, P]: M_0, then the first moments along each axis.
    Differentiable in x and grid, any mode and order.
    """
    d = len(shape)
    layout = Layout(1, tuple(shape), (columns or d, d), (0,) * d)
    return layout.split(_moments.bind(*x, grid, layout=layout))


def _choose(name: str, *args, layout: Layout):
    cpu, other = (partial(getattr(m, name), layout=layout) for m in (chunked, windows))
    return lax.platform_dependent(*args, cpu=cpu, default=other)


def _run_spread(*args: Array, layout: Layout) -> Array:
    d = len(layout.shape)
    return _choose("spread", args[:d], args[d:], layout=layout)


def _run_moments(*args: Array, layout: Layout) -> list[Array]:
    return _choose("moments", args[:-1], args[-1], layout=layout)


def _run_slopes(*args: Array, layout: Layout) -> list[Array]:
    d = len(layout.shape)
    return _choose("slopes", args[:d], args[d:-1], args[-1], layout=layout)


def _scaled(a: Array, q: Sequence[Array]) -> list[Array]:
    return [a * b for b in q]


def _total(terms: Sequence[Sequence[Array]]) -> list[Array]:
    return [sum(column[1:], column[0]) for column in zip(*terms)]


def _run_spread_tangent(*args: Array, layout: Layout) -> Array:
    """Arguments x, q, dx, dq."""
    d, n = len(layout.shape), layout.count
    x, q, dx, dq = args[:d], args[d : d + n], args[d + n : 2 * d + n], args[2 * d + n :]
    out = _spread.bind(*x, *dq, layout=layout)
    for axis in range(d):
        out = out + _spread.bind(*x, *_scaled(dx[axis], q), layout=layout.raised(axis))
    return out


def _run_moments_tangent(*args: Array, layout: Layout) -> list[Array]:
    """Arguments x, grid, dx, dgrid."""
    d = len(layout.shape)
    x, grid, dx, dgrid = args[:d], args[d], args[d + 1 : 2 * d + 1], args[-1]
    terms = [_moments.bind(*x, dgrid, layout=layout)]
    for axis in range(d):
        terms.append(_scaled(dx[axis], _moments.bind(*x, grid, layout=layout.raised(axis))))
    return _total(terms)


def _slopes_by_moments(*args: Array, layout: Layout) -> list[Array]:
    """The value of `_slopes` from moments alone: what its derivatives are taken of."""
    d = len(layout.shape)
    x, q, grid = args[:d], args[d:-1], args[-1]
    products = []
    for axis in range(d):
        m = _moments.bind(*x, grid, layout=layout.raised(axis))
        products.append(_total([[a * b] for a, b in zip(q, m)])[0])
    return products


def _primitive(name: str, run: Callable, several: bool, like: Callable) -> Primitive:
    """A primitive that is evaluated, lowered and batched through the function `run`."""
    p = Primitive(f"mpm_{name}")
    p.multiple_results = several
    p.def_impl(jax.jit(run, static_argnames="layout"))
    p.def_abstract_eval(like)
    mlir.register_lowering(p, mlir.lower_fun(run, multiple_results=several))
    batching.primitive_batchers[p] = partial(_batch, p)
    return p


def _batch(p: Primitive, args, dims, *, layout: Layout):
    """Stack the batch's grids, and its chunks, one after another."""
    size = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
    flat = [batching.bdim_at_front(a, d, size) for a, d in zip(args, dims)]
    flat = [a.reshape(-1, *a.shape[2:]) for a in flat]
    stacked = Layout(size * layout.batch, layout.shape, layout.rows, layout.order)
    out = p.bind(*flat, layout=stacked)
    unstack = lambda a: a.reshape(size, -1, *a.shape[1:])
    return ([unstack(a) for a in out], [0] * len(out)) if p.multiple_results else (unstack(out), 0)


def _like_grid(*avals, layout: Layout):
    return avals[0].update(shape=(layout.nodes, ROW))


def _like_moments(*avals, layout: Layout):
    return [avals[0].update() for _ in range(layout.count)]


def _like_slopes(*avals, layout: Layout):
    return [avals[0].update() for _ in layout.shape]


_spread = _primitive("spread", _run_spread, False, _like_grid)
_moments = _primitive("moments", _run_moments, True, _like_moments)
_slopes = _primitive("slopes", _run_slopes, True, _like_slopes)
_spread_tangent = _primitive("spread_tangent", _run_spread_tangent, False, _like_grid)
_moments_tangent = _primitive("moments_tangent", _run_moments_tangent, True, _like_moments)


def _filled(tangents) -> list[Array]:
    return [ad.instantiate_zeros(t) for t in tangents]


def _still(tangents) -> bool:
    return all(isinstance(t, ad.Zero) for t in tangents)


def _spread_jvp(args, tangents, *, layout: Layout):
    d = len(layout.shape)
    out = _spread.bind(*args, layout=layout)
    if _still(tangents[:d]):
        return out, _spread.bind(*args[:d], *_filled(tangents[d:]), layout=layout)
    return out, _spread_tangent.bind(*args, *_filled(tangents), layout=layout)


def _moments_jvp(args, tangents, *, layout: Layout):
    out = _moments.bind(*args, layout=layout)
    if _still(tangents[:-1]):
        return out, _moments.bind(*args[:-1], *_filled(tangents[-1:]), layout=layout)
    return out, _moments_tangent.bind(*args, *_filled(tangents), layout=layout)


def _jvp_through(run: Callable, p: Primitive):
    """Differentiate the longer form of a primitive that `run` spells out in other primitives."""

    def rule(args, tangents, *, layout: Layout):
        out = p.bind(*args, layout=layout)
        return out, jax.jvp(partial(run, layout=layout), args, tuple(_filled(tangents)))[1]

    return rule


def _where_asked(args, values) -> list:
    return [v if ad.is_undefined_primal(a) else None for a, v in zip(args, values)]


def _spread_transpose(ct, *args, layout: Layout):
    d = len(layout.shape)
    return _where_asked(args, [None] * d + list(_moments.bind(*args[:d], ct, layout=layout)))


def _moments_transpose(cts, *args, layout: Layout):
    x, cts = args[:-1], _filled(cts)
    return [None] * len(x) + [_spread.bind(*x, *cts, layout=layout)]


def _spread_tangent_transpose(ct, *args, layout: Layout):
    d, n = len(layout.shape), layout.count
    x, q = args[:d], args[d : d + n]
    dx = _slopes.bind(*x, *q, ct, layout=layout)
    dq = _moments.bind(*x, ct, layout=layout)
    return _where_asked(args, [None] * (d + n) + list(dx) + list(dq))


def _moments_tangent_transpose(cts, *args, layout: Layout):
    d, cts = len(layout.shape), _filled(cts)
    x, grid = args[:d], args[d]
    dx = _slopes.bind(*x, *cts, grid, layout=layout)
    dgrid = _spread.bind(*x, *cts, layout=layout)
    return _where_asked(args, [None] * (d + 1) + list(dx) + [dgrid])


ad.primitive_jvps[_spread] = _spread_jvp
ad.primitive_jvps[_moments] = _moments_jvp
ad.primitive_jvps[_slopes] = _jvp_through(_slopes_by_moments, _slopes)
ad.primitive_jvps[_spread_tangent] = _jvp_through(_run_spread_tangent, _spread_tangent)
ad.primitive_jvps[_moments_tangent] = _jvp_through(_run_moments_tangent, _moments_tangent)
ad.primitive_transposes[_spread] = _spread_transpose
ad.primitive_transposes[_moments] = _moments_transpose
ad.primitive_transposes[_spread_tangent] = _spread_tangent_transpose
ad.primitive_transposes[_moments_tangent] = _moments_tangent_transpose
