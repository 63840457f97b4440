"""Estimates agree with exact volumes within their error bars."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.evolution.indicators import hypervolume, hypervolume_by_rays, rays

estimate = jax.jit(hypervolume_by_rays, static_argnames="rays")
VOLUME = jax.jit(hypervolume)


def sphere(n, m, seed=0):
    x = np.abs(np.random.default_rng(seed).normal(size=(n, m)))
    return np.float32(x / np.linalg.norm(x, axis=1, keepdims=True))


def exact_contributions(f, reference):
    without = [np.where(np.arange(len(f))[:, None] == i, np.float32(9), f) for i in range(len(f))]
    return np.array([VOLUME(f, reference) - VOLUME(g, reference) for g in without])


@pytest.mark.slow
@pytest.mark.parametrize("m", [2, 4])
def test_volume_and_contributions_within_their_errors(m):
    f, reference = sphere(40, m), np.full(m, 1.1, np.float32)
    want = float(VOLUME(f, reference))
    parts = exact_contributions(f, reference)
    z = []
    for seed in range(5):
        got = estimate(f, reference, jax.random.key(seed), rays=1 << 14)
        z.append((float(got.volume) - want) / float(got.error))
        assert abs(float(got.volume) / want - 1) < 2e-3
        assert np.abs(np.asarray(got.contributions) - parts).sum() < 0.05 * parts.sum()
        wrong = (np.asarray(got.contributions) - parts) / np.maximum(got.errors, 1e-6)
        assert np.sqrt(np.mean(wrong**2)) < 2.5  # Student with 7 degrees of freedom: 1.18
    # With eight shifts, the two-sided 1e-4 level of Student's t, at 7 degrees of freedom, is 8.0.
    assert np.abs(z).max() < 8


@pytest.mark.slow
def test_many_objectives_against_a_box_and_two_boxes():
    m = 10
    f = np.full((2, m), 0.2, np.float32)
    f[1, :2] = 0, 0.6
    got = estimate(f, np.ones(m, np.float32), jax.random.key(1), rays=1 << 16)
    both = 0.4 * 0.8 ** (m - 1)
    want = np.array([0.8**m - both, 0.4 * 0.8 ** (m - 2) - both])
    assert abs(got.volume - (want.sum() + both)) < 6 * got.error
    assert (np.abs(got.contributions - want) < 6 * got.errors).all()
    assert got.error < 0.02 * got.volume


def test_copies_and_dominated_points_contribute_nothing():
    f = [[0.2, 0.5], [0.2, 0.5], [0.5, 0.2], [0.6, 0.6], [np.nan, 0], [0, 3]]
    got = estimate(np.float32(f), np.ones(2, np.float32), jax.random.key(0), rays=1024)
    np.testing.assert_array_equal(np.asarray(got.contributions)[[0, 1, 3, 4, 5]], 0)
    np.testing.assert_allclose(got.contributions[2], 0.15, atol=6 * got.errors[2])


@pytest.mark.slow
def test_error_falls_faster_than_random_sampling():
    f, reference = sphere(100, 3), np.full(3, 1.1, np.float32)
    want, few, many = float(VOLUME(f, reference)), [], []
    for seed in range(8):
        key = jax.random.key(seed)
        few.append(float(estimate(f, reference, key, rays=512).volume) - want)
        many.append(float(estimate(f, reference, key, rays=1 << 15).volume) - want)
    gain = np.sqrt(np.mean(np.square(few)) / np.mean(np.square(many)))
    assert gain > 8 * 1.5, gain  # random directions: sqrt(64) = 8


@pytest.mark.slow
def test_gradient_is_the_slope_of_the_exact_volume():
    f, reference = sphere(12, 3), np.full(3, 1.1, np.float32)
    ray_volume = lambda f, key: estimate(f, reference, key, rays=1 << 15).volume
    slopes = jax.jit(
        lambda f, key: (jax.grad(ray_volume)(f, key), jax.grad(hypervolume)(f, reference))
    )
    got, want = map(np.asarray, slopes(f, jax.random.key(0)))
    assert np.abs(got - want).max() < 0.03 * np.abs(want).max()


def test_directions_cover_the_octant_evenly():
    shift = np.zeros(2, np.uint32)
    tiles = jax.jit(
        lambda i: jax.lax.map(lambda i: rays.directions(shift, i, jnp.dtype("float32")), i)
    )
    w = np.asarray(tiles(np.arange(0, 4096, 64, dtype=np.uint32))).reshape(-1, 3)
    np.testing.assert_allclose((w * w).sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(w.mean(0), 0.5, atol=1e-3)  # mean of a coordinate on an octant
    np.testing.assert_allclose((w * w).mean(0), 1 / 3, atol=1e-3)


def test_bad_requests_are_named():
    ray_estimate = lambda rays: hypervolume_by_rays(
        jnp.zeros((3, 2)), jnp.ones(2), jax.random.key(0), rays=rays
    )
    for count in (1000, 0, -512):
        with pytest.raises(ValueError, match="multiple of 512"):
            ray_estimate(count)
    with pytest.raises(TypeError, match="rays=1024 of type float64; it must be a whole number"):
        ray_estimate(1024.0)
    with pytest.raises(TypeError, match=r"rays=an array of shape \[1\]; it must be a whole"):
        ray_estimate([1024])
