"""The Gauss-Radau step: its tables against SciPy, its order, its solution of known motions."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from scipy.integrate import solve_ivp
from scipy.special import roots_jacobi

from jaxgpu.physics.nbody.steps import radau


def test_nodes_are_the_radau_points():
    # The nodes are zeros of the Jacobi polynomial P_7^(0,1), which SciPy finds as eigenvalues.
    np.testing.assert_allclose(radau.NODES[1:], (roots_jacobi(7, 0, 1)[0] + 1) / 2, atol=1e-14)
    assert radau.NODES[0] == 0


def test_weights_integrate_polynomials_exactly():
    ends = np.array([*radau.NODES, 1.0])
    for degree in range(8):  # eight nodes: anything up to degree 7
        values = radau.NODES**degree
        np.testing.assert_allclose(
            radau.VELOCITY @ values, ends ** (degree + 1) / (degree + 1), atol=4e-16
        )
        np.testing.assert_allclose(
            radau.POSITION @ values,
            ends ** (degree + 2) / ((degree + 1) * (degree + 2)),
            atol=4e-16,
        )
    # At the end of the step, degrees up to 14 are exact, so the method has order 15.
    for degree in range(8, 15):
        assert abs(radau.VELOCITY[8] @ radau.NODES**degree - 1 / (degree + 1)) < 1e-15
    assert abs(radau.VELOCITY[8] @ radau.NODES**15 - 1 / 16) > 1e-10


def damped_pull(first, x, v):
    return -x - 0.1 * v  # not conservative: the acceleration depends on the velocity


def pendulum(first, x, v):
    return -jnp.sin(x) - 0.1 * v


@partial(jax.jit, static_argnums=0)
def integrate(force, x, v, dt, steps):
    def step(_, state):
        x, v = state
        a = jnp.repeat(force(0, x[None], v[None]), 8, axis=0)
        a = lax.fori_loop(0, 20, lambda _, a: radau.solve(force, x, v, dt, a, 2)[0], a)
        dx, dv = radau.increment(v, dt, a)
        return x + dx, v + dv

    return jnp.stack(lax.fori_loop(0, steps, step, (x, v)))


def test_error_shrinks_as_the_fifteenth_power_of_the_step(x64):
    """Use steps of 1.7 to 2.4 radians over sixteen periods, where errors are far above rounding.

    Between these the relative error falls from 3e-11 to 2e-13; fit its logarithm.
    """
    x, v = jnp.array([1.0, 0.3]), jnp.array([0.0, -0.7])
    w = np.sqrt(1 - 0.05**2)
    c, s = np.cos(100 * w), np.sin(100 * w) / w
    exact = np.exp(-5) * np.array([x * c + (v + 0.05 * x) * s, v * c - (x + 0.05 * v) * s])
    steps = np.array([42, 46, 50, 54, 58])
    error = [np.abs(integrate(damped_pull, x, v, 100 / n, n) - exact).max() for n in steps]
    assert abs(-np.polyfit(np.log(steps), np.log(error), 1)[0] - 15) < 0.15, error
    c, s = np.cos(10 * w), np.sin(10 * w) / w
    exact = np.exp(-0.5) * np.array([x * c + (v + 0.05 * x) * s, v * c - (x + 0.05 * v) * s])
    assert np.abs(integrate(damped_pull, x, v, 1.0, 10) - exact).max() < 2e-15


def test_a_pendulum_swings_as_scipy_says(x64):
    x, v = np.array([2.0]), np.array([0.5])
    rate = lambda t, y: [y[1], -np.sin(y[0]) - 0.1 * y[1]]
    want = solve_ivp(rate, (0, 16), [2.0, 0.5], method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    got = integrate(pendulum, jnp.asarray(x), jnp.asarray(v), 0.5, 32)[:, 0]
    np.testing.assert_allclose(got, want, atol=2e-12)  # what SciPy's tolerance leaves


def test_extrapolation_continues_a_polynomial(x64):
    p = np.polynomial.Polynomial([0.3, -1, 2, 0.5, -0.25, 1, 0.1, -0.2])
    a = jnp.asarray(p(radau.NODES))[:, None]
    for ratio in (0.25, 1.0, 2.0):
        want = p(1 + ratio * radau.NODES)
        got = radau.extrapolate(a, jnp.full(1, ratio))[:, 0]
        np.testing.assert_allclose(got, want, rtol=1e-12 * np.abs(want).max())
        parts = [radau.weighted_sum(row, list(a)) for row in radau.LAGRANGE]
        again = jnp.stack(radau.extrapolate_poly(parts, jnp.asarray(ratio)))[:, 0]
        np.testing.assert_allclose(again, want, rtol=1e-12 * np.abs(want).max())


@pytest.mark.slow
def test_nodes_in_turn_find_what_all_at_once_find_and_sooner(x64):
    """Both solve the same equations, for a force that depends on the velocity, too."""
    x, v, dt = jnp.array([2.0, 0.1]), jnp.array([0.5, -1.0]), jnp.asarray(1.0)
    still = jnp.repeat(pendulum(0, x, v)[None], 8, axis=0)
    exact = radau.solve(pendulum, x, v, dt, still, 40)[0]

    @partial(jax.jit, static_argnums=0)
    def run_in_turn(sweeps):
        force = lambda x, v: pendulum(0, x, v)
        a, change = radau.solve_gauss_seidel(force, x, v, dt, list(still), sweeps)
        return jnp.stack(a), change

    off = [np.abs(run_in_turn(k)[0] - exact).max() for k in (2, 3, 12)]
    assert off[2] < 2e-15 and np.abs(run_in_turn(12)[1]).max() < 2e-15
    # The spectral radius for x'' = -x and a step of 1 is 0.0040; the damping increases it.
    assert off[1] < 0.02 * off[0]
    four = np.abs(radau.solve(pendulum, x, v, dt, still, 4)[0] - exact).max()
    assert off[1] < four / 4  # with 21 evaluations against 29


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_a_circle_comes_back(x64, dtype):
    force = lambda first, x, v: -x / jnp.sum(x * x, 1, keepdims=True) ** 1.5
    x, v = jnp.array([1, 0], dtype), jnp.array([0, 1], dtype)
    dt = jnp.asarray(2 * np.pi / 24, dtype)

    @jax.jit
    def turn(x, v):
        def step(_, carry):
            x, v, a, _ = carry
            a, change = radau.solve(force, x, v, dt, a, 12)
            dx, dv = radau.increment(v, dt, a)
            return x + dx, v + dv, radau.extrapolate(a, jnp.ones(1, dtype)), change

        a = jnp.repeat(force(0, x[None], v[None]), 8, axis=0)
        shape = jax.eval_shape(lambda: step(0, (x, v, a, None)))[3]
        return lax.fori_loop(0, 24, step, (x, v, a, jnp.zeros(shape.shape, dtype)))

    x, v, _, change = turn(x, v)
    # Two dozen steps are each rounded a few times.
    assert np.abs(np.array([*x, *v]) - [1, 0, 0, 1]).max() < 200 * jnp.finfo(dtype).eps
    assert np.abs(change).max() < 20 * jnp.finfo(dtype).eps


def test_gradient_is_that_of_the_flow(x64):
    """Compare with central differences, whose truncation and rounding balance near 1e-10."""

    def f(q):
        end = integrate.__wrapped__(pendulum, q[:1], q[1:], 0.5, 3)  # a known number of steps
        return end[0, 0] + 2 * end[1, 0]

    both, q, h = jax.jit(jax.value_and_grad(f)), np.array([0.7, -0.2]), 1e-5
    for i in range(2):
        step = h * np.eye(2)[i]
        slope = (both(q + step)[0] - both(q - step)[0]) / (2 * h)
        assert abs(both(q)[1][i] - slope) < 1e-9
