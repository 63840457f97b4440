"""Principal-stretch maps: values by NumPy, derivatives exact where decompositions have none."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from jaxgpu.physics.continuum.spectral import spectral

MU, LAM = 0.7, 1.9


def hencky(s, p):
    """A law with all three results: half the log strain is kept, stress from all of it."""
    e = [jnp.log(x) for x in s]
    total = sum(e)
    t = tuple(2 * p["mu"] * x + p["lam"] * total for x in e)
    return tuple(jnp.exp(x / 2) for x in e), t, total


def tuples(a):
    return tuple(tuple(a[..., i, j] for j in range(a.shape[-1])) for i in range(a.shape[-1]))


def arrays(m):
    return jnp.stack([jnp.stack(row, -1) for row in m], -2)


def apply(f, mu=MU, lam=LAM):
    h, tau, total = spectral(hencky, tuples(f), {"mu": mu, "lam": lam})
    return arrays(h), arrays(tau), total


def precise(f):
    """The same maps by matrix functions, in 60 digits: H = (f f^T)^(-1/4) f, tau by log f f^T."""
    with mpmath.workdps(60):
        a = mpmath.matrix(f.tolist())
        e, q = mpmath.eigsy(a * a.T)
        power = lambda g: q * mpmath.diag([g(x) for x in e]) * q.T
        log = power(lambda x: mpmath.log(x) / 2)
        trace = sum(log[i, i] for i in range(len(f)))
        tau = 2 * mpmath.mpf(MU) * log + mpmath.mpf(LAM) * trace * mpmath.eye(len(f))
        return power(lambda x: x ** mpmath.mpf("-0.25")) * a, tau, trace


def difference(f, direction):
    """Directional derivative of the precise maps, error 1e-30."""
    with mpmath.workdps(60):
        h = mpmath.mpf(10) ** -15
        step = mpmath.matrix(direction.tolist()) * h
        at = mpmath.matrix(f.tolist())
        ahead, behind = (precise(np.array((at + s * step).tolist())) for s in (1, -1))
        parts = [(a - b) / (2 * h) for a, b in zip(ahead, behind)]
        return [np.array(p.tolist(), float) if hasattr(p, "tolist") else float(p) for p in parts]


def rotation(rng, d):
    q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    q[:, 0] *= np.sign(np.linalg.det(q))
    return q


def states(d):
    """Deformations where a differentiated decomposition fails, and some where it does not."""
    rng = np.random.default_rng(d)
    w = rng.normal(size=(d, d))
    r = rotation(rng, d)
    near = {f"I+{k:g}W": np.eye(d) + k * w for k in (1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 0.1)}
    pair = np.diag([1.3] * (d - 1) + [0.8])
    return {"I": np.eye(d), "1.05I": 1.05 * np.eye(d), "R": r, "pair": r @ pair @ r.T, **near}


@pytest.mark.parametrize("d", [2, 3])
def test_derivative_is_exact_also_where_stretches_repeat(x64, d):
    direction = np.random.default_rng(9).normal(size=(d, d))
    for name, f in states(d).items():
        exact = difference(f, direction)
        got = jax.jvp(apply, (jnp.asarray(f),), (jnp.asarray(direction),))[1]
        for a, b in zip(got, exact):
            # eps^(2/3) of the divided difference, times curvatures of order ten
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("d", [2, 3])
def test_reverse_is_the_transpose_of_forward(x64, d):
    rng = np.random.default_rng(1)
    f, df = jnp.asarray(states(d)["pair"]), jnp.asarray(rng.normal(size=(d, d)))
    args, tangents = (f, MU, LAM), (df, 0.3, -0.2)
    out, push = jax.jvp(apply, args, tangents)
    weight = jax.tree.map(lambda a: jnp.asarray(rng.normal(size=a.shape)), out)
    pull = jax.vjp(apply, *args)[1](weight)
    total = lambda a, b: sum(jnp.sum(x * y) for x, y in zip(a, b))
    np.testing.assert_allclose(total(push, weight), total(pull, tangents), rtol=1e-12)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 2e-6), (np.float64, 1e-13)])
def test_value_commutes_with_rotations(x64, d, dtype, tolerance):
    rng = np.random.default_rng(2)
    for _ in range(5):
        f = np.eye(d) + 0.2 * rng.normal(size=(d, d))
        q, r = rotation(rng, d), rotation(rng, d)
        cast = lambda a: jnp.asarray(a, dtype)
        mu, lam = dtype(MU), dtype(LAM)
        h, tau, total = apply(cast(q @ f @ r), mu, lam)
        h0, tau0, total0 = apply(cast(f), mu, lam)
        close = lambda a, b: np.testing.assert_allclose(a, b, atol=tolerance * 10)
        close(h, q @ np.asarray(h0) @ r)
        close(tau, q @ np.asarray(tau0) @ q.T)
        close(total, total0)
        assert h.dtype == tau.dtype == dtype


def test_a_second_derivative_raises_instead_of_being_wrong():
    energy = lambda f: jnp.sum(apply(f)[1])
    with pytest.raises(NotImplementedError, match="second derivative"):
        jax.jacfwd(jax.grad(energy))(jnp.eye(3))


def test_float32_derivative_at_rest():
    grad = jax.grad(lambda f: jnp.sum(apply(f)[1]))(jnp.eye(3))
    # d sum(tau) = 2 mu sum(sym dF) + 3 lam tr dF
    want = 2 * MU * np.ones((3, 3)) + 3 * LAM * np.eye(3)
    np.testing.assert_allclose(grad, want, rtol=1e-5)
