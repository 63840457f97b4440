"""Pair forces against the sum over pairs, one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check

from jaxgpu.physics.nbody import pairs


def case(seed, dtype):
    random = np.random.default_rng(seed)
    draw = lambda *shape: jnp.asarray(random.normal(size=shape), dtype)
    return draw(2, 6, 3), jnp.asarray(random.uniform(0.1, 1, 6), dtype), draw(2, 3, 5)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("seed", range(5))
def test_pull_of_few_is_the_sum_over_pairs(x64, seed, dtype):
    sources, gm, x = case(seed, dtype)
    wide = [np.asarray(q, np.longdouble) for q in (sources, gm, x)]
    want = np.zeros(x.shape, np.longdouble)
    scale = np.zeros((2, 1, 5), np.longdouble)
    for k in range(2):
        for b in range(5):
            for n in range(6):
                d = wide[0][k, n] - wide[2][k, :, b]
                r = np.sqrt((d * d).sum())
                want[k, :, b] += wide[1][n] * d / r**3
                scale[k, 0, b] += wide[1][n] / r**2
    error = np.abs(np.asarray(pairs.pull_of_few(sources, gm, x)) - want) / scale
    assert error.max() < 16 * jnp.finfo(dtype).eps  # a dozen roundings a term, and their sum


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_pull_of_few_conforms(x64, dtype):
    args = case(0, dtype)
    check(pairs.pull_of_few, *args, differentiable=(0, 1, 2), batched=(0, 2))


def test_pull_of_few_is_minus_the_gradient_of_the_potential(x64):
    sources, gm, x = case(1, jnp.float64)
    d = lambda x: jnp.sqrt(jnp.sum((sources[..., None] - x[:, None]) ** 2, 2))  # [K, N, B]
    potential = lambda x: -jnp.sum(gm[None, :, None] / d(x))
    np.testing.assert_allclose(
        pairs.pull_of_few(sources, gm, x), -jax.grad(potential)(x), rtol=1e-12, atol=1e-12
    )
