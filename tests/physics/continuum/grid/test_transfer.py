"""Particles to grid and back: the maps, their transposes, their derivatives of every kind."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from scipy.interpolate import BSpline

from jaxgpu.physics.continuum.grid import chunked, columns, rows
from jaxgpu.physics.continuum.grid.stencil import Layout
from jaxgpu.physics.continuum.grid.transfer import moments, spread

SHAPES = [(9,), (6, 8), (5, 7, 6)]
SPLINE = BSpline.basis_element([-1.5, -0.5, 0.5, 1.5], extrapolate=False)


def sample(shape, seed=0, dtype=np.float64, chunks=2, per=3):
    """Positions, Q (with a mass row) and a grid field, all random."""
    rng, d = np.random.default_rng(seed), len(shape)
    x = [jnp.asarray(rng.uniform(0.5, n - 1.5, (chunks, per)), dtype) for n in shape]
    q = [jnp.asarray(rng.normal(size=(chunks, per)), dtype) for _ in range(d + 1 + d * d)]
    g = jnp.asarray(rng.normal(size=(int(np.prod(shape)), 4)), dtype)
    return x, q, g


def dense(x, shape):
    """[nodes, N] weights and [nodes, N, D] offsets, spline by SciPy, node by node."""
    at = np.stack([np.asarray(a, float).ravel() for a in x], 1)  # [N, D]
    base = np.floor(at - 0.5)
    nodes = np.array(list(product(*map(range, shape))), float)  # [nodes, D]
    w = np.nan_to_num(SPLINE(at[None] - nodes[:, None])).prod(-1)
    return w, nodes[:, None] - base[None]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_spread_is_the_weighted_sum_by_definition(x64, shape):
    x, q, _ = sample(shape)
    d = len(shape)
    w, o = dense(x, shape)
    flat = np.stack([np.asarray(a).ravel() for a in q])  # rows, N
    value = np.repeat(flat[: d + 1, None], len(w), 1)  # [d + 1, nodes, N]
    for axis in range(d):
        value[:d] += o[None, :, :, axis] * flat[d + 1 + axis * d :][:d, None]
    expected = np.einsum("op,rop->or", w, value)
    out = np.asarray(spread(x, q, shape))
    # a few dozen terms of order one: rounding 1e-15 each
    np.testing.assert_allclose(out[:, : d + 1], expected, atol=1e-13)
    assert (out[:, d + 1 :] == 0).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_moments_are_the_weighted_means_by_definition(x64, shape):
    x, _, g = sample(shape)
    d = len(shape)
    w, o = dense(x, shape)
    expected = [np.einsum("op,or->rp", w, np.asarray(g)[:, :d])]
    expected += [np.einsum("op,op,or->rp", w, o[..., a], np.asarray(g)[:, :d]) for a in range(d)]
    for got, want in zip(moments(x, g, shape), expected):
        np.testing.assert_allclose(np.stack([np.ravel(a) for a in got]), want, atol=1e-13)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_two_are_each_others_transpose(x64, shape):
    x, q, g = sample(shape)
    d = len(shape)
    forces = q[:d] + q[d + 1 :]  # without the mass row
    left = jnp.vdot(spread(x, forces, shape), g, precision="highest")
    m = [a for part in moments(x, g, shape) for a in part]
    right = sum(jnp.vdot(a, b, precision="highest") for a, b in zip(forces, m))
    np.testing.assert_allclose(left, right, rtol=1e-13)


def functions(shape):
    """Scalar functions that mix both transfers, nonlinearly in each argument."""
    d = len(shape)

    def f(x, q, g):
        grid = spread(x, q, shape)
        m = moments(x, jnp.tanh(grid) + g, shape)
        return sum(jnp.sum(jnp.sin(a) * (1 + r)) for r, a in enumerate(m[0] + m[d]))

    return f


@pytest.mark.parametrize(
    "shape", [*SHAPES[:2], pytest.param(SHAPES[2], marks=pytest.mark.slow)], ids=str
)
def test_both_modes_agree_with_differences_and_with_each_other(x64, shape):
    # particles sit away from the kinks of the second derivative: orders 1 and 2 exist
    args = sample(shape, seed=3, chunks=1, per=2)
    # differences at step 1e-4 (cube root of eps is 6e-6) leave 1e-8 of third derivatives
    check_grads(jax.jit(functions(shape)), args, order=1, modes=["fwd", "rev"], eps=1e-5, rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(5, 6)], ids=str)
def test_second_derivatives_in_all_four_nestings(x64, shape):
    x, q, g = sample(shape, seed=4, chunks=1, per=2)
    f = lambda x: functions(shape)(x, q, g)
    t = [jnp.cos(1 + jnp.arange(2.0))[None] for _ in x]
    slope = lambda x: jax.jvp(f, (x,), (t,))[1]
    dot = lambda x: sum(jnp.sum(a * b) for a, b in zip(jax.grad(f)(x), t))
    ways = [
        jax.jit(jax.grad(slope))(x),  # reverse over forward
        jax.jit(lambda x: jax.jvp(jax.grad(f), (x,), (t,))[1])(x),  # forward over reverse
        jax.jit(jax.grad(dot))(x),  # reverse over reverse
    ]
    for way in ways[1:]:
        for a, b in zip(way, ways[0]):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    forward = jax.jit(lambda x: jax.jvp(slope, (x,), (t,))[1])(x)
    total = sum(jnp.sum(a * b) for a, b in zip(ways[0], t))
    np.testing.assert_allclose(forward, total, rtol=1e-10)
    h = 1e-5
    ahead, behind = ([a + s * h * b for a, b in zip(x, t)] for s in (1, -1))
    difference = (slope(ahead) - slope(behind)) / (2 * h)
    np.testing.assert_allclose(forward, difference, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(5, 6)], ids=str)
def test_a_batch_is_a_loop_also_under_grad_and_nested(x64, shape):
    f = functions(shape)
    several = [sample(shape, seed=s) for s in range(4)]
    stacked = jax.tree.map(lambda *a: jnp.stack(a), *several)
    gradient = jax.grad(f, (0, 1, 2))
    loop = [jax.jit(gradient)(*args) for args in several]
    batch = jax.jit(jax.vmap(gradient))(*stacked)
    nested = jax.tree.map(lambda a: a.reshape(2, 2, *a.shape[1:]), stacked)
    twice = jax.jit(jax.vmap(jax.vmap(gradient)))(*nested)
    twice = jax.tree.map(lambda a: a.reshape(4, *a.shape[2:]), twice)
    shared = jax.jit(jax.grad(lambda *a: jax.vmap(f, (0, None, None))(*a).sum(), 1))
    for s, one in enumerate(loop):
        for a, b, c in zip(jax.tree.leaves(one), jax.tree.leaves(batch), jax.tree.leaves(twice)):
            np.testing.assert_allclose(a, b[s], rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(a, c[s], rtol=1e-12, atol=1e-13)
    _, q, g = several[0]
    want = sum(np.asarray(jax.grad(f, 1)(a[0], q, g)) for a in several)
    np.testing.assert_allclose(np.asarray(shared(stacked[0], q, g)), want, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("raised", [False, True])
@pytest.mark.parametrize("kernel", [rows, columns], ids=["gpu", "tpu"])
def test_accelerator_kernels_compute_the_same(x64, shape, raised, kernel):
    x, q, g = sample(shape)
    d = len(shape)
    layout = Layout(2, shape, (d + 1, d), (int(raised),) + (0,) * (d - 1))
    g = jnp.concatenate([g, 2 * g])  # two stacked grids, one chunk in each
    close = lambda a, b: np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=1e-12)
    close(kernel.spread(x, q, layout), chunked.spread(x, q, layout))
    close(kernel.moments(x, g, layout), chunked.moments(x, g, layout))
    close(kernel.slopes(x, q, g, layout), chunked.slopes(x, q, g, layout))


def test_chunk_size_changes_nothing_but_rounding():
    x, q, g = sample((8, 8, 8), dtype=np.float32, chunks=4, per=128)
    wide = lambda a: a.reshape(1, -1)
    one = spread(x, q, (8, 8, 8))
    other = spread([wide(a) for a in x], [wide(a) for a in q], (8, 8, 8))
    # each node sums about 50 terms of order one in another order: 50 roundings of 6e-8
    np.testing.assert_allclose(one, other, atol=5e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -7.0, 99.0])
def test_a_lost_particle_touches_only_its_grid(bad):
    x, q, g = sample((6, 6), dtype=np.float32)
    x[0] = x[0].at[0, 0].set(bad)
    assert spread(x, q, (6, 6)).shape == (36, 4)
    assert len(moments(x, g, (6, 6))) == 3  # and the process is alive


def test_lowers_for_every_platform():
    x, q, _ = sample((5, 5, 5), dtype=np.float32)
    f = jax.jit(jax.grad(lambda x, q: jnp.sum(spread(x, q, (5, 5, 5)) ** 2)))
    jax.export.export(f, platforms=("cpu", "cuda", "tpu"))(x, q)
