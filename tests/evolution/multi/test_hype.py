"""HypE's expected losses against their definition."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.evolution import multi
from jaxgpu.evolution.indicators.rays import orthant_volume
from jaxgpu.evolution.multi.hype import fitness
from jaxgpu.evolution.population import Population
from jaxgpu.evolution.problems import dtlz


def cell_losses(reach, k, depth):
    """Compute expected losses by definition, cell by cell of the grid of coordinates.

    Bader & Zitzler (2011), equation 13: a cell that j members dominate gives each alpha_j / j.
    """
    n, m = reach.shape
    edges = [np.append(0, np.sort(reach[:, c])) for c in range(m)]
    worth = np.zeros(n)
    for cell in itertools.product(range(n), repeat=m):
        size = np.prod([edges[c][i + 1] - edges[c][i] for c, i in enumerate(cell)])
        inside = np.all([reach[:, c] > edges[c][i] for c, i in enumerate(cell)], axis=0)
        j = inside.sum()
        if 0 < j <= depth:
            alpha = np.prod([(k - l) / (n - l) for l in range(1, j)])
            worth[inside] += max(alpha, 0) / j * size
    return worth


@pytest.mark.parametrize("k, depth", [(3, 3), (1, 4), (5, 1)])
def test_expected_losses_are_those_of_the_definition(x64, k, depth):
    reach = np.random.default_rng(k).uniform(0.2, 1, (7, 3))
    spec = multi.HypE(pop_size=4, rays=1 << 14, depth=depth)
    shift = jax.random.bits(jax.random.key(0), (2,), jnp.uint32)
    got = jax.jit(fitness)(spec, reach, shift, jnp.int32(k), np.ones(7, bool))
    want = cell_losses(reach, k, depth)
    # The error of 16384 low-discrepancy rays is a few 1e-4 of the volume, which is below 1.
    np.testing.assert_allclose(got * orthant_volume(3) / spec.rays, want, atol=1e-3)
    assert want.max() > 0.01


def volume(t):
    """Return the hypervolume of the points (t, 1 - t) up to (1.1, 1.1)."""
    t = np.sort(t)
    return np.sum(np.diff(np.append(t, 1.1)) * (0.1 + t))


@pytest.mark.slow
def test_who_adds_the_least_volume_goes_first_and_losses_are_looked_at_anew():
    t = np.array([0.0, 0.6, 0.05, 0.3, 1.0, 0.22, 0.8, 0.52])
    left = list(range(8))
    while len(left) > 4:
        without = [volume(np.delete(t[left], i)) for i in range(len(left))]
        left.pop(np.argmax(without))
    spec = multi.HypE(pop_size=4, rays=4096, rounds=4, depth=1)
    x, f = np.float32(np.tile(t[:, None], 3)), np.float32(np.stack([t, 1 - t], 1))
    merged = Population(x, f, np.zeros(8, np.float32))

    @jax.jit
    def survivors(key):
        state = spec.init(key, dtlz.dtlz2(2, 3))
        both = jax.tree.map(jnp.asarray, merged)
        return spec.survive(state, both, jnp.zeros(8, int), jnp.int32(0)).population.f[:, 0]

    np.testing.assert_allclose(np.sort(survivors(jax.random.key(0))), np.sort(t[left]), rtol=1e-6)


def test_bad_specs_are_named():
    with pytest.raises(ValueError, match="HypE: pop_size=5; it must be even"):
        multi.HypE(pop_size=5)
    with pytest.raises(ValueError, match="rays=100, rounds=32, depth=4; rays must be"):
        multi.HypE(rays=100)
