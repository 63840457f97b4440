"""Estimates agree with exact volumes within the error bars they come with."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check

from jaxgpu.evolution.indicators import hypervolume, hypervolume_by_rays, rays

estimate = jax.jit(hypervolume_by_rays, static_argnames="rays")


def sphere(n, m, seed=0):
    x = np.abs(np.random.default_rng(seed).normal(size=(n, m)))
    return jnp.float32(x / np.linalg.norm(x, axis=1, keepdims=True))


def exact_contributions(f, reference):
    volume = jax.jit(hypervolume)
    far = jnp.full(f.shape[1], 9.0)
    return np.array(
        [volume(f, reference) - volume(f.at[i].set(far), reference) for i in range(len(f))]
    )


@pytest.mark.slow
@pytest.mark.parametrize("m", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_volume_and_contributions_within_their_errors(m):
    f, reference = sphere(40, m), jnp.full(m, 1.1)
    want = float(hypervolume(f, reference))
    parts = exact_contributions(f, reference)
    z = []
    for seed in range(5):
        got = estimate(f, reference, jax.random.key(seed), rays=1 << 14)
        z.append((float(got.volume) - want) / float(got.error))
        assert abs(float(got.volume) / want - 1) < 2e-3
        assert np.abs(np.asarray(got.contributions) - parts).sum() < 0.05 * parts.sum()
        wrong = (np.asarray(got.contributions) - parts) / np.maximum(got.errors, 1e-6)
        assert np.sqrt(np.mean(wrong**2)) < 2.5  # Student with 7 degrees of freedom: 1.18
    # eight shifts: Student's t with 7 degrees of freedom, two-sided 1e-4 level is 8.0
    assert np.abs(z).max() < 8


@pytest.mark.slow
@pytest.mark.parametrize("m", [6, 10])
def test_many_objectives_against_a_box_and_two_boxes(m):
    a, b = jnp.full((1, m), 0.2), jnp.full((1, m), 0.2).at[0, 0].set(0.0).at[0, 1].set(0.6)
    got = estimate(jnp.concatenate([a, b]), jnp.ones(m), jax.random.key(1), rays=1 << 16)
    both = 0.4 * 0.8 ** (m - 1)
    want = np.array([0.8**m - both, 0.4 * 0.8 ** (m - 2) - both])
    assert abs(got.volume - (want.sum() + both)) < 6 * got.error
    assert (np.abs(got.contributions - want) < 6 * got.errors).all()
    assert got.error < 0.02 * got.volume


def test_copies_and_dominated_points_contribute_nothing():
    f = jnp.array([[0.2, 0.5], [0.2, 0.5], [0.5, 0.2], [0.6, 0.6], [jnp.nan, 0.0], [0.0, 3.0]])
    got = estimate(f, jnp.ones(2), jax.random.key(0), rays=1024)
    np.testing.assert_array_equal(got.contributions[jnp.array([0, 1, 3, 4, 5])], 0)
    np.testing.assert_allclose(got.contributions[2], 0.15, atol=6 * got.errors[2])


@pytest.mark.slow
def test_error_falls_faster_than_random_sampling():
    f, reference = sphere(100, 3), jnp.full(3, 1.1)
    want, few, many = float(hypervolume(f, reference)), [], []
    for seed in range(8):
        key = jax.random.key(seed)
        few.append(float(estimate(f, reference, key, rays=512).volume) - want)
        many.append(float(estimate(f, reference, key, rays=1 << 15).volume) - want)
    gain = np.sqrt(np.mean(np.square(few)) / np.mean(np.square(many)))
    assert gain > 8 * 1.5, gain  # random directions: sqrt(64) = 8


@pytest.mark.slow
def test_gradient_is_the_slope_of_the_exact_volume():
    f, reference = sphere(12, 3), jnp.full(3, 1.1)
    got = jax.grad(lambda f: estimate(f, reference, jax.random.key(0), rays=1 << 15).volume)(f)
    want = jax.grad(hypervolume)(f, reference)
    assert np.abs(got - want).max() < 0.03 * np.abs(want).max()


def test_directions_cover_the_octant_evenly():
    shift = jnp.zeros(2, jnp.uint32)
    w = [rays.directions(shift, jnp.uint32(i), jnp.dtype("float32")) for i in range(0, 4096, 64)]
    w = np.concatenate(w)
    np.testing.assert_allclose((w * w).sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(w.mean(0), 0.5, atol=1e-3)  # mean of a coordinate on an octant
    np.testing.assert_allclose((w * w).mean(0), 1 / 3, atol=1e-3)


def test_conforms():
    f = sphere(10, 3)
    key = jax.random.key(0)
    check(lambda f: hypervolume_by_rays(f, jnp.full(3, 1.1), key, 512), f)


def test_bad_requests_are_named():
    estimated = lambda rays: hypervolume_by_rays(
        jnp.zeros((3, 2)), jnp.ones(2), jax.random.key(0), rays=rays
    )
    for count in (1000, 0, -512):
        with pytest.raises(ValueError, match="multiple of 512"):
            estimated(count)
    with pytest.raises(TypeError, match="rays=1024 of type float64; it must be a whole number"):
        estimated(1024.0)
    with pytest.raises(TypeError, match=r"rays=an array of shape \[1\]; it must be a whole"):
        estimated([1024])
