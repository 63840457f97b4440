"""The snap kernel: against the definition in forty digits, and as the jerk's derivative."""

import jax
import mpmath
import numpy as np
import pytest

from jaxgpu.physics.nbody.forces import pairs, snaps

pull = jax.jit(snaps.pull)


def bodies(seed, count):
    return np.random.default_rng(seed).normal(size=(9, count))


@pytest.mark.parametrize("seed", range(5))
def test_matches_the_time_derivatives_at_forty_digits(x64, seed):
    """Differentiate m d / r^3 along paths x + v t + a t^2 / 2 by mpmath."""
    points, sources, m = bodies(seed, 1), bodies(seed + 10, 2), np.array([0.7, 1.3])
    got = np.asarray(pull(points, sources, m, 0.1)).reshape(3, 3)

    def force(t, k):
        total = 0
        for s, mass in zip(sources.T, m):
            q = [mpmath.mpf(float(b)) - mpmath.mpf(float(a)) for a, b in zip(points[:, 0], s)]
            d = [q[i] + q[i + 3] * t + q[i + 6] * t * t / 2 for i in range(3)]
            r2 = sum(c * c for c in d) + mpmath.mpf(0.1) ** 2
            total += mpmath.mpf(float(mass)) * d[k] / r2 ** mpmath.mpf(1.5)
        return total

    with mpmath.workdps(40):
        want = [
            [float(mpmath.diff(lambda t, k=k: force(t, k), 0, n)) for k in range(3)]
            for n in range(3)
        ]
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13 * np.abs(want).max())


def test_begins_as_the_other_kernel_and_skips_the_point_itself(x64):
    """Use more than one tile of targets, with the sources among them."""
    sources, m = bodies(3, 40), np.random.default_rng(0).random(40)
    points = np.concatenate([sources, bodies(4, 600)], 1)
    got = pull(points, sources, m)
    # The snap is the rate at which acceleration and jerk change.
    change = jax.jit(lambda x, s, *ways: jax.jvp(lambda x, s: pairs.pull(x, s, m), (x, s), ways))
    want, slope = change(points[:6], sources[:6], points[3:], sources[3:])
    np.testing.assert_allclose(got[:6], want, rtol=1e-11, atol=1e-12 * np.abs(want).max())
    np.testing.assert_allclose(got[6:], slope[3:], rtol=1e-9, atol=1e-10 * np.abs(want).max())
