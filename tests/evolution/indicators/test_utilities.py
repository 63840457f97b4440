"""R2 and expected utility by their definitions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check

from jaxgpu.evolution import indicators


@pytest.mark.slow
def test_r2_and_utility_by_definition(x64):
    f = np.random.default_rng(2).random((400, 2))
    w = np.random.default_rng(0).dirichlet(np.ones(2), 50)
    ideal = np.array([-0.1, 0.05])
    want = (w[:, None] * np.abs(f - ideal)[None]).max(2).min(1).mean()
    np.testing.assert_allclose(
        indicators.r2(jnp.asarray(f), jnp.asarray(w), jnp.asarray(ideal)), want
    )
    key = jax.random.key(0)
    low, high = jnp.zeros(2), jnp.array([2.0, 2.0])
    got = indicators.expected_utility(jnp.asarray([[0.0, 2.0], [2.0, 0.0]]), key, low, high)
    np.testing.assert_allclose(got, 0.75, atol=6 * np.sqrt(1 / 48 / 10_000))  # var of max(w, 1-w)


def test_conforms():
    f = jnp.linspace(0, 1, 60, dtype=jnp.float32).reshape(30, 2)
    w = jnp.linspace(0, 1, 20, dtype=jnp.float32)
    check(indicators.r2, f, jnp.stack([w, 1 - w], 1), jnp.zeros(2, jnp.float32))
