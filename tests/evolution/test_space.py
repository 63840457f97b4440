"""Spaces decode every value equally often, keep their bounds, and have them as pytree leaves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.evolution import Boolean, Categorical, Integer, Permutation, Real, space

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
    got = jax.jit(jax.vmap(lambda u: space.decode(MIXED, u)))(u)

    def assert_even(values, count):
        # Allow five standard deviations of a binomial count.
        share = np.bincount(np.ravel(values).astype(int), minlength=count) / np.size(values)
        assert len(share) == count
        assert np.abs(share - 1 / count).max() < 5 * np.sqrt(1 / count / n)

    assert_even(got["whole"] + 3, 8)
    assert_even(got["kind"][:, 0], 3)
    assert_even(got["flag"], 2)
    codes = np.unique(np.asarray(got["order"]), axis=0, return_inverse=True)
    assert (np.sort(codes[0], axis=1) == np.arange(3)).all()
    assert_even(codes[1], 6)
    assert_even(np.floor(np.log10(got["rate"]) + 4), 6)
    real = np.asarray(got["real"])
    np.testing.assert_allclose(real.mean(0), [0, 15], atol=5 * 10 / np.sqrt(12 * n))
    assert real.min(0) == pytest.approx([-1, 10], abs=0.01)


def test_the_ends_of_the_box_are_the_ends_of_the_space():
    for end in (0.0, 1.0):
        got = space.decode(MIXED, jnp.full(space.dimension(MIXED), end))
        np.testing.assert_array_equal(got["real"], [[-1, 10], [1, 20]][int(end)])
        assert got["whole"] == [-3, 4][int(end)]
        assert float(got["rate"]) == pytest.approx([1e-4, 1e2][int(end)])


def test_bounds_are_leaves():
    def value(upper):
        return space.decode({"x": Real(0.0, upper), "n": Integer(0, 9)}, jnp.array([0.5, 0.5]))["n"]

    assert jax.vmap(value)(jnp.array([1.0, 2.0])).shape == (2,)
    high = jax.vmap(lambda b: space.decode(Real(0.0, b), jnp.array([0.5])))(jnp.array([1.0, 4.0]))
    np.testing.assert_array_equal(high, [0.5, 2.0])


def test_a_problem_knows_its_objectives_and_constraints():
    problem = space.problem(lambda x: (jnp.stack([x, 1 - x]), x - 0.5), Real(0.0, 2.0))
    f, violation = problem.evaluate(jnp.array([[0.1], [0.5]]))
    assert problem.objectives == 2
    np.testing.assert_allclose(f, [[0.2, 0.8], [1.0, 0.0]], rtol=1e-6)
    np.testing.assert_allclose(violation, [0, 0.5], rtol=1e-6)


def test_what_is_no_variable_is_named():
    with pytest.raises(TypeError, match="3.0 is not a variable; it must be one of Real, Integer"):
        space.dimension({"a": Real(0.0, 1.0), "b": 3.0})
    with pytest.raises(ValueError, match="holds no variable"):
        space.dimension({})
    with pytest.raises(ValueError, match="must be a scalar or"):
        space.problem(lambda x: jnp.zeros((2, 2)), Real(0.0, 1.0))


@pytest.mark.parametrize(
    "variable, said",
    [
        (Real(1.0, 0.0), r"^Real: lower=1, upper=0; lower must not be above upper"),
        (Real([0.0, 2.0], [1.0, 1.0]), r"^Real: lower=2, upper=1 at \[1\]; "),
        (Real(float("nan"), 1.0), "^Real: lower=nan; it must be a finite number"),
        (Real(-np.inf, np.inf), "^Real: lower=-inf; it must be a finite number"),
        (Real(-3e38, 3e38), "^Real: .*their distance must be a finite float32"),
        (Real(0.0, 4.0, logarithmic=True), "^Real: lower=0; it must be above 0 for a"),
        (Real(-1.0, 4.0, logarithmic=True), "^Real: lower=-1; it must be above 0 for a"),
        (Real(1e9, 1e9 + 1), "^Real: lower=1000000000, upper=1000000001; float32 cannot"),
        (Real([0, 0], [1, 1, 1]), r"^Real: lower has shape \[2\], upper \[3\]; they must have one"),
        (Real(np.zeros(2), 1.0, (3,)), r"upper \[\]; they must have the shape \[3\], or a number"),
        (Real(0.0, 1.0, 3), "^Real: shape=3; it must be a tuple"),
        (Real("0", 1.0), "^Real: lower='0'; it must be a finite number"),
        (Integer(3, 2), "^Integer: lower=3, upper=2; lower must not be above upper"),
        (Integer(0.5, 2), "^Integer: lower=0.5 of type float64; it must be a whole number"),
        (Integer(0, 2**31), "^Integer: upper=2147483648; it must be a whole number"),
        (Categorical(0), "^Categorical: count=0; it must be a whole number of at least 1"),
        (Permutation(2.5), "^Permutation: count=2.5"),
        (Boolean((-1,)), r"^Boolean: shape=\(-1,\); "),
    ],
    ids=lambda value: "" if isinstance(value, str) else repr(value)[:40],
)
def test_bounds_that_are_none_get_one_sentence(variable, said):
    with pytest.raises((ValueError, TypeError), match=said):
        space.dimension({"a": variable})


def test_the_shape_of_the_bounds_is_the_shape():
    two = Real(jnp.zeros(2), jnp.array([1.0, 2.0]))
    assert space.dimension(two) == 2
    np.testing.assert_array_equal(space.decode(two, jnp.array([0.25, 0.5])), [0.25, 1.0])
    assert space.dimension([Real([0, 0, 0], 1), Integer(0, [3, 4]), Real(0.0, 1.0, (2, 2))]) == 9


def test_far_bounds_of_a_logarithmic_variable_have_a_middle():
    far = Real(1e-30, 1e30, logarithmic=True)  # their ratio overflows float32
    u = jnp.array([0.0, 0.25, 0.5, 1.0])
    got = jax.vmap(lambda u: space.decode(far, u[None]))(u)
    np.testing.assert_allclose(got, [1e-30, 1e-15, 1.0, 1e30], rtol=1e-4)


@pytest.mark.parametrize("low, high", [(0, 10**9), (-(2**31), 2**31 - 1), (-5, 2**22 + 7)])
def test_every_value_of_a_wide_range_is_reached(low, high):
    wide = Integer(low, high)
    assert space.dimension(wide) == 2
    read = jax.jit(jax.vmap(lambda u: space.decode(wide, u)))
    np.testing.assert_array_equal(read(jnp.array([[0.0, 0.0], [1.0, 1.0]])), [low, high])
    # The second number steps through neighbouring values, where 2^-24 of the range spans many.
    step = 8 * 2.0**-24  # one of 2^32 places
    fine = jnp.float32(np.stack([np.full(4000, 0.4), 0.25 + step * np.arange(4000)], 1))
    values = np.unique(np.asarray(read(fine), np.int64))
    assert (np.diff(values) == 1).all() and len(values) >= min(4000, 4000 * (high - low) >> 33) - 1
    # Uniform points fill the range evenly: allow five standard deviations of a count.
    n = 40000
    got = np.asarray(read(jax.random.uniform(jax.random.key(1), (n, 2))), np.int64)
    share = np.histogram(got, bins=8, range=(low, high))[0] / n
    assert np.abs(share - 1 / 8).max() < 5 * np.sqrt(1 / 8 / n)
    assert len(set((got % 2).tolist())) == 2


def test_a_point_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"^decode: u has shape \[3\]; the space takes \[2\]"):
        space.decode(Real(0.0, 1.0, (2,)), jnp.zeros(3))


def test_points_are_told_apart_by_what_they_are_read_as():
    kinds = {"k": Categorical(2), "n": Integer(0, 6), "x": Real(-1.0, 1.0)}
    u = jnp.array(
        [
            [0.1, 0.8, 0.20, 0.5],  # kind 1, n = 1, x = 0
            [0.3, 0.9, 0.25, 0.5],  # the same
            [0.9, 0.8, 0.20, 0.5],  # kind 0
            [0.1, 0.8, 0.30, 0.5],  # n = 2
            [0.1, 0.8, 0.20, 0.6],  # another x
        ]
    )
    words = np.asarray(jax.vmap(lambda u: space.identifier(kinds, u))(u))
    assert (words[0] == words[1]).all()
    assert all((words[0] != row).any() for row in words[2:])
