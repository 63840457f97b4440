"""Mass segregation: the tree against SciPy's, the ratio against known values."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform

from jaxgpu.physics.nbody.measure import segregation
from jaxgpu.physics.nbody.models import plummer

draw = jax.jit(plummer, static_argnums=1)
edges = jax.jit(segregation.tree_edges)
ratio = jax.jit(partial(segregation.segregation_ratio, heaviest=20), static_argnames="geometric")


@pytest.mark.parametrize("seed", range(5))
def test_the_tree_is_scipys(x64, seed):
    x = np.random.default_rng(seed).normal(size=(40, 3))
    want = np.sort(minimum_spanning_tree(squareform(pdist(x))).data)
    np.testing.assert_allclose(np.sort(edges(x)), want, rtol=1e-12)


def spheres(seeds, count=500):
    with jax.enable_x64(True):
        return [np.asarray(draw(jax.random.key(s), count)[0]) for s in seeds]


@pytest.mark.slow
@pytest.mark.parametrize("geometric", [False, True])
def test_one_without_segregation(x64, geometric):
    """Average the ratio over 20 clusters; its scatter equals the error that is returned with it."""
    got = []
    for seed, x in enumerate(spheres(range(20))):
        m = np.random.default_rng(seed).uniform(0.1, 1, 500)
        got.append(ratio(jax.random.key(seed), x, m, geometric=geometric))
    value, error = np.array(got).T
    assert abs(value.mean() - 1) < 3 * value.std() / np.sqrt(20) + 0.02  # E[1/l] > 1 / E[l]
    assert 0.5 < value.std() / error.mean() < 2  # the error is honest
    assert (np.abs(value - 1) < 4 * error).all()


@pytest.mark.slow
def test_says_how_much_closer_the_heavy_stars_are(x64):
    """Sample the heavy stars in a sphere of a quarter of the size: the ratio is 4."""
    got = []
    for seed, (x, y) in enumerate(zip(spheres(range(5)), spheres(range(5, 10)))):
        x = np.concatenate([y[:20] / 4, x])
        m = np.concatenate([np.full(20, 10.0), np.ones(500)])
        got.append(ratio(jax.random.key(seed), x, m)[0])
    assert 2.8 < min(got) and max(got) < 5.6  # 20 of 520 drawn: 14 % scatter, and heavy tails
    # With the heavy stars outside, the ratio is below one.
    outside = np.concatenate([4 * y[:20], x])
    assert ratio(jax.random.key(0), outside, m)[0] < 0.6


def test_refuses_what_cannot_be_joined():
    with pytest.raises(
        ValueError, match="segregation_ratio: heaviest 3 of 3 stars; must be 2 to 2"
    ):
        segregation.segregation_ratio(jax.random.key(0), jnp.ones((3, 3)), jnp.ones(3), 3)


@pytest.mark.slow
def test_conforms(x64):
    x = jnp.asarray(np.random.default_rng(0).normal(size=(9, 2)))
    check(edges, x, differentiable=(0,), batched=(0,))
