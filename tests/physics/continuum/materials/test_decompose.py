"""Signed singular values against NumPy in float64, on matrices selected to be hard."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics.continuum.materials.decomposition import (
    _loop_rotations,
    _orthogonalize_with,
    _unroll_rotations,
    svd,
)

COUNT = 4_000


def hard_cases(kind, d, rng):
    """Return matrices [COUNT, d, d]: in general position, at rest, singular, and badly scaled."""
    normal = lambda *shape: rng.normal(size=(COUNT, *shape))
    if kind == "general":
        return normal(d, d)
    if kind.startswith("rest"):
        return np.eye(d) + float(kind[5:]) * normal(d, d)
    if kind == "rank one":
        return normal(d, 1) * normal(1, d)
    if kind == "zero":
        return np.zeros((COUNT, d, d))
    q, r = (np.linalg.qr(normal(d, d))[0] for _ in range(2))
    if kind == "condition 1e4":
        return np.einsum("nij,nj,nkj->nik", q, 10.0 ** rng.uniform(-4, 0, (COUNT, d)), r)
    if kind == "orthogonal":
        return (
            np.einsum("nij,nkj->nik", q, r) * np.where(np.linalg.det(q) > 0, 1, -1)[:, None, None]
        )
    return normal(d, d) * float(kind)  # the ends of the documented range


KINDS = ["general", "rest 1e-4", "rest 1e-8", "rest 0", "rank one", "zero", "condition 1e4"]
KINDS += ["orthogonal", "1e-8", "1e8"]


@jax.jit
def decompose(a):
    d = a.shape[-1]
    u, s, v = svd(tuple(tuple(a[:, i, j] for j in range(d)) for i in range(d)))
    stack = lambda m: jnp.stack([jnp.stack(row, -1) for row in m], -2)
    return stack(u), jnp.stack(s, -1), stack(v)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_agrees_with_lapack_to_rounding(x64, d, dtype):
    for seed, kind in enumerate(KINDS):
        a = hard_cases(kind, d, np.random.default_rng(seed)).astype(dtype)
        u, s, v = (np.asarray(m, np.float64) for m in decompose(jnp.asarray(a)))
        exact = np.linalg.svd(a.astype(np.float64), compute_uv=False)
        top = np.maximum(exact[:, :1], np.finfo(dtype).tiny)
        # About twenty rotations have a relative error of 2 eps each, half of which averages out.
        worst = 20 * np.finfo(dtype).eps
        product = np.einsum("nik,nk,njk->nij", u, s / top, v)
        assert np.abs(product - a / top[:, None]).max() < worst, kind
        assert np.abs(np.abs(s) - exact).max() < worst * top.max(), kind
        for m in (u, v):
            assert np.abs(np.einsum("nki,nkj->nij", m, m) - np.eye(d)).max() < worst, kind
            assert np.abs(np.linalg.det(m) - 1).max() < worst, kind
        assert (s[:, :-1] >= -worst * top).all(), kind
        assert (np.diff(np.abs(s)) <= 2 * worst * top).all(), kind


def test_sign_of_the_last_value_is_that_of_the_determinant():
    mirror = jnp.diag(jnp.array([-3.0, 2.0, 1.0]))[None]
    np.testing.assert_allclose(decompose(mirror)[1][0], [3, 2, -1], rtol=1e-6)


@pytest.mark.parametrize("d", [2, 3])
def test_turns_in_one_kernel_are_those_of_a_loop(x64, d):
    entries = [jnp.asarray(a) for a in np.random.default_rng(7).normal(size=(d * d, 8))]
    ways = (_loop_rotations, _unroll_rotations)
    loop, kernel = (jax.jit(_orthogonalize_with, static_argnums=0)(w, *entries) for w in ways)
    for a, b in zip(loop, kernel):
        np.testing.assert_allclose(b, a, atol=1e-12)
