"""Exclusive hypervolumes equal counted cells, and the volume that is lost without the point."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import assert_exports, check_program

from jaxgpu.evolution.indicators import contributions, hypervolume

COMPUTE = jax.jit(contributions, static_argnums=2)


def cells(f, reference):
    """Sum, for each point, the cells of the grid of all coordinates that only it covers."""
    n, m = f.shape
    lines = [np.unique(np.append(f[:, k], reference[k])) for k in range(m)]
    lines = [line[line <= reference[k]] for k, line in enumerate(lines)]
    size = np.ones([len(line) - 1 for line in lines])
    corner = np.stack(np.meshgrid(*(line[:-1] for line in lines), indexing="ij"), -1)
    for k, line in enumerate(lines):
        size = size * np.diff(line).reshape([-1 if j == k else 1 for j in range(m)])
    covered = np.array([(corner >= row).all(-1) for row in f])
    alone = covered & (covered.sum(0) == 1)
    return np.array([size[mask].sum() for mask in alone])


@pytest.mark.slow
@pytest.mark.parametrize("m", [2, 3, 4])
def test_is_what_one_point_alone_covers(x64, m):
    # All sets share one shape; few distinct values make coordinates and complete points coincide.
    rng = np.random.default_rng(m)
    for spread in (4, 4, 1000, 1000):
        f = rng.integers(0, spread, (14, m)) / spread
        f[0], f[1], f[2] = f[3], 1.5, np.nan
        reference = np.full(m, 1.1)
        got = COMPUTE(jnp.asarray(f), jnp.asarray(reference), 16)
        want = cells(np.where(np.isnan(f), 9, f), reference)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)
        assert got[0] == got[1] == got[2] == got[3] == 0


def front(n, m, seed):
    f = np.abs(np.random.default_rng(seed).normal(size=(n, m)))
    return f / np.linalg.norm(f, axis=1, keepdims=True)


@pytest.mark.slow
def test_is_what_the_volume_lacks_without_the_point(x64):
    f, reference = front(14, 3, 0), np.full(3, 1.1)
    with_out = np.stack([f, *(np.where(np.arange(14)[:, None] == i, 2, f) for i in range(14))])
    volume = jax.jit(jax.vmap(lambda f: hypervolume(f, reference)))(with_out)
    lost = volume[0] - volume[1:]
    # Differences of volumes of about 1 have an error of one ulp of 1.
    np.testing.assert_allclose(COMPUTE(f, reference, 16), lost, atol=1e-15, rtol=1e-12)


@pytest.mark.slow
def test_float32_keeps_its_digits_and_too_little_room_is_told(x64):
    # Contributions of 200 points on a sphere are 1e-5, hundreds of ulp of the volume.
    f, reference = front(200, 4, 1), np.full(4, 1.1)
    exact = COMPUTE(*(jnp.float64(jnp.float32(a)) for a in (f, reference)), 64)
    got = COMPUTE(jnp.float32(f), jnp.float32(reference), 64)
    assert got.dtype == jnp.float32
    # A length between two coordinates of about 0.5 has an error of half an ulp: 3e-8 of about 0.01.
    np.testing.assert_allclose(got, exact, rtol=1e-4)
    assert abs(np.sum(got, dtype=float) / np.sum(exact) - 1) < 1e-6
    # A point with more neighbours than the capacity has the value NaN.
    few = np.asarray(COMPUTE(jnp.float64(f), jnp.float64(reference), 16))
    told = np.isnan(few)
    assert 0 < told.sum() < 200 and not np.isnan(got).any()
    np.testing.assert_allclose(few[~told], np.asarray(got)[~told], rtol=1e-4)


@pytest.mark.slow
def test_conforms():
    f, reference = np.float32(front(20, 3, 2)), np.full(3, 1.1, np.float32)
    check_program(lambda f, r: contributions(f, r, 16), f, reference)
    assert_exports(lambda f, r: contributions(f, r, 16), f, reference)
    batch = np.stack([f, f[::-1]])
    got = jax.jit(jax.vmap(lambda f: contributions(f, reference, 16)))(batch)
    np.testing.assert_array_equal(got[0], got[1][::-1])


def test_sizes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="hypervolume_by_rays"):
        contributions(jnp.zeros((3, 5)), jnp.ones(5))
    with pytest.raises(ValueError, match=r"contributions: f=nan at \[0, 1\]; it must be"):
        contributions([[0.0, jnp.nan]], [1.0, 1.0])
    with pytest.raises(ValueError, match="neighbours=0"):
        contributions(jnp.zeros((3, 2)), jnp.ones(2), 0)
