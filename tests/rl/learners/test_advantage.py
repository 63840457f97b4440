"""Advantages against their definition, a sum over the remaining episode."""

import conformance
import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.rl.learners.advantage import advantages


def direct_sum(reward, value, final, terminated, truncated, discount, trace):
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


def test_matches_the_definition(x64):
    rng = np.random.default_rng(0)
    reward, value, final = rng.normal(size=(3, 5, 30))
    terminated, truncated = rng.random((2, 5, 30)) < 0.15
    rows = reward, value, final, terminated, truncated
    found = jax.jit(jax.vmap(lambda *row: advantages(*row, 0.93, 0.8)))(*rows)
    want = [direct_sum(*row, 0.93, 0.8) for row in zip(*rows)]
    np.testing.assert_allclose(found, want, rtol=1e-12)


def test_exact_values_have_no_advantage():
    """The reward is 1, split every 5 steps: the value is 1 / (1 - gamma), also at the splits."""
    one, no = np.ones(20, np.float32), np.zeros(20, bool)
    cut, value = np.arange(20) % 5 == 4, np.full(20, 10, np.float32)
    found = jax.jit(lambda ended, cut: advantages(one, value, value, ended, cut, 0.9, 0.95))
    np.testing.assert_allclose(found(no, cut), 0, atol=2e-6)
    lost = found(cut, no)
    np.testing.assert_allclose(lost[4], -9, rtol=1e-6)  # the future that termination takes away


def test_conforms():
    reward, value, final = jax.random.normal(jax.random.key(0), (3, 6))
    no = jnp.zeros(6, bool)
    f = lambda *x: advantages(*x, no, no, 0.9, 0.8)
    conformance.check(f, reward, value, final, differentiable=(0, 1, 2), batched=(0,))
