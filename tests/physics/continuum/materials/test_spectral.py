"""Principal-stretch maps: values by NumPy, exact derivatives where decompositions have none."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from continuum_run import jit_unoptimized

from jaxgpu.physics.continuum.materials import curvature, forms
from jaxgpu.physics.continuum.materials.spectral import spectral

MU, LAM = 0.7, 1.9


def hencky(s, among, p):
    """A law with all three results: half the log strain is stored; the stress uses all of it."""
    e = [jnp.log(x) for x in s]
    total = sum(jnp.log(x) for x in among)
    t = tuple(2 * p["mu"] * x + p["lam"] * total for x in e)
    return tuple(jnp.exp(x / 2) for x in e), t, total


def tuples(a):
    return tuple(tuple(a[..., i, j] for j in range(a.shape[-1])) for i in range(a.shape[-1]))


def arrays(m):
    return jnp.stack([jnp.stack(row, -1) for row in m], -2)


def apply(f, mu=MU, lam=LAM):
    h, tau, total = spectral(hencky, tuples(f), {"mu": mu, "lam": lam})
    return arrays(h), arrays(tau), total


def precise(f, mu=MU, lam=LAM):
    """Evaluate by matrix functions in 60 digits: H = (f f^T)^(-1/4) f, and tau by log f f^T."""
    with mpmath.workdps(60):
        a = mpmath.matrix(f.tolist())
        e, q = mpmath.eigsy(a * a.T)
        power = lambda g: q * mpmath.diag([g(x) for x in e]) * q.T
        log = power(lambda x: mpmath.log(x) / 2)
        trace = sum(log[i, i] for i in range(len(f)))
        tau = 2 * mpmath.mpf(mu) * log + mpmath.mpf(lam) * trace * mpmath.eye(len(f))
        return power(lambda x: x ** mpmath.mpf("-0.25")) * a, tau, trace


def difference(f, direction):
    """Return a directional derivative of the precise maps, with an error of 1e-30."""
    with mpmath.workdps(60):
        h = mpmath.mpf(10) ** -15
        step = mpmath.matrix(direction.tolist()) * h
        at = mpmath.matrix(f.tolist())
        ahead, behind = (precise(np.array((at + s * step).tolist())) for s in (1, -1))
        parts = [(a - b) / (2 * h) for a, b in zip(ahead, behind)]
        return [np.array(p.tolist(), float) if hasattr(p, "tolist") else float(p) for p in parts]


def bend(f, x, z, dmu):
    """Return the mixed second derivative of the precise maps along z and (x, dmu), error 1e-20."""
    with mpmath.workdps(60):
        h, at = mpmath.mpf(10) ** -15, mpmath.matrix(f.tolist())
        way = lambda m, s: mpmath.matrix(m.tolist()) * (s * h)
        total = [0, 0, 0]
        for s in (1, -1):
            for t in (1, -1):
                moved = np.array((at + way(x, s) + way(z, t)).tolist())
                found = precise(moved, mpmath.mpf(MU) + s * h * mpmath.mpf(dmu))
                total = [a + s * t * b / (4 * h * h) for a, b in zip(total, found)]
        return [np.array(p.tolist(), float) if hasattr(p, "tolist") else float(p) for p in total]


def rotation(rng, d):
    q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    q[:, 0] *= np.sign(np.linalg.det(q))
    return q


def states(d):
    """Return deformations, with and without a failure of the differentiated decomposition."""
    rng = np.random.default_rng(d)
    w = rng.normal(size=(d, d))
    r = rotation(rng, d)
    near = {f"I+{k:g}W": np.eye(d) + k * w for k in (1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 0.1)}
    pair = np.diag([1.3] * (d - 1) + [0.8])
    return {"I": np.eye(d), "1.05I": 1.05 * np.eye(d), "R": r, "pair": r @ pair @ r.T, **near}


@pytest.mark.parametrize("d", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_derivative_is_exact_also_where_stretches_repeat(x64, d):
    direction = np.random.default_rng(9).normal(size=(d, d))
    push = jit_unoptimized(jax.vmap(lambda f: jax.jvp(apply, (f,), (direction,))[1]))
    got = push(np.stack(list(states(d).values())))
    for n, (name, f) in enumerate(states(d).items()):
        for a, b in zip(got, difference(f, direction)):
            # The error is eps^(2/3) of the divided difference, times curvatures of order ten.
            np.testing.assert_allclose(a[n], b, rtol=1e-9, atol=1e-9, err_msg=name)


def test_a_divided_difference_is_exact_of_polynomials_also_between_near_values(x64):
    """The quotient (p^n - q^n) / (p - q) is the sum of p^k q^(n-1-k).

    Three Gauss points are exact to n = 6. At power 0 all values count as near, at 1 none. r is a
    third value, c a parameter.
    """
    p, q, r, c = 1.7, 0.9, 0.4, 3.0
    at = tuple(map(jnp.float64, (p, q, r))), jnp.float64(c)
    for n in (3, 6):
        w = lambda at, n=n: at[0][0] ** n * (at[0][2] + at[1]) + at[0][1] * at[0][0]
        want = (r + c) * sum(p**k * q ** (n - 1 - k) for k in range(n))
        for power in (0, 1):
            got = curvature._divided_difference(w, at, power)
            np.testing.assert_allclose(got, want, rtol=1e-13)


def powers(s, among, p):
    """Apply H = p F F^T F, tau = b^2 + p tr(b) 1 and the energy p tr(b^2), with b = F F^T."""
    total = sum(a * a for a in among)
    return (
        tuple(p * a**3 for a in s),
        tuple(a**4 + p * total for a in s),
        p * sum(a**4 for a in among),
    )


def bent_products(f, x, z):
    """Return the mixed second derivative of that law exactly, by products of matrices.

    Numbers a + b E + c G + d E G with E E = G G = 0 are matrices [4, 4]; d is the result.
    """
    d, nil, one = len(f), np.eye(2, k=1), np.eye(2)
    e, g, unit = np.kron(nil, one), np.kron(one, nil), np.eye(4)
    dual = lambda a, b, c: np.kron(a, unit) + np.kron(b, e) + np.kron(c, g)
    full = dual(f, x[0], z[0])
    b = full @ dual(f.T, x[0].T, z[0].T)
    p = np.kron(np.eye(d), 0.6 * unit + x[1] * e + z[1] * g)
    trace = lambda m: np.kron(
        np.eye(d), sum(m[4 * i : 4 * i + 4, 4 * i : 4 * i + 4] for i in range(d))
    )
    found = p @ b @ full, b @ b + p @ trace(b), p @ trace(b @ b)
    h, tau, extra = (m[0::4, 3::4] for m in found)
    return h, tau, extra[0, 0]


@jit_unoptimized
def second_order(frame, point, x, z):
    h, tau, extra = curvature.second_derivative(powers, frame, point, x, z)
    return arrays(h), arrays(tau), extra


@pytest.mark.parametrize("d", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_curvature_of_powers_is_that_of_products_of_matrices(x64, d):
    """Polynomials in F have no singular case, and the principal frame must not introduce one."""
    rng = np.random.default_rng(d)
    x, z = ((rng.normal(size=(d, d)), rng.normal()) for _ in range(2))
    f = np.stack(list(states(d).values()))
    u, s, vt = np.linalg.svd(f)
    split = lambda m: tuples(jnp.asarray(m))
    frame = split(u), tuple(jnp.asarray(s[:, i]) for i in range(d)), split(vt.swapaxes(1, 2))
    ways = ((split(df), jnp.float64(dp)) for df, dp in (x, z))
    got = second_order(frame, (split(f), jnp.float64(0.6)), *ways)
    for a, b in zip(got, zip(*(bent_products(one, x, z) for one in f))):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


def cone(s, among, _):
    """Compute the stress on a cone: within a gap next to the tip, |dev e| changes by itself."""
    own, e = ([jnp.log(x) for x in a] for a in (s, among))
    mean = sum(e) / jnp.asarray(len(e), e[0].dtype)
    size = jnp.sqrt(sum((x - mean) ** 2 for x in e))
    return (), tuple(mean * (1 - (x - mean) / size) for x in own), ()


def precise_cone(a):
    e, q = mpmath.eigsy(a * a.T)
    log = q * mpmath.diag([mpmath.log(x) / 2 for x in e]) * q.T
    mean = sum(log[i, i] for i in range(a.rows)) / a.rows
    dev = log - mean * mpmath.eye(a.rows)
    return mean * (mpmath.eye(a.rows) - dev / mpmath.norm(dev))


@pytest.mark.parametrize("dtype, d", [(np.float32, 3), (np.float64, 2)])
def test_derivative_next_to_the_tip_of_a_cone(x64, d, dtype):
    """Strains are rounded to eps of one, so their derivative is rounded to eps over the strain."""
    rng = np.random.default_rng(3)
    w, x = rng.normal(size=(d, d)) - 2 * np.eye(d), rng.normal(size=(d, d)).astype(dtype)
    strains = np.array([1e-6, 1e-5, 1e-4, 1e-3, 1e-2])
    at = (np.eye(d) + strains[:, None, None] * w).astype(dtype)
    stress = lambda f: arrays(spectral(cone, tuples(f), ())[1])
    push = lambda f: jax.jvp(stress, (f,), (jnp.asarray(x),))[1]
    for k, f, got in zip(strains, at, np.asarray(jit_unoptimized(jax.vmap(push))(at))):
        with mpmath.workdps(60):
            f, h = mpmath.matrix(f.astype(float).tolist()), mpmath.mpf(10) ** -20
            way = mpmath.matrix(x.astype(float).tolist()) * h
            exact = (precise_cone(f + way) - precise_cone(f - way)) / (2 * h)
        exact, eps = np.array(exact.tolist(), float), np.finfo(dtype).eps
        assert np.abs(got - exact).max() <= 20 * eps / k * np.abs(exact).max()


@pytest.mark.slow
def test_curvature_next_to_the_tip_of_a_cone(x64, d=2):
    rng = np.random.default_rng(3)
    w, x = rng.normal(size=(d, d)) - 2 * np.eye(d), rng.normal(size=(d, d))
    strains = np.array([1e-6, 1e-5, 1e-4, 1e-3, 1e-2])
    at = np.eye(d) + strains[:, None, None] * w
    stress = lambda f: arrays(spectral(cone, tuples(f), ())[1])
    push = lambda f: jax.jvp(stress, (f,), (jnp.asarray(x),))[1]
    push_slope = lambda f: jax.jvp(push, (f,), (jnp.asarray(x),))[1]
    for f, got in zip(at, np.asarray(jit_unoptimized(jax.vmap(push_slope))(at))):
        with mpmath.workdps(60):
            f, h = mpmath.matrix(f.tolist()), mpmath.mpf(10) ** -18
            way = mpmath.matrix(x.tolist()) * h
            ends = precise_cone(f + way) + precise_cone(f - way)
            exact = np.array(((ends - 2 * precise_cone(f)) / (h * h)).tolist(), float)
        assert np.abs(got - exact).max() <= 1e-9 * np.abs(exact).max()


@pytest.mark.slow
def test_reverse_is_the_transpose_of_forward(x64, d=3):
    rng = np.random.default_rng(1)
    args, tangents = (states(d)["pair"], MU, LAM), (rng.normal(size=(d, d)), 0.3, -0.2)
    weight = rng.normal(size=(d, d)), rng.normal(size=(d, d)), rng.normal()
    both = jit_unoptimized(
        lambda *args: (jax.jvp(apply, args, tangents)[1], jax.vjp(apply, *args)[1](weight))
    )
    push, pull = both(*args)
    total = lambda a, b: sum(np.sum(np.asarray(x) * y) for x, y in zip(a, b))
    np.testing.assert_allclose(total(push, weight), total(pull, tangents), rtol=1e-12)


@pytest.mark.parametrize("dtype, tolerance, d", [(np.float32, 2e-6, 3), (np.float64, 1e-13, 2)])
def test_value_commutes_with_rotations(x64, d, dtype, tolerance):
    rng = np.random.default_rng(2)
    value = jit_unoptimized(apply)
    for _ in range(5):
        f = np.eye(d) + 0.2 * rng.normal(size=(d, d))
        q, r = rotation(rng, d), rotation(rng, d)
        cast = lambda a: a.astype(dtype)
        mu, lam = dtype(MU), dtype(LAM)
        h, tau, total = value(cast(q @ f @ r), mu, lam)
        h0, tau0, total0 = value(cast(f), mu, lam)
        assert_near = lambda a, b: np.testing.assert_allclose(a, b, atol=tolerance * 10)
        assert_near(h, q @ np.asarray(h0) @ r)
        assert_near(tau, q @ np.asarray(tau0) @ q.T)
        assert_near(total, total0)
        assert h.dtype == tau.dtype == dtype


@pytest.mark.slow
def test_curvature_is_exact_also_where_stretches_repeat(x64, d=2):
    """Compare with 60 digits in every state, along changes of f and of a parameter.

    The polynomials above cover space, and the curve below covers the orders of modes.
    """
    rng = np.random.default_rng(5)
    x, z, dmu = rng.normal(size=(d, d)), rng.normal(size=(d, d)), 0.4
    names, at = zip(*states(d).items())

    def forward(f):
        first_order = lambda f, mu: jax.jvp(apply, (f, mu), (x, dmu))[1]
        return jax.jvp(first_order, (f, MU), (z, 0.0))[1]

    got = jit_unoptimized(jax.vmap(forward))(np.stack(at))
    for n, (name, f) in enumerate(zip(names, at)):
        for a, b in zip(got, bend(f, x, z, dmu)):
            # Errors are eps / gap^2 at eps^(1/6), above which divided differences are direct.
            np.testing.assert_allclose(a[n], b, rtol=1e-8, atol=1e-8, err_msg=name)


def test_a_third_derivative_raises_instead_of_being_wrong():
    energy = lambda f: jnp.sum(apply(f)[1])
    with pytest.raises(NotImplementedError, match="third derivative"):
        jax.eval_shape(jax.jacfwd(jax.hessian(energy)), jnp.eye(2))


def test_float32_derivative_at_rest():
    grad = jit_unoptimized(jax.grad(lambda f: jnp.sum(apply(f)[1])))(jnp.eye(3))
    # d sum(tau) = 2 mu sum(sym dF) + 3 lam tr dF
    want = 2 * MU * np.ones((3, 3)) + 3 * LAM * np.eye(3)
    np.testing.assert_allclose(grad, want, rtol=1e-5)


def product(law, point):
    a, b = point
    return law * a * a * b, ()


def product_along(law, frame, point, way):
    (a, b), (x, y) = point, way
    return law * (2 * a * b * x + a * a * y)


def product_bent(law, frame, point, way, other):
    (a, b), (x, y), (z, w) = point, way, other
    return law * (2 * b * x * z + 2 * a * (x * w + y * z))


def test_second_derivatives_along_a_curve_count_its_curvature(x64):
    """Differentiate 3 a^2 b at a = t^2 and b = t^3, i.e. 3 t^7, in every order of modes."""
    t = jnp.array([0.5, 1.0, 1.7])
    y = lambda t: forms.apply(product, product_along, product_bent, 3, (t * t, t * t * t))
    tangent = lambda f: lambda t: jax.jvp(f, (t,), (jnp.ones_like(t),))[1]
    gradient = lambda f: jax.grad(lambda t: jnp.sum(f(t)))
    first = [way(y) for way in (tangent, gradient)]
    second = [way(f) for way in (tangent, gradient) for f in first]
    values = jit_unoptimized(lambda t: [f(t) for f in (y, *first, *second)])(t)
    want = [3 * t**7] + [21 * t**6] * 2 + [126 * t**5] * 4
    np.testing.assert_allclose(values, want, rtol=1e-14)


def test_second_derivatives_are_linear_in_both_directions(x64):
    """Differentiate along u = (s, s^2), then w = (s^3, 2 s), at fixed a, b, in each order of modes.

    The second derivative of 3 a^2 b is then 6 b s^4 + 6 a (2 s^2 + s^5), and its slope in s is
    tested. With a weight the second derivative is the transpose of the first; u is the weight's
    argument.
    """
    a, b, s = np.array([0.5, 1.0]), np.array([2.0, -0.3]), jnp.array([0.7, 1.3])
    y = lambda point: forms.apply(product, product_along, product_bent, 3, point)
    tangent = lambda f: lambda s: jax.jvp(f, (s,), (jnp.ones_like(s),))[1]
    gradient = lambda f: jax.grad(lambda s: jnp.sum(f(s)))
    u, w = lambda s: (s, s * s), lambda s: (s**3, 2 * s)
    jvp_along = lambda point, way: jax.jvp(y, (point,), (way,))[1]
    vjp_along = lambda point, way: sum(
        x * z for x, z in zip(way, jax.grad(lambda p: jnp.sum(y(p)))(point))
    )
    turned = [
        lambda s, first=first: jax.jvp(lambda p: first(p, u(s)), ((a, b),), (w(s),))[1]
        for first in (jvp_along, vjp_along)
    ]
    slopes = [way(f) for f in turned for way in (tangent, gradient)]
    got = jit_unoptimized(lambda s: [f(s) for f in (*turned, *slopes)])(s)
    want = [6 * b * s**4 + 6 * a * (2 * s**2 + s**5)] * 2
    want += [24 * b * s**3 + 6 * a * (4 * s + 5 * s**4)] * 4
    np.testing.assert_allclose(got, want, rtol=1e-14)
