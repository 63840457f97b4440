"""Post-Newtonian forces against the equations of motion of their Lagrangian, and Schwarzschild."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check

from jaxgpu.physics.nbody.forces import relativity

LIGHT = 30.0


def system(seed, n=4):
    random = np.random.default_rng(seed)
    return (
        jnp.asarray(random.normal(size=(n, 3))),
        jnp.asarray(random.normal(size=(n, 3)) / 2),
        jnp.asarray(random.uniform(0.2, 1, n)),
    )


def newton_by_definition(x, gm):
    a = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(len(x)):
            if i != j:
                a[i] += gm[j] * (x[j] - x[i]) / np.linalg.norm(x[j] - x[i]) ** 3
    return a


def euler_lagrange(x, v, gm, light):
    """d/dt dL/dv = dL/dx solved for the acceleration, the mass matrix and all."""
    n = x.size
    flat = lambda q, w: relativity.lagrangian(q.reshape(-1, 3), w.reshape(-1, 3), gm, light)
    q, w = x.reshape(-1), v.reshape(-1)
    mass = jax.hessian(flat, 1)(q, w)
    mixed = jax.jacfwd(jax.grad(flat, 1), 0)(q, w)
    right = jax.grad(flat, 0)(q, w) - mixed @ w
    return np.linalg.solve(np.asarray(mass).reshape(n, n), np.asarray(right)).reshape(-1, 3)


@pytest.mark.parametrize("seed", range(5))
def test_newton_is_its_definition(x64, seed):
    x, _, gm = system(seed)
    want = newton_by_definition(np.asarray(x), np.asarray(gm))
    np.testing.assert_allclose(relativity.newton(x, gm), want, rtol=1e-13, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_equations_of_motion_are_those_of_the_lagrangian(x64, seed):
    """Two sources, EIH and Landau & Lifshitz, agree up to order 1 / c^4."""
    x, v, gm = system(seed)
    gaps, sizes = [], []
    for light in (LIGHT, 2 * LIGHT, 4 * LIGHT):
        ours = relativity.einstein_infeld_hoffmann(x, v, gm, light)
        gaps.append(np.abs(ours - euler_lagrange(x, v, gm, light)).max())
        sizes.append(np.abs(ours - relativity.newton(x, gm)).max())
    order = np.log2(np.divide(gaps[:-1], gaps[1:]))
    np.testing.assert_allclose(order, 4, atol=0.15)  # the next order is dropped, nothing of ours
    np.testing.assert_allclose(np.log2(np.divide(sizes[:-1], sizes[1:])), 2, atol=0.05)


def test_infinite_light_is_newton(x64):
    x, v, gm = system(7)
    got = relativity.einstein_infeld_hoffmann(x, v, gm, jnp.inf)
    np.testing.assert_array_equal(got, relativity.newton(x, gm))


def test_a_massless_body_feels_schwarzschild(x64):
    x = jnp.array([[0.0, 0, 0], [1.2, -0.4, 0.3]])
    v = jnp.array([[0.0, 0, 0], [0.2, 0.7, -0.5]])
    gm = jnp.array([1.3, 0.0])
    both = relativity.einstein_infeld_hoffmann(x, v, gm, LIGHT)[1]
    more = relativity.schwarzschild(list(x[1]), list(v[1]), gm[0], LIGHT)
    want = relativity.newton(x, gm)[1] + jnp.stack(more)
    np.testing.assert_allclose(both, want, rtol=1e-14)


@pytest.mark.slow
def test_conserved_quantities_do_not_change_along_the_motion(x64):
    """Their time derivative vanishes with 1 / c^4, as the dropped terms do."""
    x, v, gm = system(3)

    def rate(light):
        a = relativity.einstein_infeld_hoffmann(x, v, gm, light)
        kept = lambda x, v: relativity.conserved(x, v, gm, light)
        return max(np.abs(slope).max() for slope in jax.jvp(kept, (x, v), (v, a))[1])

    rates = [rate(LIGHT), rate(2 * LIGHT)]
    assert abs(np.log2(rates[0] / rates[1]) - 4) < 0.2, rates


@pytest.mark.slow
def test_gradients_are_finite_and_conform(x64):
    x, v, gm = system(1)
    light = jnp.asarray(LIGHT)
    check(relativity.einstein_infeld_hoffmann, x, v, gm, light, differentiable=(0, 1, 2, 3))
    check(relativity.conserved, x, v, gm, light, batched=(0, 1), rtol=1e-12)
    single = [jnp.asarray(q, jnp.float32) for q in (x, v, gm, light)]
    assert relativity.einstein_infeld_hoffmann(*single).dtype == jnp.float32
    check(relativity.newton, single[0], single[2], differentiable=(0, 1), batched=(0,))
