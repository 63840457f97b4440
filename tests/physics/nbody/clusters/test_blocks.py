"""Steps that are powers of two, and the derivatives that determine the first one."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.inputs import ranges
from jaxgpu.physics.nbody.clusters import Hermite, blocks
from jaxgpu.physics.nbody.forces import pairs


def circle():
    """Make two unlike bodies of total mass 1 at distance 1: angular velocity 1."""
    x = np.zeros((6, 2))
    x[0], x[4] = (0.7, -0.3), (0.7, -0.3)
    return jnp.asarray(x), jnp.array([0.3, 0.7])


def test_the_first_step_of_a_circle_is_the_root_of_eta(x64):
    """Check Aarseth's criterion on a circular orbit, for which all derivatives are known."""
    x, m = circle()
    spec = Hermite(eta=0.0625 * 1.01, interval=1.0)
    f, snap = blocks.pull_and_snap(spec, x, x, pairs.pull(x, x, m)[:3], m)
    np.testing.assert_allclose(snap, -f[:3], atol=1e-14)
    np.testing.assert_array_equal(blocks.first_step(spec, f, snap), 0.25)


def test_a_body_at_rest_does_not_take_any_step(x64):
    """The jerk vanishes at an apocentre, where acceleration over jerk would be infinite."""
    x, m = circle()
    x = x.at[3:].set(0)
    spec = Hermite(eta=0.02, interval=1.0, longest=0)
    f, snap = blocks.pull_and_snap(spec, x, x, pairs.pull(x, x, m)[:3], m)
    assert (np.abs(f[3:]) == 0).all() and (blocks.first_step(spec, f, snap) < 0.2).all()


@pytest.mark.parametrize("now", [0.5, 0.625, 0.75, 1.0, 3 / 64])
def test_a_new_step_divides_the_time(x64, now):
    spec = Hermite(longest=1)
    for most in (0.5, 0.125, 2.0**-9):
        dt = float(blocks.commensurate_step(spec, jnp.float64(most), jnp.float64(now)))
        assert dt <= most and now % dt == 0
        assert 2 * dt > min(most, 0.5) or now % (2 * dt) != 0  # and is the longest such


def test_quantised_is_the_next_power_of_two_below(x64):
    spec = Hermite(longest=2, shortest=20)
    wanted = np.array([1.0, 0.25, 0.2499, 0.1, 2.0**-20, 1e-9, np.nan])
    got = blocks.quantize_step(spec, jnp.asarray(wanted))
    np.testing.assert_array_equal(got, [0.25, 0.25, 0.125, 0.0625, *[2.0**-20] * 3])


# Fractions of the interval, none of them a power of two.
WANTED = [0.0, 0.01, 0.02, 0.04, 0.1, 0.2, 0.4, 0.9, np.inf]


def test_steps_halve_at_once_and_double_where_the_time_allows():
    """Check McMillan's rule (1986) in integers: time and step in units of the shortest step."""
    unit, longest, deepest = 2.0**-6, 1, 6
    spec = Hermite(interval=3.0, longest=longest, shortest=deepest)
    cases = [(k, d, w) for k in (1, 6, 8, 12, 48, 64) for d in range(7) for w in WANTED]
    kept = [(k, d, w) for k, d, w in cases if k % 2**d == 0 and 2**d * unit <= 2.0**-longest]
    want, low = [], []
    for k, d, w in kept:
        step, limit = 2**d, 2 ** (deepest - longest)  # in units
        if w < step * unit:  # as often halved as it takes, but not below the floor
            step = next((2**e for e in range(d, -1, -1) if 2**e * unit <= w), 1)
        elif 2 * step <= limit and k % (2 * step) == 0 and w >= 2 * step * unit:
            step = 2 * step
        want.append(step * unit)
        low.append(not w >= unit)
    now, dt, wanted = (jnp.asarray(q, jnp.float32) for q in zip(*kept))
    got, floored = blocks.next_step(spec, 2.0**dt * unit, wanted * spec.interval, now * unit)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(floored, low)
    assert set(want) == {2.0**-k for k in range(1, 7)} and any(low) and not all(low)


def test_the_first_step_is_aarseths_with_the_crackle_of_a_circle(x64):
    """Check dt^2 = eta (a s + j^2) / (j c + s^2), c = s^2 / j, above and below a power of two."""
    a, j, s = np.random.default_rng(2).normal(size=(3, 3, 40))
    size = lambda q: np.linalg.norm(q, axis=0)
    free = np.sqrt((size(a) * size(s) + size(j) ** 2) / (2 * size(s) ** 2)) / 0.7
    for more in (1.001, 0.999):
        for n, k in enumerate(np.tile(range(1, 9), 5)):
            eta = (2.0**-k / free[n]) ** 2 * more
            given = (jnp.asarray(q[:, n : n + 1]) for q in (np.concatenate([a, j]), s))
            got = blocks.first_step(Hermite(eta=eta, interval=0.7, longest=0), *given)
            assert got[0] == (2.0**-k if more > 1 else 2.0 ** -(k + 1))


def test_a_step_may_be_half_an_interval_at_the_shortest_and_not_the_whole():
    ranges.check("f", Hermite(longest=1, shortest=1))
    with pytest.raises(ValueError, match="shortest=0; it must be"):
        ranges.check("f", Hermite(longest=0, shortest=0))


def test_the_size_of_a_vector_is_that_of_its_three_rows():
    assert blocks.norm((3.0, 4.0, 12.0)) == blocks.norm(np.array([12.0, 3.0, -4.0])) == 13


def test_the_snap_is_the_change_of_the_jerk(x64):
    """Compare softened forces between three bodies with central differences, to 1e-7."""
    random = np.random.default_rng(3)
    x, v = random.normal(size=(2, 3, 3))
    m, softening, h = np.array([0.5, 1.5, 0.8]), 0.3, 1e-4

    def acc_and_jerk(x, v):
        d, w = x[:, None] - x[:, :, None], v[:, None] - v[:, :, None]
        r2 = np.sum(d * d, 0) + softening**2
        jerk = (w - 3 * np.sum(d * w, 0) * d / r2) / r2**1.5
        return np.sum(m * d / r2**1.5, -1), np.sum(m * jerk, -1)

    a, jerk = acc_and_jerk(x, v)
    ahead, behind = (acc_and_jerk(x + k * v + k * k * a / 2, v + k * a)[1] for k in (h, -h))
    both = jnp.asarray(np.concatenate([x, v]))
    spec = Hermite(softening=softening)
    f, snap = blocks.pull_and_snap(spec, both, both, jnp.asarray(a), jnp.asarray(m))
    np.testing.assert_allclose(f, np.concatenate([a, jerk]), rtol=1e-12)
    np.testing.assert_allclose(snap, (ahead - behind) / (2 * h), atol=1e-6)


def test_prediction_is_the_taylor_series(x64):
    """Check positions to the jerk and velocities to its second integral, each from its own time."""
    random = np.random.default_rng(4)
    x, v, a, j = random.normal(size=(4, 3, 5))
    t, now, interval = np.array([0.0, 0.25, 0.5, 0.625, 0.75]), 0.75, 1.6
    group = blocks.Population(
        jnp.asarray(np.concatenate([x, v])), jnp.asarray(np.concatenate([a, j])),
        jnp.asarray(t), jnp.full(5, 0.125),
    )  # fmt: skip
    got = blocks.predict(Hermite(interval=interval), group, jnp.float64(now))
    h = interval * (now - t)
    np.testing.assert_allclose(got[:3], x + h * v + h**2 * a / 2 + h**3 * j / 6, rtol=1e-14)
    np.testing.assert_allclose(got[3:], v + h * a + h**2 * j / 2, rtol=1e-14)
    np.testing.assert_array_equal(got[:, 4], group.x[:, 4])


def test_bodies_are_due_when_their_steps_end():
    quarter = jnp.full(4, 0.25)
    group = blocks.Population(jnp.zeros((6, 4)), jnp.zeros((6, 4)), jnp.arange(4) / 4, quarter)
    np.testing.assert_array_equal(blocks.due_at(group, jnp.float32(0.5)), [0, 1, 0, 0])
    assert (blocks.rebase_times(group).t == 0).all() and (
        blocks.rebase_times(group).dt == 0.25
    ).all()


def test_a_block_is_counted_with_the_steps_that_it_made():
    """Add one block, of 2 of 3 stars and 5 tracers, to the previous counts."""
    before = SimpleNamespace(
        blocks=jnp.int32(10), steps=jnp.array([20.0, 30.0]), floored=jnp.int32(4)
    )
    due = jnp.array([True, False, True])
    now = blocks.count_block(before, due, jnp.int32(5), jnp.int32(3))
    assert now["blocks"] == 11 and now["floored"] == 7
    np.testing.assert_array_equal(now["steps"], [22.0, 35.0])


def test_the_floor_is_a_step_of_two_to_the_minus_40_or_what_the_digits_of_time_resolve(x64):
    assert blocks.quantize_step(Hermite(), jnp.float64(1e-30)) == 2.0**-40
    assert blocks.quantize_step(Hermite(), jnp.float32(1e-30)) == 2.0**-23
    assert blocks.quantize_step(Hermite(), jnp.float64(1e-12)) == 2.0**-40 < 1e-12 < 2.0**-39
