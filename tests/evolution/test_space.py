"""Spaces read every value equally often, keep their bounds, and carry them as leaves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.evolution import Boolean, Categorical, Integer, Permutation, Real, space
from jaxgpu.evolution.problem import evaluate

MIXED = {
    "real": Real(jnp.array([-1.0, 10.0]), jnp.array([1.0, 20.0]), (2,)),
    "rate": Real(1e-4, 1e2, logarithmic=True),
    "whole": Integer(-3, 4),
    "kind": Categorical(3, (2,)),
    "flag": Boolean(),
    "order": Permutation(3),
}


def test_uniform_points_give_every_value_equally_often():
    n = 24000
    u = jax.random.uniform(jax.random.key(0), (n, space.dimension(MIXED)))
    got = jax.jit(jax.vmap(lambda u: space.read(MIXED, u)))(u)

    def even(values, count):
        # five standard deviations of a binomial count
        share = np.bincount(np.ravel(values).astype(int), minlength=count) / np.size(values)
        assert len(share) == count
        assert np.abs(share - 1 / count).max() < 5 * np.sqrt(1 / count / n)

    even(got["whole"] + 3, 8)
    even(got["kind"][:, 0], 3)
    even(got["flag"], 2)
    codes = np.unique(np.asarray(got["order"]), axis=0, return_inverse=True)
    assert (np.sort(codes[0], axis=1) == np.arange(3)).all()
    even(codes[1], 6)
    even(np.floor(np.log10(got["rate"]) + 4), 6)
    real = np.asarray(got["real"])
    np.testing.assert_allclose(real.mean(0), [0, 15], atol=5 * 10 / np.sqrt(12 * n))
    assert real.min(0) == pytest.approx([-1, 10], abs=0.01)


def test_the_ends_of_the_box_are_the_ends_of_the_space():
    for end in (0.0, 1.0):
        got = space.read(MIXED, jnp.full(space.dimension(MIXED), end))
        np.testing.assert_array_equal(got["real"], [[-1, 10], [1, 20]][int(end)])
        assert got["whole"] == [-3, 4][int(end)]
        assert float(got["rate"]) == pytest.approx([1e-4, 1e2][int(end)])


def test_bounds_are_leaves():
    def value(upper):
        return space.read({"x": Real(0.0, upper), "n": Integer(0, 9)}, jnp.array([0.5, 0.5]))["n"]

    assert jax.vmap(value)(jnp.array([1.0, 2.0])).shape == (2,)
    high = jax.vmap(lambda b: space.read(Real(0.0, b), jnp.array([0.5])))(jnp.array([1.0, 4.0]))
    np.testing.assert_array_equal(high, [0.5, 2.0])


def test_a_problem_knows_its_objectives_and_constraints():
    problem = space.problem(lambda x: (jnp.stack([x, 1 - x]), x - 0.5), Real(0.0, 2.0))
    f, violation = evaluate(problem, jnp.array([[0.1], [0.5]]))
    assert problem.objectives == 2
    np.testing.assert_allclose(f, [[0.2, 0.8], [1.0, 0.0]], rtol=1e-6)
    np.testing.assert_allclose(violation, [0, 0.5], rtol=1e-6)


def test_what_is_no_variable_is_named():
    with pytest.raises(TypeError, match="3.0 is no variable; it must be one of Real, Integer"):
        space.dimension({"a": Real(0.0, 1.0), "b": 3.0})
    with pytest.raises(ValueError, match="holds no variable"):
        space.dimension({})
    with pytest.raises(ValueError, match="must be a scalar or"):
        space.problem(lambda x: jnp.zeros((2, 2)), Real(0.0, 1.0))
