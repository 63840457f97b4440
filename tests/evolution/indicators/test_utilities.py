"""R2 and expected utility against their definitions."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.evolution import indicators


@pytest.mark.slow
def test_r2_and_utility_by_definition(x64):
    f = np.random.default_rng(2).random((400, 2))
    w = np.random.default_rng(0).dirichlet(np.ones(2), 50)
    ideal = np.array([-0.1, 0.05])
    want = (w[:, None] * np.abs(f - ideal)[None]).max(2).min(1).mean()
    np.testing.assert_allclose(jax.jit(indicators.r2)(f, w, ideal), want)
    front, low, high = np.array([[0.0, 2.0], [2.0, 0.0]]), np.zeros(2), np.array([2.0, 2.0])
    got = jax.jit(indicators.expected_utility)(front, jax.random.key(0), low, high)
    np.testing.assert_allclose(got, 0.75, atol=6 * np.sqrt(1 / 48 / 10_000))  # var of max(w, 1-w)


def test_one_draw_of_weights_is_enough_and_none_is_refused():
    f, key = jnp.array([[0.5, 1.0]]), jax.random.key(0)
    mean_utility = lambda count: indicators.expected_utility(
        f, key, jnp.zeros(2), jnp.ones(2), count
    )
    assert jax.eval_shape(partial(mean_utility, 1)).shape == ()
    with pytest.raises(ValueError, match="expected_utility: count=0; it must be"):
        mean_utility(0)


def test_bounds_of_a_utility_that_are_no_bounds_are_named():
    f, key = jnp.array([[0.5, 1.0]]), jax.random.key(0)
    utility = lambda low, high: indicators.expected_utility(f, key, np.array(low), np.array(high))
    for low, high, said in (
        ([0.0, 0.0], [1.0], r"high has shape \[1\]; f needs \[2\]"),
        ([0.0], [1.0, 1.0], r"low has shape \[1\]; f needs \[2\]"),
        ([0.0, 0.0], [1.0, np.nan], r"high=nan at \[1\]; it must be"),
        ([0.0, 1.0], [1.0, 1.0], r"high - low=0 at \[1\]; it must be"),
    ):
        with pytest.raises(ValueError, match=f"expected_utility: {said}"):
            utility(low, high)
