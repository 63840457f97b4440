"""P2G and G2P transfers, closed under transposition and differentiation.

With quadratic B-splines w and node offset o = (i, j, k) from a particle's base node,

    spread:   g_o += w_o Q_o,          Q_o = Q_0 + i Q_1 + j Q_2 + k Q_3
    moments:  M_0 = sum_o w_o g_o,  M_1 = sum_o i w_o g_o,  M_2 = sum_o j w_o g_o, ...
    slopes:   S_d = sum_o (dw_o / dx_d) <g_o, Q_o>

in one to three dimensions D. `spread` is linear in Q and `moments` in g, and they are each
other's transpose; both x-derivatives are one `slopes` gather when transposed. A weight replaced
by its derivative along an axis is only another layout, so the family is closed: reverse mode,
forward mode and every mixture of them cost a few passes of these same kernels, at any order.
They are JAX primitives because no custom rule (custom_vjp, custom_jvp) supports both modes.

Under `vmap` the grids of a batch are stacked and every particle's row index is shifted: one
program on any device. Kernels are attached per platform: cache-sized chunks on a CPU, all
particles in one batch elsewhere, with separate columns of the grid on a TPU.
Hu, Fang, Ge, Qu, Zhu, Pradhana & Jiang (2018), doi:10.1145/3197517.3201293, for MLS-MPM.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import add
from typing import Any

from jax import Array

from jaxgpu.devices.primitive import fill_zeros, is_constant, jvp_of, primitive
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors

from . import cpu_transfer, gpu_transfer, tpu_transfer
from .stencil import ROW, Layout


@explain_errors
def p2g(x: Sequence[Array], q: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """Scatter the particles' contributions to a grid and sum them (P2G).

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
    >>> p2g([at], [zero, one, zero], (3,))[:, 1]
    Array([0.125, 0.75 , 0.125], dtype=float32)
    """
    ranges.check_finite("p2g", q=q)  # x is exempt: it may be NaN for a lost particle
    d = len(shape)
    first = len(q) - d * d  # the slopes carry no mass
    layout = Layout(1, tuple(shape), (first, d), (0,) * d)
    return _scatter(*x, *q, layout=layout)


@explain_errors
def g2p(
    x: Sequence[Array], grid: Array, shape: tuple[int, ...], columns: int = 0
) -> list[list[Array]]:
    """Return moments M_0, M_1, ..., M_D of the first D columns of a grid at the particles (G2P).

    Args:
        x: D arrays [C, P], as in `spread`.
        grid: [nodes, 4].
        shape: number of nodes along each axis.
        columns: number of columns in M_0, D (default) or D + 1.
    Returns:
        D + 1 lists of D arrays [C, P]: M_0, then the first moments along each axis.
    Differentiable in x and grid, any mode and order.

    >>> import jax.numpy as jnp
    >>> x = jnp.full((1, 128), 3.5)
    >>> ones = jnp.ones((8 * 8, 4))
    >>> M = g2p([x, x], ones, (8, 8))
    >>> float(M[0][0][0, 0].round(3))  # the weights of a particle sum to 1
    1.0
    """
    ranges.check_finite("g2p", grid=grid)
    d = len(shape)
    layout = Layout(1, tuple(shape), (columns or d, d), (0,) * d)
    return layout.split(_gather(*x, grid, layout=layout))


def _scale(a: Array, q: Sequence[Array]) -> list[Array]:
    return [a * b for b in q]


def _add_terms(terms: Sequence[Sequence[Array]]) -> list[Array]:
    return [reduce(add, column) for column in zip(*terms)]


# A tangent in x is a transfer with one weight replaced by its derivative, times dx. So the
# tangents of `spread` and `moments` need no other kernels, and the family stays closed.


def _scatter_tangent_value(*args: Array, layout: Layout) -> Array:
    """Return the tangent of `_scatter`; the arguments are x, q, dx, dq."""
    d, n = len(layout.shape), layout.count
    x, q, dx, dq = args[:d], args[d : d + n], args[d + n : 2 * d + n], args[2 * d + n :]
    out = _scatter(*x, *dq, layout=layout)
    for axis in range(d):
        out = out + _scatter(*x, *_scale(dx[axis], q), layout=layout.raise_order(axis))
    return out


def _gather_tangent_value(*args: Array, layout: Layout) -> list[Array]:
    """Return the tangent of `_gather`; the arguments are x, grid, dx, dgrid."""
    d = len(layout.shape)
    x, grid, dx, dgrid = args[:d], args[d], args[d + 1 : 2 * d + 1], args[-1]
    terms = [_gather(*x, dgrid, layout=layout)]
    for axis in range(d):
        terms.append(_scale(dx[axis], _gather(*x, grid, layout=layout.raise_order(axis))))
    return _add_terms(terms)


def _coordinate_gradients_by_gather(*args: Array, layout: Layout) -> list[Array]:
    """Return `_coordinate_gradients` computed from moments, for its derivatives."""
    # `_coordinate_gradients` sums by node; the sum by moment here costs more, but only in tangents.
    d = len(layout.shape)
    x, q, grid = args[:d], args[d:-1], args[-1]
    products = []
    for axis in range(d):
        m = _gather(*x, grid, layout=layout.raise_order(axis))
        products.append(_add_terms([[a * b] for a, b in zip(q, m)])[0])
    return products


def _scatter_jvp(args, tangents, out, *, layout: Layout) -> Array:
    d = len(layout.shape)
    if is_constant(tangents[:d]):
        return _scatter(*args[:d], *fill_zeros(tangents[d:], args[d:]), layout=layout)
    return _scatter_tangent(*args, *fill_zeros(tangents, args), layout=layout)


def _gather_jvp(args, tangents, out, *, layout: Layout) -> list[Array]:
    if is_constant(tangents[:-1]):
        return _gather(*args[:-1], *fill_zeros(tangents[-1:], args[-1:]), layout=layout)
    return _gather_tangent(*args, *fill_zeros(tangents, args), layout=layout)


# Only linear arguments are transposed: q of `spread`, the grid of `moments`, and (dx, dq) and
# (dx, dgrid) of their tangents. Positions are never transposed; their entries are None.


def _scatter_transpose(ct: Array, args, *, layout: Layout) -> list:
    d = len(layout.shape)
    return [None] * d + _gather(*args[:d], ct, layout=layout)


def _gather_transpose(cts: list[Array], args, *, layout: Layout) -> list:
    x = args[:-1]
    return [None] * len(x) + [_scatter(*x, *cts, layout=layout)]


def _scatter_tangent_transpose(ct: Array, args, *, layout: Layout) -> list:
    d, n = len(layout.shape), layout.count
    x, q = args[:d], args[d : d + n]
    dx = _coordinate_gradients(*x, *q, ct, layout=layout)
    dq = _gather(*x, ct, layout=layout)
    return [None] * (d + n) + dx + dq


def _gather_tangent_transpose(cts: list[Array], args, *, layout: Layout) -> list:
    d = len(layout.shape)
    x, grid = args[:d], args[d]
    dx = _coordinate_gradients(*x, *cts, grid, layout=layout)
    dgrid = _scatter(*x, *cts, layout=layout)
    return [None] * (d + 1) + dx + [dgrid]


def _apply_stacked(transfer: Callable, size: int, args: Sequence[Array], layout: Layout) -> Any:
    """Apply a transfer to the copies of a batch as one, with their grids and chunks stacked."""
    # `Layout.offsets` relies on this order: the chunks of one copy follow one another.
    flat = [a.reshape(-1, *a.shape[2:]) for a in args]
    out = transfer(*flat, layout=replace(layout, batch=size * layout.batch))
    unstack = lambda a: a.reshape(size, -1, *a.shape[1:])
    return [unstack(a) for a in out] if isinstance(out, list) else unstack(out)


def _grid_like(*avals, layout: Layout):
    return avals[0].update(shape=(layout.nodes, ROW))


def _gather_like(*avals, layout: Layout):
    return [avals[0].update() for _ in range(layout.count)]


# Kernels take x and q each as one sequence; primitives take all arrays as separate arguments.


def _call_scatter_kernel(kernel: Callable, *args: Array, layout: Layout) -> Array:
    d = len(layout.shape)
    return kernel(args[:d], args[d:], layout)


def _call_gather_kernel(kernel: Callable, *args: Array, layout: Layout) -> list[Array]:
    return kernel(args[:-1], args[-1], layout)


def _call_gradient_kernel(kernel: Callable, *args: Array, layout: Layout) -> list[Array]:
    d = len(layout.shape)
    return kernel(args[:d], args[d:-1], args[-1], layout)


def _make_primitive(name: str, value: Callable, like: Callable, **rules: Any) -> Any:
    """Return the primitive of a transfer, whose batch is one transfer over all stacked grids."""
    made = primitive(
        f"mpm_{name}",
        value,
        like,
        batch=lambda size, *args, layout: _apply_stacked(made, size, args, layout),
        **rules,
    )
    return made


def _make_platform_primitive(name: str, form: Callable, like: Callable, **rules: Any) -> Any:
    """Return the primitive of a transfer that has one kernel per platform."""
    kernel = lambda module: partial(form, getattr(module, name))
    kernels = {"cpu": kernel(cpu_transfer), "tpu": kernel(tpu_transfer)}
    return _make_primitive(name, kernel(gpu_transfer), like, kernels=kernels, **rules)


_scatter = _make_platform_primitive(
    "p2g", _call_scatter_kernel, _grid_like, jvp=_scatter_jvp, transpose=_scatter_transpose
)
_gather = _make_platform_primitive(
    "g2p",
    _call_gather_kernel,
    _gather_like,
    several=True,
    jvp=_gather_jvp,
    transpose=_gather_transpose,
)
_coordinate_gradients = _make_platform_primitive(
    "gradients",
    _call_gradient_kernel,
    lambda *avals, layout: [avals[0].update() for _ in layout.shape],
    several=True,
    jvp=jvp_of(_coordinate_gradients_by_gather),
)
_scatter_tangent = _make_primitive(
    "spread_tangent",
    _scatter_tangent_value,
    _grid_like,
    jvp=jvp_of(_scatter_tangent_value),
    transpose=_scatter_tangent_transpose,
)
_gather_tangent = _make_primitive(
    "moments_tangent",
    _gather_tangent_value,
    _gather_like,
    several=True,
    jvp=jvp_of(_gather_tangent_value),
    transpose=_gather_tangent_transpose,
)
