"""Post-Newtonian forces against their Lagrangian's equations of motion, and Schwarzschild."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check, gradients_are_finite

from jaxgpu.physics.nbody.forces import relativity

LIGHT = 30.0


def system(seed, n=4):
    random = np.random.default_rng(seed)
    return (
        random.normal(size=(n, 3)),
        random.normal(size=(n, 3)) / 2,
        random.uniform(0.2, 1, n),
    )


newton, einstein, conserved = (
    jax.jit(f)
    for f in (relativity.newton, relativity.einstein_infeld_hoffmann, relativity.invariants)
)


def newton_by_definition(x, gm):
    a = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(len(x)):
            if i != j:
                a[i] += gm[j] * (x[j] - x[i]) / np.linalg.norm(x[j] - x[i]) ** 3
    return a


@jax.jit
def euler_lagrange(x, v, gm, light):
    """Solve d/dt dL/dv = dL/dx for the acceleration, including the mass matrix."""
    n = x.size
    flat = lambda q, w: relativity.lagrangian(q.reshape(-1, 3), w.reshape(-1, 3), gm, light)
    q, w = x.reshape(-1), v.reshape(-1)
    mass = jax.hessian(flat, 1)(q, w)
    mixed = jax.jacfwd(jax.grad(flat, 1), 0)(q, w)
    right = jax.grad(flat, 0)(q, w) - mixed @ w
    return jnp.linalg.solve(mass.reshape(n, n), right).reshape(-1, 3)


@pytest.mark.parametrize("seed", range(3))
def test_newton_is_its_definition(x64, seed):
    x, _, gm = system(seed)
    want = newton_by_definition(np.asarray(x), np.asarray(gm))
    np.testing.assert_allclose(newton(x, gm), want, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_equations_of_motion_are_those_of_the_lagrangian(x64, seed):
    """EIH and Landau & Lifshitz, two sources, agree up to order 1 / c^4."""
    x, v, gm = system(seed)
    gaps, sizes = [], []
    for light in (LIGHT, 2 * LIGHT, 4 * LIGHT):
        ours = einstein(x, v, gm, light)
        gaps.append(np.abs(ours - euler_lagrange(x, v, gm, light)).max())
        sizes.append(np.abs(ours - newton(x, gm)).max())
    order = np.log2(np.divide(gaps[:-1], gaps[1:]))
    np.testing.assert_allclose(order, 4, atol=0.15)  # only the next order is dropped
    np.testing.assert_allclose(np.log2(np.divide(sizes[:-1], sizes[1:])), 2, atol=0.05)


def test_infinite_light_is_newton(x64):
    x, v, gm = system(7)
    np.testing.assert_array_equal(einstein(x, v, gm, np.inf), newton(x, gm))


def test_a_massless_body_feels_schwarzschild(x64):
    x = np.array([[0.0, 0, 0], [1.2, -0.4, 0.3]])
    v = np.array([[0.0, 0, 0], [0.2, 0.7, -0.5]])
    gm = np.array([1.3, 0.0])
    both = einstein(x, v, gm, LIGHT)[1]
    more = jax.jit(relativity.schwarzschild)(list(x[1]), list(v[1]), gm[0], LIGHT)
    want = newton(x, gm)[1] + np.stack(more)
    np.testing.assert_allclose(both, want, rtol=1e-14)


@pytest.mark.slow
def test_conserved_quantities_do_not_change_along_the_motion(x64):
    """The time derivatives vanish with 1 / c^4, as the dropped terms do."""
    x, v, gm = system(3)

    @jax.jit
    def rate(light):
        a = relativity.einstein_infeld_hoffmann(x, v, gm, light)
        invariants = lambda x, v: relativity.invariants(x, v, gm, light)
        slopes = jax.tree.leaves(jax.jvp(invariants, (jnp.asarray(x), jnp.asarray(v)), (v, a))[1])
        return jnp.max(jnp.stack([jnp.max(jnp.abs(slope)) for slope in slopes]))

    rates = [rate(LIGHT), rate(2 * LIGHT)]
    assert abs(np.log2(rates[0] / rates[1]) - 4) < 0.2, rates


@pytest.mark.slow
def test_gradients_are_finite_and_conform(x64):
    given = *map(jnp.asarray, system(1)), jnp.asarray(LIGHT)
    gradients_are_finite(relativity.einstein_infeld_hoffmann, given, (0, 1, 2, 3))
    check(conserved, *given, batched=(0, 1), rtol=1e-12)
    single = [q.astype(jnp.float32) for q in given]
    assert einstein(*single).dtype == jnp.float32
    gradients_are_finite(relativity.newton, (single[0], single[2]), (0, 1))
