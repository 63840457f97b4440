"""Forces in float32 pairs against extended precision, where float32 has no digit left."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check
from nbody_inputs import masses

from jaxgpu.physics.nbody.forces import hilo, pairs

pull = jax.jit(hilo.pull)
U = 2.0**-24


def moving_pairs(seed, count):
    """Make moving bodies around (100, 100, 100), every second one near the previous one."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(6, count)) + 100
    x[:, 1::2] = x[:, ::2] + 10.0 ** random.uniform(-5, -1, count // 2) * x[:, 1::2] / 100
    return x, random.uniform(0.1, 1, count).astype(np.float32)


def direct_pull(x, m):
    """Return acceleration and jerk [6, N] of all bodies by all, in extended precision."""
    x, m = np.asarray(x, np.longdouble), np.asarray(m, np.longdouble)
    d, w = (x[k : k + 3, None] - x[k : k + 3, :, None] for k in (0, 3))
    r2 = (d * d).sum(0) + np.diag(np.full(m.size, np.longdouble(np.inf)))
    p, q = m / r2**1.5, 3 * (d * w).sum(0) / r2
    return np.concatenate([(p * d).sum(2), (p * (w - q * d)).sum(2)])


def bounds(x, m):
    """Return error bounds of the sums: the bound of each term, from the roundings of its parts.

    A component of a separation is rounded twice, and its lower part three times more: 2u of itself
    and 6u^2 of the coordinates. The error of the pull m d / r^3 is at most twice that of d over r,
    plus a dozen roundings; that of the jerk is 12 times as large, plus twice the relative
    velocity's, plus two dozen roundings. Twenty terms are added in twenty roundings.
    """
    d = np.asarray(x[:, None] - x[:, :, None])
    r, w = (np.sqrt((d[k : k + 3] ** 2).sum(0)) for k in (0, 3))
    np.fill_diagonal(r, np.inf)
    np.fill_diagonal(w, 1.0)
    reach, speed = (np.abs(x[k : k + 3]).max() for k in (0, 3))
    of_d, of_w = (2 * U + 6 * np.sqrt(3) * U * U * q for q in (reach / r, speed / w))
    pull = m / r**2 * (2 * of_d + 12 * U + 20 * U)
    jerk = m * w / r**3 * (12 * of_d + 2 * of_w + 24 * U + 20 * U)
    return np.repeat([pull.sum(1), jerk.sum(1)], 3, axis=0)


@pytest.mark.parametrize("seed", range(5))
def test_keeps_the_pull_of_close_pairs_far_from_the_origin(x64, seed):
    x, m = moving_pairs(seed, 20)
    both = hilo.split(jnp.asarray(x))
    got = np.asarray(hilo.join(pull(both, both, jnp.asarray(m))))
    want = direct_pull(x, m)
    assert (np.abs(got - want) < bounds(x, m)).all()
    # Without the lower parts, the closest pairs have no correct digit.
    alone = jax.jit(pairs.pull)(both[0], both[0], jnp.asarray(m))
    assert np.abs(np.asarray(alone, float) - want).max() > 1e-2 * np.abs(want).max()


def test_long_sums_are_added_in_pairs(x64):
    """Sum ten thousand sources in three parts: errors are a random walk of 4096 roundings only."""
    random = np.random.default_rng(0)
    x, m = random.normal(size=(6, 10_000)), masses(10_000, 0).astype(np.float32)
    some = hilo.split(jnp.asarray(x[:, :16]))
    got = hilo.join(pull(some, hilo.split(jnp.asarray(x)), jnp.asarray(m), 0.1))
    want = pairs.pull(jnp.asarray(x[:, :16]), jnp.asarray(x), jnp.asarray(m, jnp.float64), 0.1)
    off = np.linalg.norm(np.reshape(got - want, (2, 3, -1)), axis=1)
    size = np.linalg.norm(np.reshape(want, (2, 3, -1)), axis=1)
    assert (off < 64 * U * size.max(1, keepdims=True)).all()


def test_a_sum_in_pairs_keeps_what_rounding_drops():
    """Sum 0.1 ten thousand times in float32, whose plain sum has a relative error of 1e-4."""
    term = jnp.full(1, 0.1, jnp.float32)
    add = jax.jit(
        lambda: jax.lax.fori_loop(0, 10_000, lambda _, x: hilo._add_compensated(x, term), zero)
    )
    zero = jnp.zeros((2, 1), jnp.float32)
    total = np.asarray(add(), float).sum()
    assert abs(total / (10_000 * float(np.float32(0.1))) - 1) < 10_000 * 2.0**-47


def test_split_keeps_forty_eight_bits(x64):
    x = jnp.asarray(np.random.default_rng(0).normal(size=1000) * 10.0 ** np.arange(-10, 10, 0.02))
    assert (np.abs(hilo.join(hilo.split(x)) - x) <= 2.0**-48 * np.abs(x)).all()
    with pytest.raises(TypeError, match=r"hilo.split: x is float32; must be float64"):
        hilo.split(x.astype(jnp.float32))


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match=r"hilo.pull: points float32 \[6, 4\]; must be float32 \["):
        hilo.pull(jnp.zeros((6, 4)), jnp.zeros((2, 6, 4)), jnp.ones(4))


@pytest.mark.slow
def test_conforms():
    random = np.random.default_rng(1)
    hi, lo = random.normal(size=(2, 2, 6, 9)).astype(np.float32)
    x = jnp.asarray(np.stack([hi, 1e-8 * lo], 1))
    check(pull, x[0, :, :, :4], x[1], jnp.ones(9), batched=(0, 1))
