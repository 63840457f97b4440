"""`minimize` finds known optima of mixed spaces and known fronts."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.evolution import Boolean, Categorical, Integer, Permutation, Real, minimize, single

MIXED = {"x": Real(-4.0, 4.0, (2,)), "n": Integer(0, 20), "k": Categorical(4), "b": Boolean()}


def mixed(p):
    bowl = jnp.sum((p["x"] - jnp.array([1.0, -2.0])) ** 2)
    whole = (p["n"] - 13).astype(jnp.float32) ** 2
    return bowl + whole + jnp.where(p["k"] == 2, 0.0, 1.0) + jnp.where(p["b"], 0.0, 3.0)


@pytest.mark.slow
def test_a_mixed_space_from_five_seeds():
    for seed in range(5):
        found = minimize(mixed, MIXED, 12000, seed=seed)
        assert found.f < 1e-4, (seed, found.f)
        assert found.x["n"] == 13 and found.x["k"] == 2 and found.x["b"]
        np.testing.assert_allclose(found.x["x"], [1, -2], atol=1e-2)


@pytest.mark.slow
def test_an_order_is_found_by_differential_evolution():
    want = jnp.array([3, 1, 4, 0, 2, 5])
    spec = single.LSHADE(8000, population=60)

    def f(order):
        return jnp.sum(jnp.abs(order - want)).astype(jnp.float32)

    found = minimize(f, Permutation(6), 10000, algorithm=spec)
    np.testing.assert_array_equal(found.x, want)


@pytest.mark.slow
def test_two_objectives_give_a_feasible_front():
    # Schaffer's problem, and no x below 1/2: the front is f2 = (2 - sqrt f1)^2, 1/4 <= f1 <= 4
    def f(x):
        return jnp.stack([x**2, (x - 2) ** 2]), 0.5 - x

    found = minimize(f, Real(-10.0, 10.0), 6000)
    assert len(found.f) >= 40 and (found.violation == 0).all()
    assert found.f[:, 0].min() >= 0.25 and found.f[:, 0].min() < 0.27
    np.testing.assert_allclose(found.f[:, 1], (2 - np.sqrt(found.f[:, 0])) ** 2, atol=1e-3)
    assert found.x.shape == (len(found.f),)


def test_too_few_evaluations_are_named():
    with pytest.raises(ValueError, match="evaluations=9; one generation takes 8"):
        minimize(lambda x: jnp.sum(x * x), Real(-1.0, 1.0, (5,)), 9)
