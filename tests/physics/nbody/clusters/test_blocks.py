"""Steps that are powers of two, and the derivatives by which the first is chosen."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics.nbody.clusters import Hermite, blocks
from jaxgpu.physics.nbody.forces import pairs


def circle():
    """Two unlike bodies of mass 1 together at distance 1: angular velocity 1."""
    x = np.zeros((6, 2))
    x[0], x[4] = (0.7, -0.3), (0.7, -0.3)
    return jnp.asarray(x), jnp.array([0.3, 0.7])


def test_the_first_step_of_a_circle_is_the_root_of_eta(x64):
    """So says Aarseth's criterion of a circular orbit, of which all derivatives are known."""
    x, m = circle()
    spec = Hermite(eta=0.0625 * 1.01, interval=1.0)
    f, snap = blocks.pull_and_snap(spec, x, x, pairs.pull(x, x, m)[:3], m)
    np.testing.assert_allclose(snap, -f[:3], atol=1e-14)
    np.testing.assert_array_equal(blocks.first_step(spec, f, snap), 0.25)


def test_a_body_at_rest_does_not_take_any_step(x64):
    """At an apocentre the jerk vanishes, and acceleration over jerk would be infinite."""
    x, m = circle()
    x = x.at[3:].set(0)
    spec = Hermite(eta=0.02, interval=1.0, longest=0)
    f, snap = blocks.pull_and_snap(spec, x, x, pairs.pull(x, x, m)[:3], m)
    assert (np.abs(f[3:]) == 0).all() and (blocks.first_step(spec, f, snap) < 0.2).all()


@pytest.mark.parametrize("now", [0.5, 0.625, 0.75, 1.0, 3 / 64])
def test_a_new_step_divides_the_time(x64, now):
    spec = Hermite(longest=1)
    for most in (0.5, 0.125, 2.0**-9):
        dt = float(blocks.fitting_step(spec, jnp.float64(most), jnp.float64(now)))
        assert dt <= most and now % dt == 0
        assert 2 * dt > min(most, 0.5) or now % (2 * dt) != 0  # and is the longest such


def test_quantised_is_the_next_power_of_two_below(x64):
    spec = Hermite(longest=2, shortest=20)
    wanted = np.array([1.0, 0.25, 0.2499, 0.1, 2.0**-20, 1e-9, np.nan])
    got = blocks.quantised(spec, jnp.asarray(wanted))
    np.testing.assert_array_equal(got, [0.25, 0.25, 0.125, 0.0625, *[2.0**-20] * 3])
