"""Exact volumes against inclusion-exclusion and moocore; gradients against differences."""

from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import assert_exports, check_program

from jaxgpu.evolution.indicators import hypervolume

# Values of moocore 0.3.2 on `cloud` (float64).
MOOCORE = {
    2: 0.6037165142121717,
    3: 1.013268779874145,
    4: 1.2209108330019953,
    5: 1.0550034003512543,
}
SIZES = {2: 400, 3: 300, 4: 80, 5: 25}


def cloud(m):
    """Make points around the unit sphere, and a reference that differs in every objective."""
    x = np.abs(np.random.default_rng(m).normal(size=(SIZES[m], m)))
    f = x / np.linalg.norm(x, axis=1, keepdims=True)
    f *= 1 + 0.3 * np.random.default_rng(m + 50).random((len(f), 1))
    return f, np.linspace(1.1, 1.3, m)


def inclusion_exclusion(f, reference):
    """Sum +- the volume of the intersection over all subsets of boxes."""
    total = 0.0
    for size in range(1, len(f) + 1):
        for some in combinations(f, size):
            total -= (-1) ** size * np.prod(np.maximum(reference - np.max(some, axis=0), 0))
    return total


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_matches_inclusion_exclusion_with_ties_copies_and_points_outside(x64, m):
    volume = jax.jit(hypervolume)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        f = rng.integers(0, 5, (9, m)) / 4
        f[0], f[1] = f[2], f[3] + rng.random(m)
        reference = np.linspace(0.9, 1.1, m)
        # Values are below 2 and every operation is rounded once: 2^9 terms of one ulp.
        want = inclusion_exclusion(f, reference)
        np.testing.assert_allclose(volume(f, reference), want, rtol=0, atol=1e-13)


@pytest.mark.parametrize("m", [2, 3, *(pytest.param(m, marks=pytest.mark.slow) for m in (4, 5))])
def test_matches_moocore(x64, m):
    f, reference = cloud(m)
    np.testing.assert_allclose(jax.jit(hypervolume)(f, reference), MOOCORE[m], rtol=1e-13)
    single = jax.jit(hypervolume)(f.astype(np.float32), reference.astype(np.float32))
    np.testing.assert_allclose(single, MOOCORE[m], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("m", [2, 4])
def test_gradient_is_the_slope(x64, m):
    f, reference = cloud(m)
    f, rng = f[:40], np.random.default_rng(0)
    df, dr = rng.normal(size=f.shape), rng.normal(size=m)
    h = 1e-6  # truncation h^2, rounding 1e-16 / h
    volume = jax.jit(hypervolume)
    slope = (
        (volume(f + h * df, reference + h * dr) - volume(f - h * df, reference - h * dr)) / 2 / h
    )
    gf, gr = jax.jit(jax.grad(hypervolume, argnums=(0, 1)))(f, reference)
    np.testing.assert_allclose(np.sum(gf * df) + np.sum(gr * dr), slope, rtol=1e-7)
    # Moving all points and the reference together changes nothing.
    np.testing.assert_allclose(gf.sum(0) + gr, 0, atol=1e-12)
    assert (gf <= 1e-15).all()


def test_nan_and_points_beyond_the_reference_count_for_nothing():
    f = np.float32([[0, 0.5], [np.nan, 0], [0.5, 2], [-np.inf, 1]])
    volume, slope = jax.jit(jax.value_and_grad(hypervolume))(f, np.ones(2, np.float32))
    assert volume == 0.5 and np.isfinite(slope).all()


def test_on_the_host_a_point_without_a_volume_is_refused():
    """Compiled programs omit such a point; on the host, an error names it for the user."""
    with pytest.raises(ValueError, match=r"hypervolume: f=nan at \[1, 0\]; it must be a number"):
        hypervolume(jnp.array([[0.0, 0.5], [jnp.nan, 0.0]]), jnp.ones(2))
    with pytest.raises(ValueError, match=r"f=-inf at \[0, 1\]"):
        hypervolume([[0.0, -np.inf]], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"reference=inf at \[1\]; it must be a finite number"):
        hypervolume([[0.0, 0.5]], [1.0, np.inf])
    assert hypervolume([[0, 2], [1, 1], [np.inf, 0]], [3, 3]) == 5  # lists, and no value yet


def test_a_better_set_has_more_volume():
    f, reference = cloud(3)
    f, reference = np.float32(f), np.float32(reference)
    volume = jax.jit(hypervolume)
    base = volume(f, reference)
    for i in range(5):
        row = np.arange(len(f))[:, None] == i
        # Each of 300 summands has one float32 rounding.
        assert volume(np.where(row, np.float32(0.9) * f, f), reference) >= base * (1 - 3e-5)
        assert volume(np.where(row, reference, f), reference) <= base * (1 + 3e-5)


def test_conforms():
    for m in (3, 4):
        f, reference = cloud(m)
        f, reference = np.float32(f[:12]), np.float32(reference)
        check_program(hypervolume, f, reference)
        assert_exports(hypervolume, f, reference)


def test_too_many_objectives_are_named():
    with pytest.raises(ValueError, match="6 objectives; it must be 1 to 5"):
        hypervolume(jnp.zeros((3, 6)), jnp.ones(6))
    with pytest.raises(ValueError, match="reference has shape"):
        hypervolume(jnp.zeros((3, 2)), jnp.ones(3))
