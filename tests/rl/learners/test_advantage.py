"""Advantages against their definition, a sum over the rest of the episode."""

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.rl.learners.advantage import advantages


def by_definition(reward, value, final, terminated, truncated, discount, trace):
    out = np.zeros(len(reward))
    for t in range(len(reward)):
        weight = 1.0
        for k in range(t, len(reward)):
            future = 0.0 if terminated[k] else discount * final[k]
            out[t] += weight * (reward[k] + future - value[k])
            if terminated[k] or truncated[k]:
                break
            weight *= discount * trace
    return out


@pytest.mark.parametrize("seed", range(5))
def test_matches_the_definition(x64, seed):
    rng = np.random.default_rng(seed)
    reward, value, final = rng.normal(size=(3, 30))
    terminated, truncated = rng.random((2, 30)) < 0.15
    args = (reward, value, final, terminated, truncated, 0.93, 0.8)
    np.testing.assert_allclose(
        advantages(*map(jnp.asarray, args[:5]), *args[5:]), by_definition(*args), rtol=1e-12
    )


def test_exact_values_have_no_advantage():
    """Constant reward 1, cut every 5 steps: the value is 1 / (1 - gamma), also at the cuts."""
    one, no = jnp.ones(20), jnp.zeros(20, bool)
    cut = jnp.arange(20) % 5 == 4
    value = one / (1 - 0.9)
    np.testing.assert_allclose(advantages(one, value, value, no, cut, 0.9, 0.95), 0, atol=2e-6)
    lost = advantages(one, value, value, cut, no, 0.9, 0.95)
    np.testing.assert_allclose(lost[4], -9, rtol=1e-6)  # the future that termination takes away


def test_conforms():
    reward, value, final = jax.random.normal(jax.random.key(0), (3, 6))
    no = jnp.zeros(6, bool)
    f = lambda *x: advantages(*x, no, no, 0.9, 0.8)
    conformance.check(f, reward, value, final, differentiable=(0, 1, 2), batched=(0,))
