"""Polar stretch by invariants against LAPACK; its derivatives by Lyapunov's equation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from continuum_run import jit_unoptimized
from scipy.linalg import solve_continuous_lyapunov

from jaxgpu.physics.continuum.materials.polar import stretch

COUNT = 4_000


def with_rotations(stretches, rng):
    """Return matrices Q diag(s) R^T with random rotations Q and R."""
    d = stretches.shape[1]
    q, r = (np.linalg.qr(rng.normal(size=(COUNT, d, d)))[0] for _ in range(2))
    q, r = (a * np.where(np.linalg.det(a) > 0, 1, -1)[:, None, None] ** (d == 3) for a in (q, r))
    if d == 2:
        q, r = (a @ np.stack([np.diag([1, s]) for s in np.linalg.det(a)]) for a in (q, r))
    return np.einsum("nij,nj,nkj->nik", q, stretches, r)


def tuples(a):
    return tuple(tuple(a[..., i, j] for j in range(a.shape[-1])) for i in range(a.shape[-1]))


@jax.jit
def left(f):
    return jnp.stack([jnp.stack(row, -1) for row in stretch(tuples(f))[0]], -2)


def exact(f):
    """Return V and the stretches by LAPACK; the smallest stretch is negative where det f is."""
    u, s, _ = np.linalg.svd(f.astype(np.float64))
    s[:, -1] *= np.sign(np.linalg.det(f.astype(np.float64)))
    return np.einsum("nij,nj,nkj->nik", u, s, u), s


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_agrees_with_lapack(x64, d, dtype):
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(COUNT, d))
    kinds = {"rest": 0 * normal, "near rest": 1e-4 * normal, "large": 0.4 * normal}
    for kind, log in kinds.items():
        f = with_rotations(np.exp(np.clip(log, -1.15, 1.15)), rng).astype(dtype)
        v, s = exact(f)
        error = np.abs(np.asarray(left(jnp.asarray(f))) - v).max((1, 2)) / s[:, 0]
        assert error.max() < {np.float32: 1e-6, np.float64: 2e-14}[dtype], (kind, error.max())


@pytest.mark.parametrize("d", [2, 3])
def test_inverted_matrices_keep_the_signed_stretch_where_it_is_settled(x64, d):
    rng = np.random.default_rng(1)
    s = np.exp(0.4 * rng.normal(size=(COUNT, d)))
    s[:, -1] = -rng.uniform(0, 0.7, COUNT) * s[:, :-1].min(1)  # away from opposite stretches
    f = with_rotations(s, rng)
    np.testing.assert_allclose(np.asarray(left(jnp.asarray(f))), exact(f)[0], atol=1e-9)


# At rank one, rounding of a non-optimised program makes it infinite.
slope = jax.jit(jax.grad(lambda f: left(f).sum()))


@pytest.mark.parametrize("d", [2, 3])
def test_is_bounded_everywhere(d):
    rng = np.random.default_rng(2)
    general = rng.normal(size=(COUNT, d, d))
    flat = rng.normal(size=(COUNT, d, 1)) * rng.normal(size=(COUNT, 1, d))
    mirrors = with_rotations(
        np.array([[1.0, -1.0], [1.0, 1.0, -1.0]][d - 2]) * np.ones((COUNT, 1)), rng
    )
    for scale in (0.0, 1e-6, 1e-2, 1.0, 1e2, 1e6):
        for f in (general, flat, mirrors):
            f = (scale * f).astype(np.float32)
            v = np.asarray(left(f))
            bound = 1.001 * np.linalg.norm(f, axis=(1, 2))
            assert (np.abs(v).max((1, 2)) <= bound).all(), scale
            if 1e-2 <= scale <= 1e2:
                assert np.isfinite(slope(f)).all(), scale


STATES = {
    "rest": (1.0, 1.0, 1.0), "all equal": (1.3, 1.3, 1.3), "two equal": (1.2, 1.2, 0.7),
    "nearly equal": (1.0 + 1e-7, 1.0, 1.0 - 1e-5), "apart": (1.7, 0.9, 0.4),
    "inverted": (1.4, 0.9, -0.3),
}  # fmt: skip


@jit_unoptimized
def derivatives(f, x):
    """Return V and its first three derivatives in h at f + h x."""
    orders = [lambda h: left(f + h * x)]
    for _ in range(3):
        orders.append(lambda h, last=orders[-1]: jax.jvp(last, (h,), (1.0,))[1])
    return [order(0.0) for order in orders]


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3])
def test_three_derivatives_solve_lyapunovs_equation(x64, d):
    """Check V V' + V' V = b', V V'' + V'' V = b'' - 2 V'^2, ..., for V^2 = b along F + h X."""
    for state, stretches in STATES.items():
        rng = np.random.default_rng(3)
        s = (stretches[0], *stretches[3 - d + 1 :])
        q, r = (np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(2))
        q, r = (a * np.array([np.linalg.det(a)] + [1] * (d - 1)) for a in (q, r))
        f, x = q @ np.diag(s) @ r.T, rng.normal(size=(d, d))
        v = q @ np.diag(s) @ q.T
        solve = lambda right, v=v: solve_continuous_lyapunov(v, right)
        one = solve(x @ f.T + f @ x.T)
        two = solve(2 * x @ x.T - 2 * one @ one)
        three = solve(-3 * (one @ two + two @ one))
        bounds = zip((v, one, two, three), (1e-13, 1e-12, 1e-11, 1e-10), derivatives(f, x))
        for want, bound, got in bounds:
            error = np.abs(np.asarray(got) - want).max() / max(1, np.abs(want).max())
            assert error < bound * (100 if state == "inverted" else 1), state


@pytest.mark.slow
def test_reverse_mode_is_forward_mode_transposed(x64):
    rng = np.random.default_rng(4)
    f, w, x, z = np.eye(3) + 0.3 * rng.normal(size=(4, 3, 3))
    loss = lambda f: jnp.sum(w * left(f))
    jvp_sum = lambda f: jnp.sum(w * jax.jvp(left, (f,), (x,))[1])

    @jit_unoptimized
    def both_modes(f):
        bent = jax.grad(lambda f: jnp.sum(jax.grad(loss)(f) * x))(f)
        reverse = jnp.sum(jax.grad(loss)(f) * x), jnp.sum(bent * z)
        return reverse, jax.jvp(jvp_sum, (f,), (z,))

    reverse, forward = both_modes(f)
    np.testing.assert_allclose(reverse, forward, rtol=1e-11)
