"""Particles to grid and back: the maps, their transposes, and their derivatives of every type."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from continuum_run import jit_unoptimized
from scipy.interpolate import BSpline

from jaxgpu.physics.continuum.grid import cpu_transfer, gpu_transfer, tpu_transfer
from jaxgpu.physics.continuum.grid.stencil import Layout
from jaxgpu.physics.continuum.grid.transfer import g2p, p2g

SHAPES = [(9,), (6, 8), (5, 7, 6)]
on_grid, at_particles = (jit_unoptimized(f, static_argnums=2) for f in (p2g, g2p))
SPLINE = BSpline.basis_element([-1.5, -0.5, 0.5, 1.5], extrapolate=False)


def sample(shape, seed=0, dtype=np.float64, chunks=2, per=3):
    """Return random positions, random Q (with a mass row) and a random grid field."""
    rng, d = np.random.default_rng(seed), len(shape)
    x = [rng.uniform(0.5, n - 1.5, (chunks, per)).astype(dtype) for n in shape]
    q = [rng.normal(size=(chunks, per)).astype(dtype) for _ in range(d + 1 + d * d)]
    g = rng.normal(size=(int(np.prod(shape)), 4)).astype(dtype)
    return x, q, g


def dense(x, shape):
    """Return weights [nodes, N] and offsets [nodes, N, D], with SciPy's spline, node by node."""
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
    out = np.asarray(on_grid(x, q, shape))
    # The sums have a few dozen terms of order one, with a rounding error of 1e-15 each.
    np.testing.assert_allclose(out[:, : d + 1], expected, atol=1e-13)
    assert (out[:, d + 1 :] == 0).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_moments_are_the_weighted_means_by_definition(x64, shape):
    x, _, g = sample(shape)
    d = len(shape)
    w, o = dense(x, shape)
    expected = [np.einsum("op,or->rp", w, np.asarray(g)[:, :d])]
    expected += [np.einsum("op,op,or->rp", w, o[..., a], np.asarray(g)[:, :d]) for a in range(d)]
    for got, want in zip(at_particles(x, g, shape), expected):
        np.testing.assert_allclose(np.stack([np.ravel(a) for a in got]), want, atol=1e-13)


def functions(shape):
    """Return scalar functions that combine both transfers, nonlinearly in each argument."""
    d = len(shape)

    def f(x, q, g):
        grid = p2g(x, q, shape)
        m = g2p(x, jnp.tanh(grid) + g, shape)
        return sum(jnp.sum(jnp.sin(a) * (1 + r)) for r, a in enumerate(m[0] + m[d]))

    return f


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(5, 7, 6)], ids=str)
def test_both_modes_agree_with_differences_and_with_each_other(x64, shape):
    # Particles are away from the kinks of the second derivative, so orders 1 and 2 exist.
    args = sample(shape, seed=3, chunks=1, per=2)
    rng = np.random.default_rng(8)
    way = jax.tree.map(lambda a: rng.normal(size=a.shape), args)

    @jit_unoptimized
    def slopes_along(args, way):
        f = functions(shape)
        slope = jax.grad(f, (0, 1, 2))(*args)
        reverse = sum(jnp.sum(a * b) for a, b in zip(*map(jax.tree.leaves, (slope, way))))
        return jax.jvp(f, args, way), reverse

    ahead, behind = (
        slopes_along(jax.tree.map(lambda a, b, s=s: a + s * b, args, way), way)[0][0]
        for s in (1e-5, -1e-5)
    )
    (_, forward), reverse = slopes_along(args, way)
    np.testing.assert_allclose(forward, reverse, rtol=1e-12)
    # The step is the cube root of float64's eps: differences are exact to 1e-10 of a curvature.
    np.testing.assert_allclose(forward, (ahead - behind) / 2e-5, rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(5, 6)], ids=str)
def test_second_derivatives_in_all_four_nestings(x64, shape):
    x, q, g = sample(shape, seed=4, chunks=1, per=2)
    f = lambda x: functions(shape)(x, q, g)
    t = [np.cos(1 + np.arange(2.0))[None] for _ in x]
    slope = lambda x: jax.jvp(f, (x,), (t,))[1]
    dot = lambda x: sum(jnp.sum(a * b) for a, b in zip(jax.grad(f)(x), t))

    @jit_unoptimized
    def all_modes(x):
        return (
            jax.jvp(slope, (x,), (t,)),  # forward over forward
            jax.grad(slope)(x),  # reverse over forward
            jax.jvp(jax.grad(f), (x,), (t,))[1],  # forward over reverse
            jax.grad(dot)(x),  # reverse over reverse
        )

    (_, forward), first, *others = all_modes(x)
    for way in others:
        for a, b in zip(way, first):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    total = sum(np.sum(np.asarray(a) * b) for a, b in zip(first, t))
    np.testing.assert_allclose(forward, total, rtol=1e-10)
    h = 1e-5
    ahead, behind = (all_modes([a + s * h * b for a, b in zip(x, t)])[0][0] for s in (1, -1))
    np.testing.assert_allclose(forward, (ahead - behind) / (2 * h), rtol=1e-6)


@pytest.mark.parametrize("shape", [(5, 6)], ids=str)
def test_a_batch_is_a_loop_also_under_grad_and_nested(x64, shape):
    f = functions(shape)
    several = [sample(shape, seed=s) for s in range(4)]
    pairs = jax.tree.map(lambda *a: np.stack(a).reshape(2, 2, *a[0].shape), *several)
    gradient = jax.grad(f, (0, 1, 2))
    one_by_one = jit_unoptimized(gradient)
    loop = [one_by_one(*args) for args in several]
    twice = jit_unoptimized(jax.vmap(jax.vmap(gradient)))(*pairs)
    for s, one in enumerate(loop):
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(twice)):
            np.testing.assert_allclose(a, b[s // 2, s % 2], rtol=1e-12, atol=1e-13)
    # Test one Q and one grid with four sets of positions.
    shared = jit_unoptimized(jax.grad(lambda *a: jax.vmap(f, (0, None, None))(*a).sum(), 1))
    _, q, g = several[0]
    want = sum(np.asarray(one_by_one(a[0], q, g)[1]) for a in several)
    got = shared([a.reshape(4, *a.shape[2:]) for a in pairs[0]], q, g)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    "raised, shape",
    [
        (False, (9,)),
        (True, (9,)),
        pytest.param(True, (5, 7, 6), marks=pytest.mark.slow),
    ],
    ids=str,
)
@pytest.mark.parametrize("kernel", [gpu_transfer, tpu_transfer], ids=["gpu", "tpu"])
def test_accelerator_kernels_compute_the_same(x64, shape, raised, kernel):
    x, q, g = sample(shape)
    d = len(shape)
    layout = Layout(2, shape, (d + 1, d), (int(raised),) + (0,) * (d - 1))
    g = np.concatenate([g, 2 * g])  # two stacked grids, one chunk in each

    @jit_unoptimized
    def transfers(x, q, g):
        return [
            (k.p2g(x, q, layout), k.g2p(x, g, layout), k.gradients(x, q, g, layout))
            for k in (kernel, cpu_transfer)
        ]

    for a, b in zip(*map(jax.tree.leaves, transfers(x, q, g))):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_chunk_size_changes_nothing_but_rounding():
    x, q, g = sample((8, 8, 8), dtype=np.float32, chunks=4, per=128)
    one_chunk = lambda a: a.reshape(1, -1)
    one = on_grid(x, q, (8, 8, 8))
    other = on_grid([one_chunk(a) for a in x], [one_chunk(a) for a in q], (8, 8, 8))
    # Each node sums about 50 terms of order one in another order: 50 roundings of 6e-8.
    np.testing.assert_allclose(one, other, atol=5e-6)


def test_a_lost_particle_touches_only_its_grid():
    x, q, g = sample((6, 6), dtype=np.float32)
    both = jit_unoptimized(lambda x: (p2g(x, q, (6, 6)), g2p(x, g, (6, 6))))
    for bad in (np.nan, np.inf, -7.0, 99.0):
        x[0] = np.array(x[0])
        x[0][0, 0] = bad
        grid, m = both(x)
        assert grid.shape == (36, 4) and len(m) == 3  # and the process is alive


def test_lowers_for_every_platform():
    x, q, _ = sample((5, 5, 5), dtype=np.float32)
    f = jax.jit(jax.grad(lambda x, q: jnp.sum(p2g(x, q, (5, 5, 5)) ** 2)))
    jax.export.export(f, platforms=("cpu", "cuda", "tpu"))(x, q)
