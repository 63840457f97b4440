"""Stumpff's functions against their series, and the iteration on equations without orbits."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np

from jaxgpu.physics.nbody.orbits import universal


def test_doubled_stumpff_functions_are_their_series(x64):
    for x in (-30.0, -1.0, 0.0, 1e-6, 2.0, 9.8, 39.0):
        for k, got in enumerate(universal.stumpff_doubled(jnp.float64(x))):
            with mpmath.workdps(40):
                terms = [(-mpmath.mpf(x)) ** n / mpmath.factorial(2 * n + k) for n in range(60)]
                want = float(mpmath.fsum(terms))
            np.testing.assert_allclose(float(got), want, rtol=1e-14, atol=1e-14)


def test_both_forms_of_stumpff_functions_agree(x64):
    z = jnp.concatenate([jnp.linspace(-40.0, 40.0, 401), jnp.geomspace(1e-12, 1.0, 50)])
    for got, want in zip(universal.stumpff_doubled(z)[2:], universal.stumpff(z)):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=3e-14)


def test_far_arguments_of_stumpff_functions(x64):
    for x in (-1e4, -300.0, -201.0, -199.0, -90.0):
        for k, got in enumerate(universal.stumpff_doubled(jnp.float64(x))):
            with mpmath.workdps(60):
                terms = [(-mpmath.mpf(x)) ** n / mpmath.factorial(2 * n + k) for n in range(400)]
                want = float(mpmath.fsum(terms))
            np.testing.assert_allclose(float(got), want, rtol=1e-13)
    assert np.isnan(
        universal.stumpff_doubled(jnp.float64(201.0))
    ).all()  # no answer rather than a wrong one


def test_each_lane_is_solved_between_its_bounds(x64):
    """Solve s + s^3 = t from a bad start of either sign; a start on the solution stays there."""
    flight = lambda s: (s + s**3, 1 + 3 * s * s, 6 * s)
    is_settled = lambda s, step, error: jnp.abs(step) <= 1e-15 * jnp.abs(s)
    t = jnp.array([10.0, -30.0, 0.0, 2.0, 1e-6])
    start = jnp.array([1e3, 7.0, 3.0, 1.0, -1.0])
    got = jax.jit(lambda t: universal.solve(flight, start, t, jnp.abs(t), is_settled, 60))(t)
    np.testing.assert_allclose(got, [2.0, -3.0, 0.0, 1.0, 1e-6], rtol=1e-12, atol=1e-17)
